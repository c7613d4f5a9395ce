package regression_test

import (
	"context"
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/models"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/regression"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distmv"
)

// Shares have the Dirichlet law with the means of the softmax of their predictors and the precision phi.
func TestDirichlet(t *testing.T) {
	x := []float64{-1, 0.5, 2}
	shares := [][]float64{{0.2, 0.5, 0.3}, {0.1, 0.1, 0.8}, {0.6, 0.3, 0.1}}
	column := func(k int) []float64 { return []float64{shares[0][k], shares[1][k], shares[2][k]} }
	table := tableOf(t, numbers("x", x...), numbers("a", column(0)...), numbers("b", column(1)...),
		numbers("c", column(2)...), numbers("wrong", 0.3, 0.8, 0.3))
	f := regression.Formula{Mean: "cbind(a, b, c) ~ x", Family: regression.Dirichlet{}}
	m, err := f.Fit(table)
	require.NoError(t, err)
	d := one(t, map[string][]float64{"b_b": {0.4}, "intercept_centred_b": {0.1}, "b_c": {-0.3},
		"intercept_centred_c": {1}, "phi": {7}})
	loglik, err := m.LogLikelihood(d)
	require.NoError(t, err)
	expected, err := m.Expected(d, regression.Rows{})
	require.NoError(t, err)
	predicted, err := m.Predict(d, regression.Rows{})
	require.NoError(t, err)
	require.Equal(t, "mean[0,c]", expected.Names()[2])
	for i, y := range shares {
		p := []float64{1, math.Exp(0.1 + 0.4*(x[i]-0.5)), math.Exp(1 - 0.3*(x[i]-0.5))}
		floats.Scale(1/floats.Sum(p), p)
		require.InDeltaSlice(t, p, expected.Row(0, 0)[3*i:3*i+3], 1e-12)
		require.InDelta(t, 1, floats.Sum(predicted.Row(0, 0)[3*i:3*i+3]), 1e-12)
		floats.Scale(7, p)
		require.InDelta(t, distmv.NewDirichlet(p, nil).LogProb(y), loglik.Row(0, 0)[i], 1e-9)
	}
	f.Params = map[string]string{"phi": "~ x"}
	m, err = f.Fit(table)
	require.NoError(t, err)
	require.Contains(t, m.String(), "b_phi[x]")
	f.Mean = "cbind(a, b, wrong) ~ x"
	_, err = f.Fit(table)
	require.ErrorContains(t, err, `row 2, column "cbind(a, b, wrong)", value "1.2": the sum of its shares must be 1`)
}

