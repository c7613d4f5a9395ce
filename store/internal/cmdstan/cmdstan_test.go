package cmdstan_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/store"
	"github.com/kelvin-ppl/kelvin/store/internal/cmdstan"
	"github.com/kelvin-ppl/kelvin/store/internal/content"
	"github.com/kelvin-ppl/kelvin/store/internal/storetest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var small = cmdstan.Options{Warmup: 2, Draws: 4, SaveWarmup: true, FlushEvery: 1}

func stream(t *testing.T, w *cmdstan.Writer, d *draws.Draws, from, n int) {
	t.Helper()
	stats := make([]float64, len(d.Stats()))
	for i := from; i < n; i++ {
		if i == 2 {
			require.NoError(t, w.Adapted(cmdstan.Adaptation{StepSize: 0.125, Diagonal: []float64{1, 2, 3}}))
		}
		for k, name := range d.Stats() {
			trace, err := d.Stat(name, 0)
			require.NoError(t, err)
			stats[k] = trace[i]
		}
		require.NoError(t, w.Append(d.Row(0, i), stats))
	}
}

func written(t *testing.T) (d *draws.Draws, path string, text []byte) {
	t.Helper()
	d = storetest.Filled(t, storetest.Sites(t, "mu", []int64{}, "w", []int64{2}), storetest.NUTS, true, 6)
	path = filepath.Join(t.TempDir(), "chain.csv")
	w, err := cmdstan.Create(path, d.Sites(), d.Stats(), small)
	require.NoError(t, err)
	stream(t, w, d, 0, 6)
	require.NoError(t, w.Close())
	text, err = os.ReadFile(path)
	require.NoError(t, err)
	return d, path, text
}

func TestTornAtEveryByte(t *testing.T) {
	storetest.NoSync(t)
	d, path, text := written(t)
	header := strings.Index(string(text), "\nlp__") + 1
	header += strings.Index(string(text[header:]), "\n") + 1
	for cut := range text {
		if cut < header && cut%29 != 0 {
			continue
		}
		require.NoError(t, os.WriteFile(path, text[:cut], 0o644))
		inf, err := store.Open(path)
		if cut < header {
			require.ErrorIs(t, err, store.ErrFormat)
			if cut > 0 {
				require.ErrorContains(t, err, "the file ends before the names of the columns")
			}
		} else {
			require.NoError(t, err)
			part := string(text[header:cut])
			lines := strings.Split(part, "\n")
			rows := 0
			for _, line := range lines[:len(lines)-1] {
				if !strings.HasPrefix(line, "#") {
					rows++
				}
			}
			got := inf.Posterior.Len(0)
			if inf.Warmup != nil {
				got += inf.Warmup.Len(0)
			}
			require.Equal(t, rows, got)
			if strings.HasSuffix(part, "\n") || part == "" {
				require.Empty(t, inf.Notes)
			} else {
				require.Len(t, inf.Notes, 1)
				require.Contains(t, inf.Notes[0], "is incomplete, as a killed run leaves it, and was dropped")
			}
		}

		w, err := cmdstan.Append(path, d.Sites(), d.Stats(), small, -1)
		require.NoError(t, err)
		stream(t, w, d, w.Rows(), 6)
		require.NoError(t, w.Close())
		again, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, string(text), string(again), "cut at %d", cut)
	}
	t.Logf("seen: CSV cut at every byte of its draws (%d), read and resumed", len(text)-header)
}

