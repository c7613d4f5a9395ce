package main

import (
	"bytes"
	"errors"
	"flag"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/store"
)

// storedRun writes a run of two sites as JSON and returns the file.
func storedRun(t *testing.T) string {
	t.Helper()
	d, err := draws.New([]draws.Site{{Name: "mu", Size: 1}, {Name: "theta", Shape: []int{2, 2}, Offset: 1, Size: 4}},
		[]string{"lp", "divergent"}, 2)
	require.NoError(t, err)
	r := rand.New(rand.NewPCG(1, 1))
	for range 100 {
		for c := range 2 {
			x := make([]float64, 5)
			for k := range x {
				x[k] = r.NormFloat64()
			}
			require.NoError(t, d.AppendChain(c, x, []float64{-1, 0}))
		}
	}
	path := filepath.Join(t.TempDir(), "run.json")
	require.NoError(t, store.WriteJSON(path,
		&store.Inference{Posterior: d, Attrs: map[string]any{"model_name": "eight <schools>", "seed": 17.0}}))
	return path
}

func TestReportWritesAPage(t *testing.T) {
	in, out := storedRun(t), filepath.Join(t.TempDir(), "page.html")
	var stdout, stderr bytes.Buffer
	require.NoError(t, report([]string{in, "-o", out}, &stdout, &stderr))
	page, err := os.ReadFile(out)
	require.NoError(t, err)
	assert.Contains(t, string(page), "<title>eight &lt;schools&gt;</title>")
	assert.Contains(t, string(page), "theta[1,1]")
	assert.Contains(t, string(page), "<dd>17</dd>")
	assert.Empty(t, stdout.String())
	assert.Contains(t, stderr.String(), out)
	left, err := os.ReadDir(filepath.Dir(out))
	require.NoError(t, err)
	assert.Len(t, left, 1)
}

// Numbers of any size make a page, a summary and findings, also where their squares over- or underflow.
func TestReportOfNumbersOfAnySize(t *testing.T) {
	for _, pair := range [][2]string{{"0", "5e-324"}, {"-5e-324", "1e-323"}, {"-1.7e308", "1.7e308"}, {"1e300", "1e300"},
		{"1", "1.0000000000000002"}, {"nan", "1"}, {"inf", "-inf"}} {
		in := filepath.Join(t.TempDir(), "run.csv")
		text := "a,b\n"
		for i := range 100 {
			text += pair[i%2] + "," + pair[i/3%2] + "\n"
		}
		require.NoError(t, os.WriteFile(in, []byte(text), 0o600))
		var stdout, stderr bytes.Buffer
		require.NoError(t, report([]string{in, "-o", "-"}, &stdout, &stderr), "%v", pair)
		require.Contains(t, stdout.String(), ">a</a>", "%v", pair)
		stdout.Reset()
		require.NoError(t, summary([]string{in}, &stdout, &stderr), "%v", pair)
		require.Contains(t, stdout.String(), "r_hat", "%v", pair)
	}
}

func TestReportOptions(t *testing.T) {
	in := storedRun(t)
	var stdout, stderr bytes.Buffer
	require.NoError(t, report([]string{"-title", "My run", in, "-vars", "theta", "-pair=theta[0,1],theta[1,0]", "-o", "-"},
		&stdout, &stderr))
	assert.Contains(t, stdout.String(), "<h1>My run</h1>")
	assert.NotContains(t, stdout.String(), ">mu</a>")
	assert.Contains(t, stdout.String(), ">theta[0,1]</a>")
	assert.Empty(t, stderr.String())
}

func TestReportErrors(t *testing.T) {
	in := storedRun(t)
	gone := filepath.Join(t.TempDir(), "gone.csv")
	for name, c := range map[string]struct {
		args []string
		want error
	}{
		"no file":      {nil, errReportUsage},
		"unknown flag": {[]string{in, "-colour"}, errReportUsage},
		"missing":      {[]string{gone}, fs.ErrNotExist},
		"no such site": {[]string{in, "-vars", "phi", "-o", "-"}, draws.ErrUnknownName},
		"help":         {[]string{"-help"}, flag.ErrHelp},
	} {
		var stdout, stderr bytes.Buffer
		err := report(c.args, &stdout, &stderr)
		assert.Truef(t, errors.Is(err, c.want), "%s: %v", name, err)
		assert.Empty(t, stdout.String(), name)
	}
	var stdout, stderr bytes.Buffer
	assert.ErrorContains(t, report([]string{in, "-o", in}, &stdout, &stderr), "one of the files to read")
	const model = "../../store/testdata/arviz.json"
	assert.ErrorContains(t, report([]string{model, model, "-o", "-"}, &stdout, &stderr), "; -compare FILE compares with")
	// A page that fails leaves nothing, and what was there stays.
	out := filepath.Join(t.TempDir(), "page.html")
	require.NoError(t, os.WriteFile(out, []byte("old"), 0o600))
	assert.Error(t, report([]string{in, "-o", out, "-pair", "nothing"}, &stdout, &stderr))
	text, err := os.ReadFile(out)
	require.NoError(t, err)
	assert.Equal(t, "old", string(text))
	left, err := os.ReadDir(filepath.Dir(out))
	require.NoError(t, err)
	assert.Len(t, left, 1)
}

