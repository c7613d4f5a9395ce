package score

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/draws"
)

// The parts are those of the mixture, whose variance is known from its moments.
func TestVarianceOf(t *testing.T) {
	means, variances := []float64{1, 3, 2, 6}, []float64{0.5, 1, 0, 2.5}
	first, second := 0.0, 0.0
	for i, m := range means {
		first += m / 4
		second += (variances[i] + m*m) / 4
	}
	p, err := VarianceOf(means, variances)
	require.NoError(t, err)
	require.InDelta(t, first, p.Mean, 1e-15)
	require.InDelta(t, second-first*first, p.Total, 1e-14)
	require.InDelta(t, 1, p.Aleatoric, 1e-15)
	require.Equal(t, p.Total, p.Aleatoric+p.Epistemic)
	one, err := VarianceOf(means, []float64{0.3})
	require.NoError(t, err)
	require.InDelta(t, p.Epistemic+0.3, one.Total, 1e-15)
	single, err := VarianceOf([]float64{2}, []float64{0.3})
	require.NoError(t, err)
	require.Equal(t, VarianceParts{Mean: 2, Total: 0.3, Aleatoric: 0.3}, single)
	large, err := VarianceOf([]float64{1e9, 1e9 + 1}, []float64{0})
	require.NoError(t, err)
	require.InDelta(t, 0.25, large.Epistemic, 1e-12)

	rng := source(90)
	probs := make([]float64, 100)
	mean := 0.0
	for i := range probs {
		probs[i] = rng.Float64()
		mean += probs[i] / 100
	}
	b, err := BernoulliVarianceOf(probs)
	require.NoError(t, err)
	require.InDelta(t, mean*(1-mean), b.Total, 1e-14)
	require.Greater(t, b.Epistemic, 0.05)
	sure, err := BernoulliVarianceOf([]float64{0, 1})
	require.NoError(t, err)
	require.Equal(t, VarianceParts{Mean: 0.5, Total: 0.25, Epistemic: 0.25}, sure)
}

func TestVarianceErrors(t *testing.T) {
	_, err := VarianceOf(nil, []float64{1})
	require.ErrorIs(t, err, draws.ErrSize)
	_, err = VarianceOf([]float64{1, 2, 3}, []float64{1, 2})
	require.EqualError(t, err,
		"diag/score: variance: 3 means and 2 variances, want at least one mean, and one variance or as many")
	_, err = VarianceOf([]float64{1}, nil)
	require.ErrorIs(t, err, draws.ErrSize)
	_, err = VarianceOf([]float64{nan}, []float64{1})
	require.ErrorIs(t, err, diag.ErrNotFinite)
	_, err = VarianceOf([]float64{1}, []float64{-1})
	require.EqualError(t, err, "diag/score: variance: the variance of draw 0 is -1, want a number not below 0")
	_, err = BernoulliVarianceOf(nil)
	require.ErrorIs(t, err, draws.ErrSize)
	_, err = BernoulliVarianceOf([]float64{0.5, 1.1})
	require.ErrorIs(t, err, draws.ErrRange)
}
