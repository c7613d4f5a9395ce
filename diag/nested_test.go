package diag

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/draws"
)

// By hand: groups {1, 3}, {5, 9} of one draw each: means 2 and 7, B = 12.5, W = (2 + 8)/2. With chains of two draws {0,
// 2}, {2, 4} and {4, 6}, {8, 10} the means of the chains are those of before, and W grows by the variance within, 2.
func TestRHatByHand(t *testing.T) {
	r, err := NestedRHat([][]float64{{1}, {3}, {5}, {9}}, 2)
	require.NoError(t, err)
	require.InDelta(t, math.Sqrt(1+12.5/5), r, 1e-14)
	r, err = NestedRHat([][]float64{{0, 2}, {2, 4}, {4, 6}, {8, 10}}, 2)
	require.NoError(t, err)
	require.InDelta(t, math.Sqrt(1+12.5/7), r, 1e-14)
}

// Of independent normal draws B is chi-squared: B·m/σ² · (G−1) ~ χ²(G−1), W → σ², so that R̂² − 1 has the mean 1/m and
// the standard deviation √(2/(G−1))/m. Starts that are not forgotten are found with a single draw of each chain.
func TestRHatOfManyShortChains(t *testing.T) {
	const groups, m = 64, 16
	rng := rand.New(rand.NewPCG(1, 2))
	x := make([][]float64, groups*m)
	for k := range x {
		x[k] = []float64{rng.NormFloat64()}
	}
	r, err := NestedRHat(x, groups)
	require.NoError(t, err)
	// W has a relative error of √(2/960), which is small beside that of B.
	require.InDelta(t, 1.0/m, r*r-1, 4*math.Sqrt(2.0/(groups-1)+2.0/960)/m)
	for k := range x {
		x[k][0] += float64(k / m % 2)
	}
	far, err := NestedRHat(x, groups)
	require.NoError(t, err)
	require.InDelta(t, 0.25, far*far-1-1.0/m, 0.15) // the variance of 0 and 1, in halves
}

func TestRHatErrors(t *testing.T) {
	for _, c := range []struct {
		x      [][]float64
		groups int
	}{{nil, 2}, {[][]float64{{1}, {2}}, 1}, {[][]float64{{1}, {2}, {3}}, 2}, {[][]float64{{1}, {2}}, 2},
		{[][]float64{{1, 2}, {2}}, 2}, {[][]float64{{}, {}, {}, {}}, 2}} {
		_, err := NestedRHat(c.x, c.groups)
		require.ErrorIs(t, err, draws.ErrSize)
	}
	still, err := NestedRHat([][]float64{{1}, {1}, {2}, {2}}, 2)
	require.NoError(t, err)
	require.True(t, math.IsInf(still, 1))
}
