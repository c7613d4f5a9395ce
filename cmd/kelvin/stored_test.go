package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/store"
)

// storeRun writes independent draws in all formats; the first of bad of them diverged and are NaN.
func storeRun(t *testing.T, bad int) (paths []string) {
	t.Helper()
	sites := []draws.Site{{Name: "mu", Size: 1}, {Name: "theta", Shape: []int{2}, Offset: 1, Size: 2}}
	d, err := draws.New(sites, []string{"lp", "divergent", "tree_depth", "energy"}, 4)
	require.NoError(t, err)
	ll, err := draws.New([]draws.Site{{Name: "y", Shape: []int{3}, Size: 3}}, nil, 4)
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range 500 {
		for c := range 4 {
			x := []float64{rng.NormFloat64(), 10 + rng.NormFloat64(), 20 + rng.NormFloat64()}
			diverged := 0.
			if i < bad {
				diverged, x[0] = 1, math.NaN()
			}
			require.NoError(t, d.AppendChain(c, x, []float64{-1, diverged, 3, rng.NormFloat64()}))
			require.NoError(t, ll.AppendChain(c, []float64{-x[1] * .01, -x[2] * .01, -1}, nil))
		}
	}
	dir := t.TempDir()
	inf := &store.Inference{Posterior: d, LogLikelihood: ll}
	_, err = store.WriteCSV(filepath.Join(dir, "run"), inf, store.CSVOptions{})
	require.NoError(t, err)
	require.NoError(t, store.WriteJSON(filepath.Join(dir, "run.json"), inf))
	require.NoError(t, store.WriteZarr(filepath.Join(dir, "run.zarr"), inf, store.ZarrOptions{}))
	return []string{filepath.Join(dir, "run_*.csv"), dir, filepath.Join(dir, "run.json"), filepath.Join(dir, "run.zarr")}
}

func runStored(args ...string) (code int, out, err string) {
	var stdout, stderr bytes.Buffer
	a := &app{out: &stdout, err: &stderr}
	code = a.run(context.Background(), args)
	return code, stdout.String(), stderr.String()
}

// All formats give the same table and the same diagnosis.
func TestSummaryReadsEveryFormat(t *testing.T) {
	var first string
	for _, path := range storeRun(t, 0) {
		code, out, stderr := runStored("summary", path)
		assert.Equal(t, exitOK, code, stderr)
		assert.Empty(t, stderr)
		if first == "" {
			first = out
		}
		assert.Equal(t, first, out)
	}
	assert.Contains(t, first, "hdi_3%")
	assert.Contains(t, first, "theta[1]")
	assert.Equal(t, 4, strings.Count(first, "\n"))
}

func TestSummaryFlags(t *testing.T) {
	path := storeRun(t, 0)[2]
	code, out, _ := runStored("summary", path, "-hdi", "0.9", "-vars", "theta")
	assert.Equal(t, exitOK, code)
	assert.Contains(t, out, "hdi_5%")
	assert.NotContains(t, out, "mu")

	code, out, _ = runStored("summary", "-json", "-vars=mu", path)
	assert.Equal(t, exitOK, code)
	var got summaryJSON
	require.NoError(t, json.Unmarshal([]byte(out), &got))
	require.Len(t, got.Rows, 1)
	assert.Equal(t, []any{"mu", 4, 500, 0.94}, []any{got.Rows[0].Name, got.Chains, got.Draws, got.HDIProb})
	assert.InDelta(t, 0, *got.Rows[0].Mean, 4/math.Sqrt(2000), "the mean of 2000 standard normals")
	assert.InDelta(t, 1, *got.Rows[0].SD, 4/math.Sqrt(4000), "their deviation")

	code, out, _ = runStored("summary", "-json", storeRun(t, 1)[2])
	assert.Equal(t, exitOK, code)
	assert.Contains(t, out, `"mean": null`, "JSON has no NaN")
}

func TestDiagnose(t *testing.T) {
	for _, path := range storeRun(t, 0) {
		code, out, stderr := runStored("diagnose", path)
		assert.Equal(t, exitOK, code, out+stderr)
		assert.Contains(t, out, "4 chains of 500 draws")
		if strings.HasSuffix(path, ".json") || strings.HasSuffix(path, ".zarr") {
			assert.Contains(t, out, "pareto_k", "the log likelihoods are checked")
		}
	}
	path := storeRun(t, 2)[2]
	code, out, stderr := runStored("diagnose", path)
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, out, "serious: 8 of 2000 transitions diverged")
	assert.Empty(t, stderr, "the report says it all")

	code, out, _ = runStored("diagnose", "-json", path)
	assert.Equal(t, exitFailed, code)
	var got diagnoseJSON
	require.NoError(t, json.Unmarshal([]byte(out), &got))
	assert.False(t, got.OK)
	assert.EqualValues(t, "divergence", got.Findings[0].Code)
	assert.Equal(t, "serious", got.Findings[0].Severity)

	code, out, _ = runStored("diagnose", "-depth", "3", "-vars", "theta", storeRun(t, 0)[2])
	assert.Equal(t, exitOK, code, "a reached depth is a warning, nothing serious")
	assert.Contains(t, out, "tree depth")
}

