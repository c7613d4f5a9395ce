package main

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/diag"
)

// meanOf divides gradients of the log posterior by the number of data.
func meanOf(gradient []float64, data float64) []float64 {
	mean := make([]float64, len(gradient))
	for i, v := range gradient {
		mean[i] = v / data
	}
	return mean
}

// normals are draws of a standard normal in two dimensions, times scale, and the gradients of its log density there.
func normals(seed uint64, n int, scale float64) (x, gradient []float64) {
	rng := rand.New(rand.NewPCG(seed, 1))
	for range 2 * n {
		v := scale * rng.NormFloat64()
		x, gradient = append(x, v), append(gradient, -v)
	}
	return x, gradient
}

// By hand for two draws 0 and 1 in one dimension with gradients 4 and -2 over 2 data: s = 2 and -1. The diagonal is
// 1 + s² = 5 and 2; each other pair is exp(-1/2) (1 - 1 + u·(s(y) - s(x)) + s s) = exp(-1/2) (3 - 2). The discrepancy
// itself has -3 there. Mean: (7 + 2 exp(-1/2)) / 4.
func TestKSDTable3(t *testing.T) {
	x, s := []float64{0, 1}, meanOf([]float64{4, -2}, 2)
	require.InDelta(t, math.Sqrt((7+2*math.Exp(-0.5))/4), ksdTable3(x, s, 1, 0, 0), 1e-15)
	r, err := diag.KSD(x, s, 1, diag.Gaussian{})
	require.NoError(t, err)
	require.InDelta(t, (7-2*5*math.Exp(-0.5))/4, r.V, 1e-15)

	// Subsets estimate the same mean, and depend on the seed alone.
	x, g := normals(12, 400, 1)
	all := ksdTable3(x, g, 2, 0, 0)
	const seeds = 20
	mean, squares := 0.0, 0.0
	for seed := range uint64(seeds) {
		v := ksdTable3(x, g, 2, 100, seed)
		require.Equal(t, v, ksdTable3(x, g, 2, 100, seed))
		mean += v * v / seeds
		squares += v * v * v * v / seeds
	}
	se := math.Sqrt((squares - mean*mean) / (seeds - 1))
	require.InDelta(t, all*all, mean, 4*se)
}

// With the standard normal as target and draws of it scaled by c, the number of the table falls as c rises, where a
// discrepancy would be lowest at c = 1: it is no measure of quality.
func TestKSDTable3FallsWithSpread(t *testing.T) {
	last := math.Inf(1)
	for _, c := range []float64{0.7, 1, 1.3} {
		x, g := normals(13, 500, c)
		v := ksdTable3(x, meanOf(g, 1000), 2, 0, 0)
		require.Less(t, v, last)
		last = v
	}
}
