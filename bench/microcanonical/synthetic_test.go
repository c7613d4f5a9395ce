package main

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/draws"
)

// chains are 50 draws of x, of two elements, in a chain for each of leapfrogs, which are the steps of its draws.
// Element slow is an autoregression of coefficient 0.9, the other is independent noise: so slow has the smaller ESS.
func chains(t testing.TB, leapfrogs []float64, slow int, divergent func(draw, chain int) bool) *draws.Draws {
	t.Helper()
	d, err := draws.New([]draws.Site{{Name: "x", Shape: []int{2}, Size: 2}},
		[]string{draws.StatLeapfrog, draws.StatDivergent}, len(leapfrogs))
	require.NoError(t, err)
	random := rand.New(rand.NewPCG(1, 2))
	last := make([]float64, len(leapfrogs))
	for i := range 50 {
		var x, stats []float64
		for c, n := range leapfrogs {
			last[c] = 0.9*last[c] + random.NormFloat64()
			row := [2]float64{}
			row[slow], row[1-slow] = last[c], random.NormFloat64()
			bad := 0.0
			if divergent(i, c) {
				bad = 1
			}
			x, stats = append(x, row[:]...), append(stats, n, bad)
		}
		require.NoError(t, d.Append(x, stats))
	}
	return d
}