func TestStoredErrors(t *testing.T) {
	path := storeRun(t, 0)[2]
	empty := filepath.Join(t.TempDir(), "empty.json")
	require.NoError(t, os.WriteFile(empty, []byte(`{"observed_data": {"y": [1]}}`), 0o644))
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"summary", exitUsage, "kelvin: summary: no file is given; see kelvin summary -help\n"},
		{"summary -nothing " + path, exitUsage, "flag provided but not defined: -nothing; see kelvin summary -help"},
		{"summary -hdi 2 " + path, exitUsage, "-hdi is 2, want a probability above 0 and at most 1"},
		{"summary -vars nu " + path, exitFailed, `no site "nu"; the sites are "mu", "theta"`},
		{"summary nothing.json", exitFailed, "store: open: stat nothing.json"},
		{"summary " + empty, exitFailed, "there is no posterior"},
		{"diagnose -depth -1 " + path, exitUsage, "-depth is -1, want at least 1"},
		{"diagnose", exitUsage, "diagnose: no file is given"},
		{"report", exitUsage, "report: no file is given"},
		{"help summary", exitOK, "-hdi P"},
		{"diagnose -h", exitOK, "exits with 0 if there is nothing serious"},
		{"help report", exitOK, "usage: kelvin report"},
	} {
		code, out, stderr := runStored(strings.Fields(c.args)...)
		assert.Equal(t, c.code, code, c.args)
		assert.Contains(t, stderr, c.want)
		assert.Empty(t, out)
	}
}

// An incomplete last line is mentioned, and the rest is summarised.
func TestStoredNotes(t *testing.T) {
	paths, err := filepath.Glob(storeRun(t, 0)[0])
	require.NoError(t, err)
	text, err := os.ReadFile(paths[0])
	require.NoError(t, err)
	cut := bytes.LastIndex(text, []byte("\n# \n#  Elapsed"))
	require.NoError(t, os.WriteFile(paths[0], text[:cut-3], 0o644))
	code, out, stderr := runStored(append([]string{"summary"}, paths...)...)
	assert.Equal(t, exitOK, code)
	assert.Contains(t, stderr, "is incomplete, as a killed run leaves it, and was dropped")
	assert.Contains(t, out, "mu")
}

// Names that turn the order of text, of a file by somebody else, are written out in every output; JSON keeps them.
func TestNamesThatTurnText(t *testing.T) {
	const name = "safe\u202e]0[\u2066x"
	d, err := draws.New([]draws.Site{{Name: name, Shape: []int{1}, Size: 1}}, nil, 2)
	require.NoError(t, err)
	for i := range 50 {
		for c := range 2 {
			require.NoError(t, d.AppendChain(c, []float64{float64(c + i%2)}, nil))
		}
	}
	file := filepath.Join(t.TempDir(), "run.json")
	require.NoError(t, store.WriteJSON(file, &store.Inference{Posterior: d,
		Attrs: map[string]any{"model_name": "\u202emodel"}}))
	var table, library strings.Builder
	rows, err := d.Summary()
	require.NoError(t, err)
	require.NoError(t, draws.FormatTable(&table, rows, nil))
	summary, err := diag.Summary(d, diag.SummaryOptions{})
	require.NoError(t, err)
	report, err := diag.Diagnose(d, diag.DiagnoseOptions{})
	require.NoError(t, err)
	require.NotEmpty(t, report.Findings)
	fmt.Fprint(&library, summary, report)
	texts := map[string]string{"draws.FormatTable": table.String(), "diag": library.String()}
	for _, args := range [][]string{{"summary", file}, {"summary", "-json", file}, {"diagnose", file},
		{"diagnose", "-json", file}, {"report", file, "-o", "-"}, {"summary", file, "-vars", name + "?"}} {
		_, out, err := runStored(args...)
		texts[strings.Join(args, " ")] = out + err
	}
	for of, text := range texts {
		assert.NotRegexp(t, `[\x{061c}\x{200e}\x{200f}\x{202a}-\x{202e}\x{2066}-\x{2069}]`, text, of)
		assert.Contains(t, text, `\u202e`, of)
	}
	_, out, _ := runStored("summary", "-json", file)
	var back summaryJSON
	require.NoError(t, json.Unmarshal([]byte(out), &back))
	assert.Equal(t, name+"[0]", back.Rows[0].Name)
}
