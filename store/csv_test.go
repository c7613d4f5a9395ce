package store

import (
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestReadCmdStan(t *testing.T) {
	inf, err := Open("testdata/cmdstan_*.csv")
	require.NoError(t, err)
	assert.Empty(t, inf.Notes)
	d := inf.Posterior
	assert.Equal(t, nutsStats, reorder(d.Stats()))
	assert.Equal(t, placedSites(t, "mu", []int{}, "m", []int{2, 3}, "pair:1", []int{}, "pair:2", []int{2},
		"z.real", []int{2}, "z.imag", []int{2}), d.Sites())
	require.Equal(t, []int{2, 3, 3}, []int{d.Chains(), d.Len(0), d.Len(1)})
	require.Equal(t, []int{2, 3, 3}, []int{inf.Warmup.Chains(), inf.Warmup.Len(0), inf.Warmup.Len(1)})
	sameNumbers(t, []float64{3.25, 11, 12, 13, 21, 22, 23, 3, .1, .2, 1.5, 2.5, -1.5, -2.5}, d.Row(0, 0))
	sameNumbers(t, []float64{5.5, 11, 12, difficult[1], 21, 22, 23, 5, .1, .2, 1.5, 2.5, -1.5, -2.5},
		d.Row(1, 2))
	sameNumbers(t, []float64{0.25, 11}, inf.Warmup.Row(0, 0)[:2])
	divergent, err := d.Stat("divergent", 1)
	require.NoError(t, err)
	assert.Equal(t, []float64{0, 1, 0}, divergent)
	assert.Equal(t, map[string]any{
		"model_name": "small_model", "start_datetime": "2024-06-01 12:00:00 UTC", "seed": 4321., "thin": 2., "num_warmup": 5.,
		"num_samples":   6.,
		"max_treedepth": 9., "inference_library": "cmdstan", "inference_library_version": "2.35.0", "step_size": []any{.5,
			.25},
	}, inf.Attrs)
}

func reorder(stats []string) []string {
	var out []string
	for _, name := range nutsStats {
		if slices.Contains(stats, name) {
			out = append(out, name)
		}
	}
	return out
}

func TestReadCSVErrors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bad.csv")
	for _, c := range []struct{ text, want string }{
		{"\n", "bad.csv: line 1: the file ends before the names of the columns"},
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
		_, err := Open(path)
		var at *ParseError
		require.ErrorAs(t, err, &at, c.text)
		assert.ErrorIs(t, err, ErrFormat)
		assert.ErrorContains(t, err, c.want)
	}
	_, err := Open()
	assert.ErrorIs(t, err, ErrRange)
	_, err = Open(path + "x")
	assert.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, os.WriteFile(path, []byte("lp__,other\n1,2\n"), 0o644))
	_, err = Open("testdata/cmdstan_1.csv", path)
	assert.ErrorIs(t, err, ErrLayout)
	assert.ErrorContains(t, err, "are not of one run: their columns differ")
}

func TestReadCSVOrder(t *testing.T) {
	inf, err := Read(strings.NewReader("m.2.1, lp__,m.1.2,m.1.1,m.2.2,1odd.x\r\n21, -1,12,11 ,+22,Inf\r\n"))
	require.NoError(t, err)
	assert.Equal(t, []float64{11, 12, 21, 22, difficult[1]}, inf.Posterior.Row(0, 0))
	assert.Equal(t, "1odd.x", inf.Posterior.Sites()[1].Name)
}

