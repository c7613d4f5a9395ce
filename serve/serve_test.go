package serve_test

import (
	"bytes"
	"context"
	"math"
	"os"
	"sync"
	"testing"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer/hmc/kernel"
	"github.com/kelvin-ppl/kelvin/serve"
	"github.com/kelvin-ppl/kelvin/store"
	"github.com/stretchr/testify/require"
)

// stored is eight schools as version 1 of the format has it, which must stay readable.
const stored = "testdata/eight_schools.kelvin"

func load(t testing.TB, path string) *serve.Model {
	m, err := serve.Load(bytes.NewReader(read(t, path)))
	require.NoError(t, err)
	return m
}

func read(t testing.TB, path string) []byte {
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return b
}

// A stored file has the density of eight schools, written out here.
func TestStored(t *testing.T) {
	m := load(t, stored)
	require.Equal(t, 10, m.Dim())
	require.EqualValues(t, 8, m.Data())
	require.Equal(t, []string{"mu", "tau", "theta", "theta_decentred"}, m.Names())
	require.Equal(t, "tau", m.Sites()[1].Name)
	y, sigma := []float64{28, 8, -3, 7, -1, 1, 18, 12}, []float64{15, 10, 16, 11, 9, 11, 10, 18}
	logp := func(x []float64) float64 {
		mu, tau := x[0], math.Exp(x[1])
		v := -mu*mu/50 - math.Log1p(tau*tau/25) + x[1]
		for j, z := range x[2:] {
			r := (y[j] - mu - tau*z) / sigma[j]
			v -= z*z/2 + r*r/2
		}
		return v
	}
	x, grad, zero := make([]float64, 10), make([]float64, 10), make([]float64, 10)
	constant := m.LogDensity(zero, grad) - logp(zero)
	for i := range x {
		x[i] = math.Sin(float64(3 * i))
	}
	require.InDelta(t, logp(x)+constant, m.LogDensity(x, grad), 1e-12)
	for i := range x {
		at := x[i]
		x[i] = at + 1e-5
		up := logp(x)
		x[i] = at - 1e-5
		require.InDelta(t, (up-logp(x))/2e-5, grad[i], 1e-8)
		x[i] = at
	}
	values := m.Constrain(x)
	require.InDelta(t, math.Exp(x[1]), values["tau"][0], 1e-15)
	require.InDelta(t, x[0]+math.Exp(x[1])*x[4], values["theta"][2], 1e-14)
	likelihood, err := m.LogLikelihood(x)
	require.NoError(t, err)
	require.Len(t, likelihood["y"], 8)
}

// Draws of the stored model have the known means of models.EightSchools, and package diag and store take them.
func TestSample(t *testing.T) {
	m := load(t, stored)
	seen := 0
	o := kernel.Options{Seed: 3, Record: func(int, int, []float64, kernel.Info) error { seen++; return nil }}
	result, err := serve.Sample(context.Background(), m, o)
	require.NoError(t, err)
	require.Equal(t, 8000, seen)
	table, err := diag.Summary(result.Draws, diag.SummaryOptions{})
	require.NoError(t, err)
	for _, r := range table.Rows {
		if want, ok := map[string]float64{"mu": 4.40, "tau": 3.60}[r.Name]; ok {
			require.Less(t, math.Abs(r.Mean-want), 4*r.MCSEMean+0.005, r.Name)
		}
	}
	report, err := diag.Diagnose(result.Draws, diag.DiagnoseOptions{})
	require.NoError(t, err)
	require.True(t, report.OK(), report.String())
	path := t.TempDir() + "/run.zarr"
	require.NoError(t, store.WriteZarr(path, &store.Inference{Posterior: result.Draws}, store.ZarrOptions{}))
	again, err := serve.Sample(context.Background(), m, kernel.Options{Seed: 3})
	require.NoError(t, err)
	require.Equal(t, result.Draws.Row(2, 500), again.Draws.Row(2, 500), "the same seed gives the same draws")

	ctx, stop := context.WithCancel(context.Background())
	stop()
	_, err = serve.Sample(ctx, m, kernel.Options{})
	require.ErrorIs(t, err, context.Canceled)
	for _, bad := range []kernel.Options{{Ladder: []float64{1, 2}}, {Chains: -1}, {Kernel: kernel.Microcanonical{}}} {
		_, err := serve.Sample(context.Background(), m, bad)
		require.ErrorContains(t, err, "serve.Sample")
	}
	_, err = m.Draws(result.Draws)
	require.ErrorIs(t, err, draws.ErrLayout)
}

