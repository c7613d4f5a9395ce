package store

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/draws"
)

// Files in CmdStan's form: warm-up before the block, thinning, a matrix in column-major order, tuples and complex
// numbers, NaN and infinities, comments in the middle.
func TestReadCmdStan(t *testing.T) {
	inf, err := Open("testdata/cmdstan_*.csv")
	require.NoError(t, err)
	assert.Empty(t, inf.Notes)
	d := inf.Posterior
	assert.Equal(t, nuts, reorder(d.Stats()))
	assert.Equal(t, sitesOf(t, "mu", []int64{}, "m", []int64{2, 3}, "pair:1", []int64{}, "pair:2", []int64{2}, "z.real", []int64{2}, "z.imag", []int64{2}), d.Sites())
	require.Equal(t, []int{2, 3, 3}, []int{d.Chains(), d.Len(0), d.Len(1)})
	require.Equal(t, []int{2, 3, 3}, []int{inf.Warmup.Chains(), inf.Warmup.Len(0), inf.Warmup.Len(1)})
	sameNumbers(t, []float64{3.25, 11, 12, 13, 21, 22, 23, 3, .1, .2, 1.5, 2.5, -1.5, -2.5}, d.Row(0, 0))
	sameNumbers(t, []float64{5.5, 11, 12, difficult[1], 21, 22, 23, 5, .1, .2, 1.5, 2.5, -1.5, -2.5}, d.Row(1, 2))
	sameNumbers(t, []float64{0.25, 11}, inf.Warmup.Row(0, 0)[:2])
	divergent, err := d.Stat("divergent", 1)
	require.NoError(t, err)
	assert.Equal(t, []float64{0, 1, 0}, divergent)
	assert.Equal(t, map[string]any{
		"model_name": "small_model", "start_datetime": "2024-06-01 12:00:00 UTC", "seed": 4321., "thin": 2., "num_warmup": 5., "num_samples": 6.,
		"max_treedepth": 9., "inference_library": "cmdstan", "inference_library_version": "2.35.0", "step_size": []any{.5, .25},
	}, inf.Attrs)
}

// reorder puts the statistics in the order of nuts.
func reorder(stats []string) []string {
	var out []string
	for _, name := range nuts {
		if indexOf(stats, name) >= 0 {
			out = append(out, name)
		}
	}
	return out
}

// The header is CmdStan's: its statistics in its order, then sites column-major, as its guide describes.
func TestCSVColumns(t *testing.T) {
	names, source := csvColumns(sitesOf(t, "mu", []int64{}, "a.b", []int64{2, 3}, "a_b", []int64{1}, "end__", []int64{}), []string{"divergent", "mine", "lp"})
	assert.Equal(t, strings.Split("lp__,divergent__,mine__,mu,a_b_2.1.1,a_b_2.2.1,a_b_2.1.2,a_b_2.2.2,a_b_2.1.3,a_b_2.2.3,a_b.1,end__p", ","), names)
	assert.Equal(t, []int{11, 9, 10, 0, 1, 4, 2, 5, 3, 6, 7, 8}, source)
}

var small = CSVOptions{Warmup: 2, Draws: 4, SaveWarmup: true, FlushEvery: 1}

// stream writes 2 + 4 draws of a chain, and stops after the first n of them.
func stream(t *testing.T, w *CSVWriter, d *draws.Draws, from, n int) {
	t.Helper()
	stats := make([]float64, len(d.Stats()))
	for i := from; i < n; i++ {
		if i == 2 {
			require.NoError(t, w.Adapted(Adaptation{StepSize: 0.125, Diagonal: []float64{1, 2, 3}}))
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
	d = filled(t, sitesOf(t, "mu", []int64{}, "w", []int64{2}), nuts, true, 6)
	path = filepath.Join(t.TempDir(), "chain.csv")
	w, err := CreateCSV(path, d.Sites(), d.Stats(), small)
	require.NoError(t, err)
	stream(t, w, d, 0, 6)
	require.NoError(t, w.Close())
	text, err = os.ReadFile(path)
	require.NoError(t, err)
	return d, path, text
}

// A kill can end the file at any byte. Cut anywhere behind the names of the columns it is readable, and gone on with it
// becomes the file that was written at once; cut before, it says so, and is begun anew.
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
		inf, err := ReadCSV(path)
		if cut < header {
			require.ErrorIs(t, err, ErrFormat)
			require.ErrorContains(t, err, "the file ends before the names of the columns")
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

		w, err := AppendCSV(path, d.Sites(), d.Stats(), small, -1)
		require.NoError(t, err)
		stream(t, w, d, w.Rows(), 6)
		require.NoError(t, w.Close())
		again, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, string(text), string(again), "cut at %d", cut)
	}
}