// A table of all chains, written by Draws.WriteCSV of the version before each chain had a file, comes back with its
// chains, statistics and shapes. What does not fit is an error with the place.
func TestReadTable(t *testing.T) {
	inf, err := Open("testdata/table.csv")
	require.NoError(t, err)
	d := inf.Posterior
	assert.Equal(t, placedSites(t, "mu", []int{}, "layer.0.w", []int{2, 2}, "tau", []int{1}), d.Sites())
	assert.Equal(t, []string{"lp", "accept", "step_size", "tree_depth", "n_leapfrog", "divergent", "energy"}, d.Stats())
	require.Equal(t, []int{2, 3, 2}, []int{d.Chains(), d.Len(0), d.Len(1)})
	sameNumbers(t, []float64{2, 0.1, 0.2, math.Pi, -2, 1e-300}, d.Row(0, 2))
	sameNumbers(t, []float64{math.Inf(1), 0.1, 1.2, math.Pi, -1, math.NaN()}, d.Row(1, 1))
	lp, err := d.Stat("lp", 0)
	require.NoError(t, err)
	assert.Equal(t, []float64{-7.25, -8.25, -9.25}, lp)

	const head = "chain,draw,lp,mu,\"w[0,0]\",\"w[0,1]\",held\n" // statistics end at the first site
	inf, err = Read(strings.NewReader(head + "0,0,-1,1,2,3,4\n1,0,-1,5,6,7,8\n0,1,-2,9,10,11,12\n1,1,-"))
	require.NoError(t, err)
	sameNumbers(t, []float64{9, 10, 11, 12}, inf.Posterior.Row(0, 1))
	require.Equal(t, 1, inf.Posterior.Len(1))
	inf, err = Read(strings.NewReader("chain,draw,x\n"))
	require.NoError(t, err)
	assert.Equal(t, 0, inf.Posterior.Total())
	for text, want := range map[string]string{
		head + "0,1,1,0,1,2,3\n":              "line 2: draw 1 of chain 0 does not follow",
		head + "-1,0,1,0,1,2,3\n":             "draw 0 of chain -1 does not follow",
		head + "0.5,0,1,0,1,2,3\n":            "draw 0 of chain 0.5 does not follow",
		head + "NaN,0,1,0,1,2,3\n":            "draw 0 of chain NaN does not follow",
		head + "1e99,0,1,0,1,2,3\n":           "does not follow",
		head + "0,0,1,1,2,x,3\n":              "line 2, column 6",
		head + "0,0,1\n":                      "line 2: 3 values, want 7",
		"chain,draw,\"w[0]\",\"w[2]\"\n":      "w has 2 columns, but its indices reach [3]",
		"chain,draw,\"w[0\n":                  "line 1",
		"chain,draw,\"w[99999999,99999999]\"": "w has 1 columns",
	} {
		_, err := Read(strings.NewReader(strings.TrimSuffix(text, "\n") + "\n"))
		require.ErrorIs(t, err, ErrFormat, text)
		require.ErrorContains(t, err, want)
	}
}

// The first row of a file of CmdStan's variational method is the mean of the approximation, and no draw.
func TestReadVariational(t *testing.T) {
	inf, err := Read(strings.NewReader("# method = variational\n#   variational\n#     algorithm = meanfield (Default)\n" +
		"lp__,log_p__,log_g__,mu\n0,0,0,5.5\n0,-1,-2,1\n0,-3,-4,2\n"))
	require.NoError(t, err)
	require.Equal(t, 2, inf.Posterior.Total())
	sameNumbers(t, []float64{1}, inf.Posterior.Row(0, 0))
	require.Len(t, inf.Notes, 1)
	require.Contains(t, inf.Notes[0], "the mean of the approximation")
}

// The head has the seed of the run, from the options or else from the draws, and none where nobody knows it. It says
// that its metric is not the run's.
func TestHeadOfDraws(t *testing.T) {
	d, err := draws.New(placedSites(t, "mu", []int{}), []string{draws.StatStepSize}, 1)
	require.NoError(t, err)
	require.NoError(t, d.AppendChain(0, []float64{1}, []float64{0.5}))
	head := func(o CSVOptions) string {
		paths, err := WriteCSV(filepath.Join(t.TempDir(), "run"), &Inference{Posterior: d}, o)
		require.NoError(t, err)
		text, err := os.ReadFile(paths[0])
		require.NoError(t, err)
		return string(text)
	}
	assert.NotContains(t, head(CSVOptions{}), "seed")
	assert.Contains(t, head(CSVOptions{}), "unit_e stands in its place")
	assert.Contains(t, head(CSVOptions{Seed: 4}), "seed = 4\n")
	d.SetAttr("seed", "17")
	assert.Contains(t, head(CSVOptions{}), "  seed = 17\n")
}
