package store

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var small = csvHead{CSVOptions: CSVOptions{Warmup: 2, Draws: 4, FlushEvery: 1}, SaveWarmup: true}

func stream(t *testing.T, w *csvWriter, d *draws.Draws, from, n int) {
	t.Helper()
	for i := from; i < n; i++ {
		if i == 2 {
			require.NoError(t, w.Adapted(0.125))
		}
		require.NoError(t, w.Append(d.Row(0, i), d.StatRow(0, i)))
	}
}

func written(t *testing.T) (d *draws.Draws, path string, text []byte) {
	t.Helper()
	d = filled(t, placedSites(t, "mu", []int{}, "w", []int{2}), nutsStats, true, 6)
	path = filepath.Join(t.TempDir(), "chain.csv")
	w, err := createCSV(path, d.Sites(), d.Stats(), small)
	require.NoError(t, err)
	stream(t, w, d, 0, 6)
	require.NoError(t, w.Close())
	text, err = os.ReadFile(path)
	require.NoError(t, err)
	return d, path, text
}

func TestTornAtEveryByte(t *testing.T) {
	noSync(t)
	d, path, text := written(t)
	header := strings.Index(string(text), "\nlp__") + 1
	header += strings.Index(string(text[header:]), "\n") + 1
	for cut := range text {
		if cut < header && cut%29 != 0 {
			continue
		}
		require.NoError(t, os.WriteFile(path, text[:cut], 0o644))
		inf, err := Open(path)
		if cut < header {
			require.ErrorIs(t, err, ErrFormat)
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

		w, err := appendCSV(path, d.Sites(), d.Stats(), small, -1)
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
		w, err := appendCSV(path, d.Sites(), d.Stats(), small, keep)
		require.NoError(t, err)
		require.Equal(t, keep, w.Rows())
		stream(t, w, d, keep, 6)
		w.write([]byte(elapsed))
		require.NoError(t, w.Close())
		again, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, trimDigest(text)+elapsed, trimDigest(again))
	}
	inf, err := Open(path)
	require.NoError(t, err)
	for i := range 6 {
		want, got := d.Row(0, i), inf.Warmup.Row(0, i)
		if i >= 2 {
			got = inf.Posterior.Row(0, i-2)
		}
		sameNumbers(t, want, got)
	}
	assert.Equal(t, []any{.125}, inf.Attrs["step_size"])

	_, err = appendCSV(path, d.Sites(), d.Stats(), small, 7)
	require.ErrorIs(t, err, ErrRange)
	require.ErrorContains(t, err, "the file has 6 draws, fewer than the 7 to keep")
	_, err = appendCSV(path, d.Sites(), d.Stats(), small, -2)
	require.ErrorContains(t, err, "keep is -2, want a number of draws, or -1 for all")
	_, err = appendCSV(path, d.Sites()[:1], d.Stats(), small, -1)
	require.ErrorIs(t, err, ErrLayout)
	require.ErrorContains(t, err, "the sites and statistics are")
	_, err = appendCSV("testdata/cmdstan_1.csv", d.Sites(), d.Stats(), small, -1)
	require.ErrorContains(t, err, "the file has other columns")
	_, err = appendCSV(path+"x", d.Sites(), d.Stats(), small, -1)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestCSVWriterErrors(t *testing.T) {
	sites := placedSites(t, "mu", []int{}, "w", []int{2})
	path := filepath.Join(t.TempDir(), "a.csv")
	for _, c := range []struct {
		opt   CSVOptions
		sites []draws.Site
		text  string
	}{
		{CSVOptions{Thin: -1}, sites, "Thin is -1, want a positive number, or 0 for 1"},
		{CSVOptions{TargetAccept: 1}, sites, "TargetAccept is 1, want a number between 0 and 1"},
		{CSVOptions{}, nil, "a draw has neither elements nor statistics"},
		{CSVOptions{}, []draws.Site{{Name: "x", Size: 2}}, "size is 2, want 1"},
	} {
		_, err := createCSV(path, c.sites, nil, csvHead{CSVOptions: c.opt})
		assert.ErrorContains(t, err, c.text)
	}
	w, err := createCSV(path, sites, []string{"step_size"}, csvHead{})
	require.NoError(t, err)
	assert.ErrorContains(t, w.Append([]float64{1}, []float64{1}), "x has 1 numbers, want 3")
	assert.ErrorContains(t, w.Append([]float64{1, 2, 3}, nil), "stats has 0 numbers, want 1")
	require.NoError(t, w.Adapted(0.5))
	require.NoError(t, w.Adapted(0.5), "the same again is nothing")
	assert.ErrorContains(t, w.Adapted(0.25), "the file has one already, and another")
	require.NoError(t, w.Close())
	require.NoError(t, w.Close())
	assert.Equal(t, errClosed, w.Append([]float64{1, 2, 3}, []float64{1}))
	_, err = createCSV(path, sites, nil, csvHead{})
	assert.ErrorIs(t, err, fs.ErrExist)
	w, err = createCSV(path+"2", sites, nil, csvHead{})
	require.NoError(t, err)
	require.NoError(t, os.Rename(path+"2", path+"3"))
	assert.ErrorContains(t, w.Close(), path+"2 was removed while it was written")
	require.NoError(t, os.Symlink(path+"3", path+"2"))
	_, err = appendCSV(path+"2", sites, nil, csvHead{}, -1)
	assert.ErrorContains(t, err, path+"2 is a symbolic link")
	_, err = WriteCSV(path, &Inference{}, CSVOptions{})
	assert.ErrorContains(t, err, "there is no posterior")
}

// trimDigest is a file without its trailer.
func trimDigest(text []byte) string {
	return string(text[:strings.LastIndex(string(text), "# kelvin_digest")])
}