func TestMixedFlags(t *testing.T) {
	for _, c := range []struct{ args, want []string }{
		{[]string{"a", "-x", "1", "b"}, []string{"a", "b"}},
		{[]string{"-x=1", "--", "-b", "c"}, []string{"-b", "c"}},
		{[]string{"a", "--", "-b", "-x"}, []string{"a", "-b", "-x"}},
	} {
		flags := flag.NewFlagSet("", flag.ContinueOnError)
		x := flags.String("x", "", "")
		got, err := mixed(flags, c.args)
		require.NoError(t, err)
		assert.Equal(t, c.want, got)
		assert.Contains(t, []string{"", "1"}, *x)
	}
}

// Where log likelihoods are stored, in any format, the page has the cross-validation and the Pareto k.
func TestReportShowsCrossValidation(t *testing.T) {
	for _, path := range storeRun(t, 0) {
		var stdout, stderr bytes.Buffer
		require.NoError(t, report([]string{path, "-o", "-"}, &stdout, &stderr))
		assert.Contains(t, stdout.String(), `<section id="loo">`)
		assert.Contains(t, stdout.String(), "<dt>ELPD</dt>")
		assert.Contains(t, stdout.String(), "<tr><td>k above 1: of no use</td><td>0</td></tr>")
	}
	var stdout, stderr bytes.Buffer
	require.NoError(t, report([]string{storedRun(t), "-o", "-"}, &stdout, &stderr))
	assert.NotContains(t, stdout.String(), `id="loo"`)
}

// A run with observed data and predictions has predictive checks, and one with log likelihoods can be compared: the
// model whose log likelihoods are higher by 3 at each of two observations comes first, by 6.
func TestReportComparesAndChecks(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, shift float64) string {
		r := rand.New(rand.NewPCG(1, 1))
		var sets [3]*draws.Draws
		for k := range sets {
			var err error
			sets[k], err = draws.New([]draws.Site{{Name: "y", Shape: []int{2}, Size: 2}}, nil, 2)
			require.NoError(t, err)
			for range 100 {
				for c := range 2 {
					x := []float64{0.1 * r.NormFloat64(), 0.1 * r.NormFloat64()}
					if k == 1 {
						x[0], x[1] = x[0]+shift, x[1]+shift
					}
					require.NoError(t, sets[k].AppendChain(c, x, nil))
				}
			}
		}
		path := filepath.Join(dir, name)
		require.NoError(t, store.WriteJSON(path, &store.Inference{Posterior: sets[0], LogLikelihood: sets[1],
			PosteriorPredictive: sets[2],
			ObservedData:        []store.Array{{Name: "y", Shape: []int{2}, Values: []float64{0, 9}}}}))
		return path
	}
	one, other := write("one.json", -3), write("other.json", 0)
	var stdout, stderr bytes.Buffer
	require.NoError(t, report([]string{one, "-compare", other, "-o", "-"}, &stdout, &stderr))
	text := stdout.String()
	require.Regexp(t, `(?s)<tr><td>other.json</td>.*<tr><td>one.json</td><td>-6.\d ± [^<]*</td><td>-6.0 ± `, text)
	require.Contains(t, text, "Predictive checks")
	require.Regexp(t, `<td>largest</td><td>9</td><td>[^<]*</td><td class="bad">0.000</td>`, text)
	err := report([]string{storedRun(t), "-compare", other, "-o", "-"}, &stdout, &stderr)
	require.ErrorContains(t, err, "there are no log likelihoods to compare")
	err = report([]string{one, "-compare", storedRun(t), "-o", "-"}, &stdout, &stderr)
	require.ErrorContains(t, err, "there are no log likelihoods")
}

// Predictions that cannot be compared with data are named on the page.
func TestReportNamesPredictionsWithoutData(t *testing.T) {
	d, err := draws.New([]draws.Site{{Name: "y", Shape: []int{2}, Size: 2}}, nil, 2)
	require.NoError(t, err)
	for i := range 100 {
		require.NoError(t, d.AppendChain(i%2, []float64{float64(i), float64(i * i % 7)}, nil))
	}
	path := filepath.Join(t.TempDir(), "run.json")
	for want, data := range map[string][]store.Array{
		"Predictions of y were not checked: it is not among the observed data.": nil,
		"Predictions of y were not checked: a draw has 2 numbers and the data 3.": {{Name: "y", Shape: []int{3},
			Values: []float64{1, 2, 3}}},
	} {
		require.NoError(t, store.WriteJSON(path, &store.Inference{Posterior: d, PosteriorPredictive: d, ObservedData: data}))
		var stdout, stderr bytes.Buffer
		require.NoError(t, report([]string{path, "-o", "-"}, &stdout, &stderr))
		require.Contains(t, stdout.String(), want)
		require.NotContains(t, stdout.String(), "Predictive checks")
	}
}
