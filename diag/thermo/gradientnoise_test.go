package thermo

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/sample"
)

// Against two-pass formulas, also where the mean is 1e8 times the spread.
func TestGradientNoise(t *testing.T) {
	const b, d = 40, 6
	rng := source(50)
	rows := make([][]float64, b)
	for i := range rows {
		rows[i] = make([]float64, d)
		for j := range rows[i] {
			rows[i][j] = math.Pow(10, float64(j)) + rng.NormFloat64()*float64(j)
			if j == d-1 {
				rows[i][j] = 1e8 + rng.NormFloat64()
			}
		}
	}
	var g GradientNoise
	for _, row := range rows {
		require.NoError(t, g.Add(row))
	}
	r, err := g.Result()
	require.NoError(t, err)
	trace := 0.0
	for j := range d {
		mean, variance := sample.MeanVar(column(rows, j))
		require.InEpsilon(t, mean, r.Mean[j], 1e-14)
		require.InDelta(t, variance, r.Variance[j], 1e-7*max(variance, 1))
		trace += variance
	}
	require.InEpsilon(t, trace, r.Trace, 1e-7)
	require.InEpsilon(t, trace/d, r.MeanVariance, 1e-7)
	require.Zero(t, r.Variance[0])
	require.Equal(t, b, r.Batches)

	sites, err := r.SiteVariances([]draws.Site{{Name: "a", Size: 2}, {Name: "b", Offset: 2, Size: 4}})
	require.NoError(t, err)
	require.InDelta(t, (r.Variance[0]+r.Variance[1])/2, sites[0], 1e-12)
	require.InDelta(t, (r.Variance[2]+r.Variance[3]+r.Variance[4]+r.Variance[5])/4, sites[1], 1e-12)
	beta, err := r.Beta(0.5)
	require.NoError(t, err)
	require.InEpsilon(t, 4*r.MeanVariance, beta, 1e-15)
	r.Mean[0] = 77 // a result is a copy
	fresh, err := g.Result()
	require.NoError(t, err)
	require.NotEqual(t, 77.0, fresh.Mean[0])
}

// The ratio is what heats a momentum m' = (1 - γ)m + εg + noise: with noise of variance s from the gradient and v
// injected, the stationary variance is (s + v)/(1 - (1-γ)²), 1 + s/v times that without gradient noise.
func TestNoiseShare(t *testing.T) {
	r := &GradientNoiseResult{Batches: 10, Mean: make([]float64, 4), Variance: []float64{1, 0, 7, 0}, Trace: 8,
		MeanVariance: 2}
	s, err := r.Against(0.1, 0.01)
	require.NoError(t, err)
	require.InDelta(t, 2, s.Mean, 1e-12)
	require.InDelta(t, 7, s.Largest, 1e-12)
	require.Equal(t, 2, s.At)
	require.True(t, s.Dominates)
	require.Equal(t, "gradient noise is 2 times the injected noise and dominates it: use a smaller step, larger "+
		"batches, more friction, or a thermostat", s.Message)
	for injected, words := range map[float64]string{0.04: "at element 2", 0.1: "heats the sampler",
		1: "hardly matters"} {
		s, err = r.Against(0.1, injected)
		require.NoError(t, err)
		require.False(t, s.Dominates)
		require.Contains(t, s.Message, words)
	}
	const gamma, v, share = 0.2, 0.05, 0.6
	rng := source(51)
	m, chain := 0.0, make([]float64, 40000)
	for i := range chain {
		m = (1-gamma)*m + math.Sqrt(share*v)*rng.NormFloat64() + math.Sqrt(v)*rng.NormFloat64()
		chain[i] = m * m
	}
	mean, _ := sample.MeanVar(chain)
	require.InDelta(t, v/(1-(1-gamma)*(1-gamma))*(1+share), mean, 4*diag.MCSEMean([][]float64{chain}))
}

func TestGradientNoiseErrors(t *testing.T) {
	var g GradientNoise
	require.EqualError(t, g.Add(nil), "diag/thermo: gradient noise: a gradient of 0 elements, want at least 1")
	require.EqualError(t, g.Add([]float64{1, nan}), "diag/thermo: gradient noise: element 1 of batch 0 is NaN")
	_, err := g.Result()
	require.EqualError(t, err, "diag/thermo: gradient noise: 0 gradients, want at least 2")
	require.NoError(t, g.Add([]float64{1, 2}))
	require.EqualError(t, g.Add([]float64{1}), "diag/thermo: gradient noise: a gradient of 1 elements, want 2")
	require.NoError(t, g.Add([]float64{1, 4}))
	r, err := g.Result()
	require.NoError(t, err)
	require.Equal(t, []float64{0, 2}, r.Variance) // the refused ones were not taken
	_, err = r.Beta(0)
	require.ErrorIs(t, err, draws.ErrRange)
	_, err = r.Against(1, 0)
	require.EqualError(t, err, "diag/thermo: gradient noise: injected variance is 0, want a positive number")
	for _, s := range []draws.Site{{Name: "w", Offset: 1, Size: 2}, {Name: "w", Offset: -1, Size: 1}, {Name: "w"},
		{Name: "w", Offset: 5, Size: 1}} {
		_, err = r.SiteVariances([]draws.Site{s})
		require.ErrorIs(t, err, draws.ErrSize)
	}
}

// column is element j of each row.
func column(rows [][]float64, j int) []float64 {
	x := make([]float64, len(rows))
	for i, row := range rows {
		x[i] = row[j]
	}
	return x
}
