package score

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/sample"
)

// Exact data come back; with noise, limits over repetitions scatter around the truth as SE says.
func TestFitEnsembleLimit(t *testing.T) {
	truth := EnsembleLimit{Limit: 0.31, A1: 2.5, A2: -17}
	sizes := []int{20, 25, 30, 50, 80, 100, 200, 400}
	scores := make([]float64, len(sizes))
	for i, s := range sizes {
		scores[i] = 0.31 + 2.5/float64(s) - 17/float64(s*s)
		require.InDelta(t, scores[i], truth.At(s), 1e-15)
	}
	fit, err := FitEnsembleLimit(sizes, scores)
	require.NoError(t, err)
	require.InDelta(t, 0.31, fit.Limit, 1e-13)
	require.InDelta(t, 2.5, fit.A1, 1e-10)
	require.InDelta(t, -17, fit.A2, 1e-8)
	require.Less(t, fit.SE, 1e-12)

	rng := source(60)
	var limits, variances []float64
	for range 2000 {
		noisy := make([]float64, len(scores))
		for i, v := range scores {
			noisy[i] = v + 0.01*rng.NormFloat64()
		}
		fit, err := FitEnsembleLimit(sizes, noisy)
		require.NoError(t, err)
		limits, variances = append(limits, fit.Limit), append(variances, fit.SE*fit.SE)
	}
	mean, variance := sample.MeanVar(limits)
	require.InDelta(t, 0.31, mean, 4*math.Sqrt(variance/2000))
	expected, se := meanSE(variances)
	require.InDelta(t, variance, expected, 4*math.Hypot(se, variance*math.Sqrt(2.0/2000)))

	three, err := FitEnsembleLimit([]int{20, 40, 80}, []float64{truth.At(20), truth.At(40), truth.At(80)})
	require.NoError(t, err)
	require.InDelta(t, 0.31, three.Limit, 1e-12)
	require.True(t, math.IsNaN(three.SE))
}

func TestFitEnsembleLimitErrors(t *testing.T) {
	_, err := FitEnsembleLimit([]int{1, 2}, []float64{1})
	require.ErrorIs(t, err, draws.ErrSize)
	_, err = FitEnsembleLimit([]int{1, 2, 2, 1}, []float64{1, 1, 1, 1})
	require.EqualError(t, err, "diag/score: ensemble limit: 2 different sizes, want at least 3")
	_, err = FitEnsembleLimit([]int{1, 2, 0}, []float64{1, 1, 1})
	require.ErrorIs(t, err, draws.ErrRange)
	_, err = FitEnsembleLimit([]int{1, 2, 3}, []float64{1, 1, nan})
	require.ErrorIs(t, err, diag.ErrNotFinite)
}
