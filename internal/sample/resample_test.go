package sample

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// A grid with a uniform offset draws an index of weight W on average N·W times, within four standard errors, and at
// least ⌊N·W⌋ times.
func TestSystematic(t *testing.T) {
	w := []float64{0.05, 0, 0.4, 0.25, 0.01, 0.29}
	n := len(w)
	const rounds = 20000
	rng := rand.New(rand.NewPCG(1, 2))
	sum, square := make([]float64, n), make([]float64, n)
	for range rounds {
		a := Systematic(w, n, rng.Float64())
		require.Len(t, a, n)
		require.True(t, slices.IsSorted(a))
		counts := make([]float64, n)
		for _, k := range a {
			counts[k]++
		}
		for k, c := range counts {
			sum[k] += c
			square[k] += c * c
			require.GreaterOrEqual(t, c, math.Floor(float64(n)*w[k]))
		}
	}
	for k := range w {
		mean := sum[k] / rounds
		sd := math.Sqrt(square[k]/rounds - mean*mean)
		require.InDelta(t, float64(n)*w[k], mean, 4*sd/math.Sqrt(rounds)+1e-12, "index %d", k)
	}
}
