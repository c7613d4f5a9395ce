package main

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/internal/report"
	"github.com/kelvin-ppl/kelvin/internal/testkit"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/store"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/require"
)

// The log posterior against a sum written out in plain Go, at two points, one by one and as two chains.
func TestLogPosterior(t *testing.T) {
	data, _, err := readPima()
	require.NoError(t, err)
	layout, err := infer.NewLayout(infer.Shapes{"w": {features}})
	require.NoError(t, err)
	points := []float64{0.4, 1, -0.2, 0, -0.1, 0.6, 0.3, 0.1, 30, -20, 10, 0, 5, -5, 40, 1}
	p, err := infer.NewParams(layout, points)
	require.NoError(t, err)
	g, err := infer.NewGradient(infer.Mean(logPosterior, patients))
	require.NoError(t, err)
	e, err := g.ValueAndGrad(p, data, 0)
	require.NoError(t, err)

	x, y := make([]float64, patients*features), make([]float64, patients)
	require.NoError(t, torch.CopyTo(x, data["x"]))
	require.NoError(t, torch.CopyTo(y, data["y"]))
	for k := range 2 {
		w := points[k*features : (k+1)*features]
		want := 0.0
		for i := range patients {
			eta := 0.0
			for j, v := range w {
				eta += v * x[i*features+j]
			}
			// log σ(s) = −log(1 + exp(−s)), in the form that does not overflow.
			s := y[i] * eta
			want += math.Min(s, 0) - math.Log1p(math.Exp(-math.Abs(s)))
		}
		want /= patients
		for _, v := range w {
			want -= 0.5 * v * v / patients
		}
		require.InDelta(t, want, e.Values[k], 1e-12*math.Abs(want))
	}
}

// The model in the language is the hand-written one, up to the constant of the prior: in value and gradient, on all
// data and on minibatches, each of which stands for all.
func TestLanguageIsTheHandwrittenModel(t *testing.T) {
	data, _, err := readPima()
	require.NoError(t, err)
	for seed := range uint64(5) {
		difference, err := disagreement(data, 20, seed)
		require.NoError(t, err)
		require.LessOrEqual(t, difference, 1e-10)
	}
	// The comparison is not blind: it sees a log density that is larger by a thousandth.
	program, err := ppl.Compile(ppl.Scale(regression, 1.001), data)
	require.NoError(t, err)
	at, err := infer.Zeros(program.Layout())
	require.NoError(t, err)
	scaled, err := valueAndGrad(program.Target(), at, data)
	require.NoError(t, err)
	plain, err := valueAndGrad(infer.Mean(logPosterior, patients), at, data)
	require.NoError(t, err)
	require.Greater(t, math.Abs(scaled[0]-plain[0]-priorConstant), 1e-4)
}

func TestUnknownModel(t *testing.T) {
	err := run(context.Background(), options{out: t.TempDir(), json: true, model: "other", scale: 0.01})
	require.ErrorContains(t, err, `"other"`)
	require.ErrorContains(t, err, "handwritten")
}

// A short run of everything, with both forms of the model: each method by its name, finite numbers, and the files.
func TestShortRun(t *testing.T) {
	for _, form := range []string{language, handwritten} {
		t.Run(form, func(t *testing.T) { shortRun(t, form) })
	}
}

func shortRun(t *testing.T, form string) {
	dir := t.TempDir()
	require.NoError(t, run(context.Background(), options{out: dir, json: true, seed: 1, scale: 0.01, model: form}))
	text, err := os.ReadFile(filepath.Join(dir, "summary.json"))
	require.NoError(t, err)
	var s summaryJSON
	require.NoError(t, json.Unmarshal(text, &s))
	for _, name := range []string{"map", "sgld", "sghmc", "sghmc_parallel", "sghmc_minibatch", "nuts", "vi", "vi_dense",
		"laplace", "laplace_ggn"} {
		m, ok := s.Methods[name]
		require.True(t, ok, name)
		require.Len(t, m.Mean, features)
		require.Len(t, m.SD, features)
		require.FileExists(t, filepath.Join(dir, name, "draws_1.csv"))
	}
	require.FileExists(t, filepath.Join(dir, "marginals.png"))
	// The mode solves the score equations; its value was computed by Newton's method in another language.
	mode := []float64{0.38467201, 1.07170486, -0.24003955, 0.02130468, -0.15490855, 0.58312568, 0.32048426, 0.12425317}
	require.InDeltaSlice(t, mode, s.Methods["map"].Mean, 1e-7)
	// For a logistic regression the Gauss-Newton matrix is the Hessian: the same draws, from all data at once and in
	// batches of 32.
	require.InDeltaSlice(t, s.Methods["laplace"].Mean, s.Methods["laplace_ggn"].Mean, 1e-9)
	require.InDeltaSlice(t, s.Methods["laplace"].SD, s.Methods["laplace_ggn"].SD, 1e-9)
}

// The page of the draws that the demo writes has eight parameters, and no finding.
func TestReportOfTheDraws(t *testing.T) {
	data, names, err := readPima()
	require.NoError(t, err)
	program, err := posterior(language, data)
	require.NoError(t, err)
	start, err := infer.Zeros(program.Layout())
	require.NoError(t, err)
	var outcomes []outcome
	for _, f := range fits(1) {
		if f.name != "map" && f.name != "nuts" {
			continue
		}
		from, err := f.start(start, outcomes)
		require.NoError(t, err)
		o, err := f.fit(context.Background(), program, from, options{seed: 1, json: true})
		require.NoError(t, err)
		outcomes = append(outcomes, o)
	}
	dir := t.TempDir()
	require.NoError(t, writeFiles(dir, summaryJSON{}, outcomes, names))
	inf, err := store.Open(filepath.Join(dir, "nuts"))
	require.NoError(t, err)
	var page bytes.Buffer
	require.NoError(t, report.Report(&page, inf.Posterior, report.Options{}))
	dom := testkit.Browser(t, page.String(), "")
	require.Equal(t, features, strings.Count(dom, `data-plot="trace"`))
	require.Contains(t, dom, "No problems found.")
	require.NotContains(t, dom, `class="bad"`)
}