// A run that goes on from a checkpoint keeps the draws that it covers, whether the file was finished or not.
func TestAppendCSVKeeps(t *testing.T) {
	d, path, text := written(t)
	for keep := range 7 {
		w, err := AppendCSV(path, d.Sites(), d.Stats(), small, keep)
		require.NoError(t, err)
		require.Equal(t, keep, w.Rows())
		stream(t, w, d, keep, 6)
		require.NoError(t, w.Finish(time.Second, 2*time.Second))
		require.NoError(t, w.Close())
		again, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, string(text)+"# \n#  Elapsed Time: 1 seconds (Warm-up)\n#                2 seconds (Sampling)\n#                3 seconds (Total)\n# \n", string(again))
	}
	inf, err := ReadCSV(path)
	require.NoError(t, err)
	for i := range 6 {
		want, got := d.Row(0, i), inf.Warmup.Row(0, i)
		if i >= 2 {
			got = inf.Posterior.Row(0, i-2)
		}
		sameNumbers(t, want, got)
	}
	assert.Equal(t, []any{.125}, inf.Attrs["step_size"])

	_, err = AppendCSV(path, d.Sites(), d.Stats(), small, 7)
	require.ErrorIs(t, err, ErrRange)
	require.ErrorContains(t, err, "the file has 6 draws, fewer than the 7 to keep")
	_, err = AppendCSV(path, d.Sites(), d.Stats(), small, -2)
	require.ErrorContains(t, err, "keep is -2, want a number of draws, or -1 for all")
	_, err = AppendCSV(path, d.Sites()[:1], d.Stats(), small, -1)
	require.ErrorIs(t, err, ErrLayout)
	require.ErrorContains(t, err, "the sites and statistics are")
	_, err = AppendCSV("testdata/cmdstan_1.csv", d.Sites(), d.Stats(), small, -1)
	require.ErrorContains(t, err, "the file has other columns")
	_, err = AppendCSV(path+"x", d.Sites(), d.Stats(), small, -1)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestCSVWriterErrors(t *testing.T) {
	sites := sitesOf(t, "mu", []int64{}, "w", []int64{2})
	path := filepath.Join(t.TempDir(), "a.csv")
	for _, c := range []struct {
		opt   CSVOptions
		sites []draws.Site
		text  string
	}{
		{CSVOptions{Thin: -1}, sites, "Thin is -1, want a positive number, or 0 for 1"},
		{CSVOptions{TargetAccept: 1}, sites, "TargetAccept is 1, want a number between 0 and 1"},
		{CSVOptions{Metric: "round"}, sites, `Metric is "round", want one of ["unit_e" "diag_e" "dense_e"]`},
		{CSVOptions{Algorithm: "gibbs"}, sites, `Algorithm is "gibbs"`},
		{CSVOptions{}, nil, "a draw has neither elements nor statistics"},
		{CSVOptions{}, []draws.Site{{Name: "x", Size: 2}}, "size is 2, want 1"},
	} {
		_, err := CreateCSV(path, c.sites, nil, c.opt)
		assert.ErrorContains(t, err, c.text)
	}
	w, err := CreateCSV(path, sites, []string{"step_size"}, CSVOptions{Metric: "dense_e"})
	require.NoError(t, err)
	assert.ErrorContains(t, w.Append([]float64{1}, []float64{1}), "x has 1 numbers, want 3")
	assert.ErrorContains(t, w.Append([]float64{1, 2, 3}, nil), "stats has 0 numbers, want 1")
	assert.ErrorContains(t, w.Adapted(Adaptation{Diagonal: []float64{1}}), "it is of the metric diag_e, the file is of dense_e")
	assert.ErrorContains(t, w.Adapted(Adaptation{Diagonal: []float64{1}, Dense: [][]float64{{1}}}), "both Diagonal and Dense are given")
	assert.ErrorContains(t, w.Adapted(Adaptation{Dense: [][]float64{{1, 2}}}), "row 0 of Dense has 2 numbers, want 1")
	require.NoError(t, w.Adapted(Adaptation{Dense: [][]float64{{1, 2}, {2, 3}}}))
	require.NoError(t, w.Adapted(Adaptation{Dense: [][]float64{{1, 2}, {2, 3}}}), "the same again is nothing")
	assert.ErrorContains(t, w.Adapted(Adaptation{Dense: [][]float64{{1, 2}, {2, 4}}}), "the file has one already, and another")
	require.NoError(t, w.Finish(0, 0))
	assert.ErrorContains(t, w.Append([]float64{1, 2, 3}, []float64{1}), "the times of the run are written already")
	assert.ErrorContains(t, w.Finish(0, 0), "written already")
	require.NoError(t, w.Close())
	require.NoError(t, w.Close())
	assert.Equal(t, ErrClosed, w.Append([]float64{1, 2, 3}, []float64{1}))
	_, err = CreateCSV(path, sites, nil, CSVOptions{})
	assert.ErrorIs(t, err, fs.ErrExist)
	_, err = WriteCSV(path, &Inference{}, CSVOptions{})
	assert.ErrorContains(t, err, "there is no posterior")
}