func TestAppendCSVKeeps(t *testing.T) {
	d, path, text := written(t)
	for keep := range 7 {
		w, err := cmdstan.Append(path, d.Sites(), d.Stats(), small, keep)
		require.NoError(t, err)
		require.Equal(t, keep, w.Rows())
		stream(t, w, d, keep, 6)
		require.NoError(t, w.Finish(time.Second, 2*time.Second))
		require.NoError(t, w.Close())
		again, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, trimDigest(text)+"# \n#  Elapsed Time: 1 seconds (Warm-up)\n#                2 seconds "+
			"(Sampling)\n#                3 seconds (Total)\n# \n",
			trimDigest(again))
	}
	inf, err := store.Open(path)
	require.NoError(t, err)
	for i := range 6 {
		want, got := d.Row(0, i), inf.Warmup.Row(0, i)
		if i >= 2 {
			got = inf.Posterior.Row(0, i-2)
		}
		storetest.SameNumbers(t, want, got)
	}
	assert.Equal(t, []any{.125}, inf.Attrs["step_size"])

	_, err = cmdstan.Append(path, d.Sites(), d.Stats(), small, 7)
	require.ErrorIs(t, err, store.ErrRange)
	require.ErrorContains(t, err, "the file has 6 draws, fewer than the 7 to keep")
	_, err = cmdstan.Append(path, d.Sites(), d.Stats(), small, -2)
	require.ErrorContains(t, err, "keep is -2, want a number of draws, or -1 for all")
	_, err = cmdstan.Append(path, d.Sites()[:1], d.Stats(), small, -1)
	require.ErrorIs(t, err, store.ErrLayout)
	require.ErrorContains(t, err, "the sites and statistics are")
	_, err = cmdstan.Append("../../testdata/cmdstan_1.csv", d.Sites(), d.Stats(), small, -1)
	require.ErrorContains(t, err, "the file has other columns")
	_, err = cmdstan.Append(path+"x", d.Sites(), d.Stats(), small, -1)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestCSVWriterErrors(t *testing.T) {
	sites := storetest.Sites(t, "mu", []int64{}, "w", []int64{2})
	path := filepath.Join(t.TempDir(), "a.csv")
	for _, c := range []struct {
		opt   cmdstan.Options
		sites []draws.Site
		text  string
	}{
		{cmdstan.Options{Thin: -1}, sites, "Thin is -1, want a positive number, or 0 for 1"},
		{cmdstan.Options{TargetAccept: 1}, sites, "TargetAccept is 1, want a number between 0 and 1"},
		{cmdstan.Options{Metric: "round"}, sites, `Metric is "round", want one of ["unit_e" "diag_e" "dense_e"]`},
		{cmdstan.Options{Algorithm: "gibbs"}, sites, `Algorithm is "gibbs"`},
		{cmdstan.Options{}, nil, "a draw has neither elements nor statistics"},
		{cmdstan.Options{}, []draws.Site{{Name: "x", Size: 2}}, "size is 2, want 1"},
	} {
		_, err := cmdstan.Create(path, c.sites, nil, c.opt)
		assert.ErrorContains(t, err, c.text)
	}
	w, err := cmdstan.Create(path, sites, []string{"step_size"}, cmdstan.Options{Metric: "dense_e"})
	require.NoError(t, err)
	assert.ErrorContains(t, w.Append([]float64{1}, []float64{1}), "x has 1 numbers, want 3")
	assert.ErrorContains(t, w.Append([]float64{1, 2, 3}, nil), "stats has 0 numbers, want 1")
	assert.ErrorContains(t, w.Adapted(cmdstan.Adaptation{Diagonal: []float64{1}}),
		"it is of the metric diag_e, the file is of dense_e")
	assert.ErrorContains(t, w.Adapted(cmdstan.Adaptation{Diagonal: []float64{1}, Dense: [][]float64{{1}}}),
		"both Diagonal and Dense are given")
	assert.ErrorContains(t, w.Adapted(cmdstan.Adaptation{Dense: [][]float64{{1, 2}}}),
		"row 0 of Dense has 2 numbers, want 1")
	require.NoError(t, w.Adapted(cmdstan.Adaptation{Dense: [][]float64{{1, 2}, {2, 3}}}))
	require.NoError(t, w.Adapted(cmdstan.Adaptation{Dense: [][]float64{{1, 2}, {2, 3}}}), "the same again is nothing")
	assert.ErrorContains(t, w.Adapted(cmdstan.Adaptation{Dense: [][]float64{{1, 2}, {2, 4}}}),
		"the file has one already, and another")
	require.NoError(t, w.Finish(0, 0))
	assert.ErrorContains(t, w.Append([]float64{1, 2, 3}, []float64{1}), "the times of the run are written already")
	assert.ErrorContains(t, w.Finish(0, 0), "written already")
	require.NoError(t, w.Close())
	require.NoError(t, w.Close())
	assert.Equal(t, content.ErrClosed, w.Append([]float64{1, 2, 3}, []float64{1}))
	_, err = cmdstan.Create(path, sites, nil, cmdstan.Options{})
	assert.ErrorIs(t, err, fs.ErrExist)
	w, err = cmdstan.Create(path+"2", sites, nil, cmdstan.Options{})
	require.NoError(t, err)
	require.NoError(t, os.Rename(path+"2", path+"3"))
	assert.ErrorContains(t, w.Close(), path+"2 was removed while it was written")
	require.NoError(t, os.Symlink(path+"3", path+"2"))
	_, err = cmdstan.Append(path+"2", sites, nil, cmdstan.Options{}, -1)
	assert.ErrorContains(t, err, path+"2 is a symbolic link")
	_, err = store.WriteCSV(path, &store.Inference{}, store.CSVOptions{})
	assert.ErrorContains(t, err, "there is no posterior")
}

// trimDigest is a file without its trailer.
func trimDigest(text []byte) string {
	return string(text[:strings.LastIndex(string(text), "# kelvin_digest")])
}
