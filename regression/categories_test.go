package regression_test

import (
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/data"
	"github.com/kelvin-ppl/kelvin/regression"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/stat/combin"
	"gonum.org/v1/gonum/stat/distuv"
)

// Ordered categories have the probabilities of their laws, in the log density and as what is expected.
func TestOrdered(t *testing.T) {
	normal := distuv.UnitNormal.CDF
	cloglog := func(x float64) float64 { return -math.Expm1(-math.Exp(x)) }
	cumulative := func(f func(float64) float64) func(u []float64) []float64 {
		return func(u []float64) []float64 { return []float64{f(u[0]), f(u[1]) - f(u[0]), 1 - f(u[1])} }
	}
	sequential := func(f func(float64) float64) func(u []float64) []float64 {
		return func(u []float64) []float64 {
			return []float64{f(u[0]), (1 - f(u[0])) * f(u[1]), (1 - f(u[0])) * (1 - f(u[1]))}
		}
	}
	x, y := []float64{-1, 0.5, 2, 0.5}, []string{"low", "mid", "high", "mid"}
	for name, c := range map[string]struct {
		family     regression.Family
		thresholds []float64
		p          func(u []float64) []float64 // of thresholds less η
	}{
		"cumulative logit":   {regression.Cumulative{}, []float64{-0.5, 1}, cumulative(logistic)},
		"cumulative probit":  {regression.Cumulative{Link: "probit"}, []float64{-0.5, 1}, cumulative(normal)},
		"cumulative cloglog": {regression.Cumulative{Link: "cloglog"}, []float64{-0.5, 1}, cumulative(cloglog)},
		"sequential logit":   {regression.Sequential{}, []float64{1, -0.5}, sequential(logistic)},
		"sequential probit":  {regression.Sequential{Link: "probit"}, []float64{1, -0.5}, sequential(normal)},
		"adjacent": {regression.Adjacent{}, []float64{1, -0.5}, func(u []float64) []float64 {
			a, b := math.Exp(-u[0]), math.Exp(-u[0]-u[1])
			return []float64{1 / (1 + a + b), a / (1 + a + b), b / (1 + a + b)}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := regression.Formula{Mean: "y ~ x", Family: c.family}.Fit(
				tableOf(t, data.Column{Name: "y", Labels: y, Levels: []string{"low", "mid", "high"}}, numbers("x", x...)))
			require.NoError(t, err)
			d := one(t, map[string][]float64{"b": {0.4}, "thresholds_centred": c.thresholds})
			loglik, err := m.LogLikelihood(d)
			require.NoError(t, err)
			expected, err := m.Expected(d, regression.Rows{})
			require.NoError(t, err)
			require.Equal(t, "mean[0,high]", expected.Names()[2])
			for i, level := range []int{0, 1, 2, 1} {
				eta := 0.4 * (x[i] - 0.5)
				p := c.p([]float64{c.thresholds[0] - eta, c.thresholds[1] - eta})
				require.InDeltaSlice(t, p, expected.Row(0, 0)[3*i:3*i+3], 1e-12)
				require.InDelta(t, math.Log(p[level]), loglik.Row(0, 0)[i], 1e-9)
			}
			m, err = regression.Formula{Mean: "y ~ 1", Family: c.family}.Fit(
				tableOf(t, data.Column{Name: "y", Labels: y, Levels: []string{"low", "mid", "high"}}))
			require.NoError(t, err)
			d = one(t, map[string][]float64{"thresholds": c.thresholds})
			loglik, err = m.LogLikelihood(d)
			require.NoError(t, err)
			expected, err = m.Expected(d, regression.Rows{})
			require.NoError(t, err)
			require.InDeltaSlice(t, c.p(c.thresholds), expected.Row(0, 0)[9:], 1e-12)
			require.InDelta(t, math.Log(c.p(c.thresholds)[0]), loglik.Row(0, 0)[0], 1e-9)
			predicted, err := m.Predict(d, regression.Rows{})
			require.NoError(t, err)
			require.Len(t, predicted.Row(0, 0), 4)
		})
	}
}

// Counts of several categories have the multinomial law of their sum, and the expected counts of their softmax.
func TestMultinomial(t *testing.T) {
	x := []float64{-1, 0.5, 2}
	counts := [][]float64{{1, 2, 0}, {0, 3, 4}, {5, 0, 1}}
	table := tableOf(t, numbers("x", x...), numbers("a", 1, 0, 5), numbers("b", 2, 3, 0), numbers("c", 0, 4, 1),
		numbers("n", 3, 7, 6), numbers("wrong", 3, 7, 5))
	f := regression.Formula{Mean: "cbind(a, b, c) | trials(n) ~ x", Family: regression.Multinomial{}}
	m, err := f.Fit(table)
	require.NoError(t, err)
	d := one(t, map[string][]float64{"b_b": {0.4}, "intercept_centred_b": {0.1}, "b_c": {-0.3},
		"intercept_centred_c": {1}})
	loglik, err := m.LogLikelihood(d)
	require.NoError(t, err)
	expected, err := m.Expected(d, regression.Rows{})
	require.NoError(t, err)
	predicted, err := m.Predict(d, regression.Rows{})
	require.NoError(t, err)
	require.Equal(t, "mean[0,c]", expected.Names()[2])
	require.Equal(t, []int{3, 3}, predicted.Sites()[0].Shape)
	fresh, err := m.Expected(d, regression.Rows{Table: tableOf(t, numbers("x", x...), numbers("n", 3, 7, 6))})
	require.NoError(t, err)
	require.Equal(t, expected.Row(0, 0), fresh.Row(0, 0))
	grid, err := m.Grid("x", 2)
	require.NoError(t, err)
	_, err = m.Expected(d, regression.Rows{Table: grid})
	require.NoError(t, err)
	for i, y := range counts {
		eta := []float64{0, 0.1 + 0.4*(x[i]-0.5), 1 - 0.3*(x[i]-0.5)}
		total := 1 + math.Exp(eta[1]) + math.Exp(eta[2])
		n, drawn := y[0]+y[1]+y[2], 0.0
		want := combin.LogGeneralizedBinomial(n, y[0]) + combin.LogGeneralizedBinomial(n-y[0], y[1])
		for k := range eta {
			require.InDelta(t, n*math.Exp(eta[k])/total, expected.Row(0, 0)[3*i+k], 1e-12)
			want += y[k] * (eta[k] - math.Log(total))
			drawn += predicted.Row(0, 0)[3*i+k]
		}
		require.InDelta(t, want, loglik.Row(0, 0)[i], 1e-9)
		require.Equal(t, n, drawn)
	}
	for text, says := range map[string]string{
		"cbind(a, b, c) | trials(wrong) ~ x": `row 2, column "cbind(a, b, c)", value "6": the sum of its counts must be ` +
			"its number of trials, 5",
		"cbind(a, b, c) ~ x": "counts successes of trials",
		"a | trials(n) ~ x":  "counts of several categories, cbind(a, b) | trials(n), are of the family multinomial",
	} {
		f.Mean = text
		_, err = f.Fit(table)
		require.ErrorContains(t, err, says)
	}
}
