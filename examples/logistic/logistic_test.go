package main

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/kelvin-ppl/kelvin/infer"
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
	g, err := infer.NewGradient(logPosterior)
	require.NoError(t, err)
	e, err := g.ValueAndGrad(p, data)
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

// A short run of everything: each method by its name, finite numbers, and the files.
func TestShortRun(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, run(context.Background(), options{out: dir, json: true, seed: 1, scale: 0.01}))
	text, err := os.ReadFile(filepath.Join(dir, "summary.json"))
	require.NoError(t, err)
	var s summaryJSON
	require.NoError(t, json.Unmarshal(text, &s))
	for _, name := range []string{"map", "sgld", "sghmc", "sghmc_parallel", "sghmc_minibatch"} {
		m, ok := s.Methods[name]
		require.True(t, ok, name)
		require.Len(t, m.Mean, features)
		require.Len(t, m.SD, features)
		require.FileExists(t, filepath.Join(dir, "draws-"+name+".csv"))
	}
	require.FileExists(t, filepath.Join(dir, "marginals.png"))
	// The mode solves the score equations; its value was computed by Newton's method in another language.
	mode := []float64{0.38467201, 1.07170486, -0.24003955, 0.02130468, -0.15490855, 0.58312568, 0.32048426, 0.12425317}
	require.InDeltaSlice(t, mode, s.Methods["map"].Mean, 1e-7)
}
