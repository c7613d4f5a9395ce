package evidence

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every scheme draws a particle of weight W on average N·W times, within four standard errors, and residual and
// systematic resampling at least ⌊N·W⌋ times.
func TestResamplingIsUnbiased(t *testing.T) {
	w := []float64{0.05, 0, 0.4, 0.25, 0.01, 0.29}
	n := len(w)
	const rounds = 20000
	rng := rand.New(rand.NewPCG(1, 2))
	for _, r := range []Resampling{Systematic, Stratified, Multinomial, Residual} {
		sum, square := make([]float64, n), make([]float64, n)
		for range rounds {
			u := make([]float64, n)
			for i := range u {
				u[i] = rng.Float64()
			}
			a := r.ancestors(w, u)
			require.Len(t, a, n)
			require.True(t, slices.IsSorted(a))
			counts := make([]float64, n)
			for _, k := range a {
				counts[k]++
			}
			for k, c := range counts {
				sum[k] += c
				square[k] += c * c
				if r == Systematic || r == Residual {
					require.GreaterOrEqual(t, c, math.Floor(float64(n)*w[k]))
				}
			}
		}
		for k := range w {
			mean := sum[k] / rounds
			sd := math.Sqrt(square[k]/rounds - mean*mean)
			require.InDelta(t, float64(n)*w[k], mean, 4*sd/math.Sqrt(rounds)+1e-12, "%s, particle %d", r, k)
		}
	}
}

func TestLogMeanExp(t *testing.T) {
	// exp of the numbers is 1 and 3 times e^1000: mean 2, and the standard error of the mean 1, so ½ of it.
	v, se := logMeanExp([]float64{1000, 1000 + math.Log(3)})
	require.InDelta(t, 1000+math.Ln2, v, 1e-12)
	require.InDelta(t, 0.5, se, 1e-12)
	require.InDelta(t, 2, effective([]float64{-3, -3}), 1e-12)
	require.Equal(t, math.Inf(-1), logSumExp([]float64{math.Inf(-1)}))
}