// Errors name the file, the line and the column.
func TestReadCSVErrors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bad.csv")
	for _, c := range []struct{ text, want string }{
		{"", "bad.csv: the file ends before the names of the columns"},
		{"# only\n", "line 1: the file ends before the names"},
		{"lp__,mu\n1,x\n", `bad.csv: line 2, column 2 (mu): "x" is not a number`},
		{"lp__,mu\n1,2\n\n# c\n1,\n", `line 5, column 2 (mu): "" is not a number`},
		{"lp__,mu\n1,1e999\n", `line 2, column 2 (mu): "1e999" is too large for a float64`},
		{"lp__,mu\n1,2,3\n", "line 2: 3 values, want 2, one for each column"},
		{"lp__,mu\n1\n", "line 2: 1 values, want 2"},
		{"lp__,mu,mu\n", "line 1, column 3 (mu): there are two columns of this name"},
		{"lp__,,mu\n", "line 1, column 2: the column has no name"},
		{"x.1,x.3\n", "column 1 (x.1): x has 2 columns, but its indices reach [3]"},
		{"x.1,x.1.2\n", "column 2 (x.1.2): the column has 2 indices, the first of its name has 1"},
		{"x,x.1\n", "the column has 1 indices, the first of its name has 0"},
		{"x.2000000000.2000000000\n", "its indices reach"},
	} {
		require.NoError(t, os.WriteFile(path, []byte(c.text), 0o644))
		_, err := ReadCSV(path)
		var at *ParseError
		require.ErrorAs(t, err, &at, c.text)
		assert.ErrorIs(t, err, ErrFormat)
		assert.ErrorContains(t, err, c.want)
	}
	_, err := ReadCSV()
	assert.ErrorIs(t, err, ErrRange)
	_, err = ReadCSV(path + "x")
	assert.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, os.WriteFile(path, []byte("lp__,other\n1,2\n"), 0o644))
	_, err = ReadCSV("testdata/cmdstan_1.csv", path)
	assert.ErrorIs(t, err, ErrLayout)
	assert.ErrorContains(t, err, "are not of one run: their columns differ")
}

// Columns in any order, spaces and Windows' ends of lines are read.
func TestReadCSVOrder(t *testing.T) {
	inf, err := ReadCSVFrom(strings.NewReader("m.2.1, lp__,m.1.2,m.1.1,m.2.2,1odd.x\r\n21, -1,12,11 ,+22,Inf\r\n"))
	require.NoError(t, err)
	assert.Equal(t, []float64{11, 12, 21, 22, difficult[1]}, inf.Posterior.Row(0, 0))
	assert.Equal(t, "1odd.x", inf.Posterior.Sites()[1].Name)
}
