package regression_test

import (
	"context"
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/regression"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/stat/distuv"
)

// With a fold for each row the density of a row is that of the others' posterior, which has a closed form for a normal
// mean with known errors: Normal(m, v + s²), m and v those of the rest.
func TestKFold(t *testing.T) {
	y, se := []float64{1, 3, 2, 5, -1}, []float64{0.5, 1, 0.7, 2, 1}
	m, err := regression.Formula{Mean: "y | se(s) ~ 1", Priors: regression.Priors{"intercept": dist.Normal(1, 2)}}.Fit(
		tableOf(t, numbers("y", y...), numbers("s", se...)))
	require.NoError(t, err)
	options := infer.Options{Seed: 1, Observer: infer.Silent}
	posterior, err := infer.Sample(context.Background(), m, hmc.NUTS{}, options)
	require.NoError(t, err)
	r, err := m.KFold(context.Background(), posterior, hmc.NUTS{}, options, regression.Folds{K: 5, Seed: 2})
	require.NoError(t, err)
	sum := 0.0
	for i := range y {
		precision, shift := 0.25, 0.25
		for j := range y {
			if j != i {
				precision += 1 / (se[j] * se[j])
				shift += y[j] / (se[j] * se[j])
			}
		}
		predictive := distuv.Normal{Mu: shift / precision, Sigma: math.Sqrt(1/precision + se[i]*se[i])}
		want := predictive.LogProb(y[i])
		// The density varies over draws by at most a factor of a few: its mean of 1,000 effective draws has a relative
		// error of at most 0.1 by 4 standard errors but in the tails, where it is less than 0.3.
		require.InDelta(t, want, r.Pointwise[i].ELPD, 0.3, "row %d", i)
		sum += r.Pointwise[i].ELPD
	}
	require.InDelta(t, sum, r.ELPD, 1e-12)
	_, err = m.KFold(context.Background(), posterior, hmc.NUTS{}, options, regression.Folds{K: 6})
	require.ErrorContains(t, err, "it must be from 2 to 5")
}

// Folds by a factor predict each of its levels as a new one.
func TestKFoldBy(t *testing.T) {
	m, err := regression.Formula{Mean: "y ~ age + (1 | clinic)", Family: regression.Poisson{}}.Fit(clinics(t))
	require.NoError(t, err)
	options := infer.Options{Chains: 2, Warmup: 200, Draws: 100, Seed: 1, Observer: infer.Silent}
	posterior, err := infer.Sample(context.Background(), m, hmc.NUTS{}, options)
	require.NoError(t, err)
	r, err := m.KFold(context.Background(), posterior, hmc.NUTS{}, options, regression.Folds{K: 3, By: "clinic"})
	require.NoError(t, err)
	loo, err := m.LOO(posterior)
	require.NoError(t, err)
	require.Len(t, r.Pointwise, 60)
	t.Logf("%.1f by clinic, %.1f by row", r.ELPD, loo.ELPD)
	require.Less(t, r.ELPD, loo.ELPD) // a clinic that was not seen is harder to predict
}