// Several outcomes are normal with the means of their predictors, their standard deviations, and the correlations of
// their residuals: beside a model written by hand, and beside gonum in the log density of rows.
func TestSeveralOutcomes(t *testing.T) {
	x, z := []float64{-1, 0.5, 2, 3.5, 0}, []float64{1, 3, 2, 2, 7}
	y, w := []float64{1, 3, 2, 5, 1.5}, []float64{10, 30, 25, 60, 20}
	table := tableOf(t, numbers("x", x...), numbers("z", z...), numbers("y", y...), numbers("w", w...),
		numbers("c", 0, 0, 1, 0, 0))
	f := regression.Formula{Mean: "mvbind(y, w) ~ x", Params: map[string]string{"w": "~ z"}, Eta: 2}
	m, err := f.Fit(table)
	require.NoError(t, err)
	meanX, sdX := stat.MeanStdDev(x, nil)
	meanZ, sdZ := stat.MeanStdDev(z, nil)
	meanY, sdY := stat.MeanStdDev(y, nil)
	meanW, sdW := stat.MeanStdDev(w, nil)
	sameDensity(t, m, func(c *ppl.Ctx) {
		mean := func(name string, x []float64, mx, sx, my, sy float64) torch.Tensor {
			b := c.Sample("b_"+name, dist.Normal(0, column(2.5*sy/sx)))
			return column(x...).Sub(mx).Mul(b).Add(c.Sample("intercept_centred_"+name, dist.Normal(my, 2.5*sy)))
		}
		eta := torch.Stack(-1, mean("y", x, meanX, sdX, meanY, sdY), mean("w", z, meanZ, sdZ, meanW, sdW))
		sigma := c.Sample("sigma", dist.Exponential(column(1/sdY, 1/sdW)))
		chol := c.Sample("L_rescor", dist.LKJCholesky(2, 2))
		both := torch.Stack(-1, column(y...), column(w...))
		c.Observe("mvbind(y, w)", dist.MultivariateNormalCholesky(eta, sigma.Unsqueeze(1).Mul(chol)), both)
	})
	d, err := infer.Sample(context.Background(), m, hmc.NUTS{}, infer.Options{Chains: 1, Warmup: 100, Draws: 5,
		Observer: infer.Silent})
	require.NoError(t, err)
	require.Contains(t, d.Names(), "rescor[y,w]")
	loglik, err := m.LogLikelihood(d)
	require.NoError(t, err)
	expected, err := m.Expected(d, regression.Rows{Table: tableOf(t, numbers("x", x...), numbers("z", z...))})
	require.NoError(t, err)
	require.Equal(t, "mean[0,w]", expected.Names()[1])
	s, r := []float64{at(t, d, 0, 4, "sigma[y]"), at(t, d, 0, 4, "sigma[w]")}, at(t, d, 0, 4, "rescor[y,w]")
	for i := range y {
		mu := []float64{at(t, d, 0, 4, "intercept_y") + at(t, d, 0, 4, "b_y[x]")*x[i],
			at(t, d, 0, 4, "intercept_w") + at(t, d, 0, 4, "b_w[z]")*z[i]}
		require.InDeltaSlice(t, mu, expected.Row(0, 4)[2*i:2*i+2], 1e-9*math.Abs(mu[1]))
		law, ok := distmv.NewNormal(mu, mat.NewSymDense(2, []float64{s[0] * s[0], r * s[0] * s[1],
			r * s[0] * s[1], s[1] * s[1]}), nil)
		require.True(t, ok)
		require.InDelta(t, law.LogProb([]float64{y[i], w[i]}), loglik.Row(0, 4)[i], 1e-7)
	}
	_, err = m.Predict(d, regression.Rows{})
	require.NoError(t, err)
	params := map[string]string{"sigma": "~ x"}
	for says, f := range map[string]regression.Formula{
		`formulas are of the outcomes ["y" "w"]`:              {Mean: "mvbind(y, w) ~ x", Params: params},
		"several outcomes, mvbind(y, w), are Gaussian{}":      {Mean: "mvbind(y, w) ~ x", Family: regression.StudentT{}},
		"only weights(w) stands right of the bar":             {Mean: "mvbind(y, w) | cens(c) ~ 1"},
		"are of the family multinomial, their shares, cbind(": {Mean: "cbind(y, w) ~ x"},
		"it does not go with Horseshoe": {Mean: "y ~ x", R2D2: &models.R2D2{},
			Horseshoe: &models.Horseshoe{}},
	} {
		_, err = f.Fit(table)
		require.ErrorContains(t, err, says)
	}
}

// The prior of coefficients by R² is that of the model written by hand, on columns of unit variance, with sigma.
func TestR2D2(t *testing.T) {
	x, z := []float64{-1, 0.5, 2, 3.5, 0}, []float64{1, 3, 2, 2, 7}
	y := []float64{1, 3, 2, 5, 1.5}
	table := tableOf(t, numbers("x", x...), numbers("z", z...), numbers("y", y...))
	m, err := regression.Formula{Mean: "y ~ x + z", R2D2: &models.R2D2{Mean: 0.3, Precision: 4}}.Fit(table)
	require.NoError(t, err)
	meanX, sdX := stat.MeanStdDev(x, nil)
	meanZ, sdZ := stat.MeanStdDev(z, nil)
	mean, s := stat.MeanStdDev(y, nil)
	sameDensity(t, m, func(c *ppl.Ctx) {
		sigma := c.Sample("sigma", dist.Exponential(1/s))
		r2 := c.Sample("r2d2_r2", dist.Beta(1.2, 2.8))
		shares := c.Sample("r2d2_shares", dist.Dirichlet(column(0.5, 0.5)))
		raw := c.Sample("r2d2_raw", dist.Independent(dist.Normal(0, 1).Expand(2), 1))
		b := raw.Mul(shares.Mul(r2).Div(torch.Of(1).Sub(r2)).Sqrt()).Mul(sigma).Div(column(sdX, sdZ))
		columns := torch.Stack(-1, column(x...).Sub(meanX), column(z...).Sub(meanZ))
		at := c.Sample("intercept_centred", dist.Normal(mean, 2.5*s))
		c.Observe("y", dist.Normal(columns.MatMul(b).Add(at), sigma), column(y...))
	})
}