// At a temperature other than 1 the Jacobian keeps its weight, as in package hmc.
func TestTemperature(t *testing.T) {
	m := load(t, stored)
	x := []float64{1, 0.3, 1, -1, 0.5, 0, 0, 2, 1, 0.1}
	at := func(temperature float64) (float64, float64) {
		logp, grad := make([]float64, 1), make([]float64, 10)
		require.NoError(t, m.ValueAndGradAt(x, []float64{temperature}, logp, grad))
		return logp[0], grad[1]
	}
	one, gradOne := at(1)
	three, gradThree := at(3)
	require.InDelta(t, 2*x[1], three-one, 1e-13)
	require.InDelta(t, 2, gradThree-gradOne, 1e-13)
	require.Error(t, m.ValueAndGrad(x, make([]float64, 2), x))
}

// A file that is cut or has a wrong bit anywhere is an error.
func TestDamaged(t *testing.T) {
	good, err := os.ReadFile(stored)
	require.NoError(t, err)
	for n := range good {
		_, err := serve.Load(bytes.NewReader(good[:n]))
		require.ErrorIs(t, err, serve.ErrFile, "%d bytes", n)
	}
	bad := bytes.Clone(good)
	for i := range 8 * len(bad) {
		bad[i/8] ^= 1 << (i % 8)
		_, err := serve.Load(bytes.NewReader(bad))
		require.ErrorIs(t, err, serve.ErrFile, "bit %d", i)
		bad[i/8] ^= 1 << (i % 8)
	}
	_, err = serve.Load(bytes.NewReader(append(bad, 0)))
	require.ErrorIs(t, err, serve.ErrFile)
	bad[16] = 4
	_, err = serve.Load(bytes.NewReader(bad))
	require.ErrorContains(t, err, "version 4")
}

// Other data of the same shapes take the place of the exported ones.
func TestWith(t *testing.T) {
	m := load(t, stored)
	x, grad := make([]float64, 10), make([]float64, 10)
	before := m.LogDensity(x, grad)
	var names []string
	for _, in := range m.Inputs() {
		names = append(names, in.Name)
	}
	require.ElementsMatch(t, []string{"y", "sigma"}, names)
	other, err := m.With(map[string][]float64{"y": make([]float64, 8)})
	require.NoError(t, err)
	want := before
	sigma := []float64{15, 10, 16, 11, 9, 11, 10, 18}
	for i, y := range []float64{28, 8, -3, 7, -1, 1, 18, 12} {
		want += y * y / (2 * sigma[i] * sigma[i])
	}
	require.InDelta(t, want, other.LogDensity(x, grad), 1e-12)
	require.Equal(t, before, m.LogDensity(x, grad))
	for _, data := range []map[string][]float64{{"z": nil}, {"y": {1}}} {
		_, err := m.With(data)
		require.ErrorContains(t, err, "serve.With")
	}
}

// Goroutines share a model.
func TestConcurrent(t *testing.T) {
	m := load(t, stored)
	x, grad := make([]float64, 10), make([]float64, 10)
	before := m.LogDensity(x, grad)
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			own := make([]float64, 10)
			for range 1000 {
				if v := m.LogDensity(x, own); v != before {
					t.Errorf("%v and %v", v, before)
				}
			}
		})
	}
	wait.Wait()
}
