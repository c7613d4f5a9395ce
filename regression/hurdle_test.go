package regression_test

import (
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/regression"
	"github.com/stretchr/testify/require"
)

// Predictions of a hurdle have its probabilities of 0, 1 and 2, and the mean and variance of the law, with means of the
// counts from rare to many.
func TestHurdleDraws(t *testing.T) {
	const n, hu = 20000, 0.3
	negative := func(y, mu, k float64) float64 {
		a, _ := math.Lgamma(y + k)
		b, _ := math.Lgamma(k)
		c, _ := math.Lgamma(y + 1)
		return math.Exp(a - b - c + k*math.Log(k/(k+mu)) + y*math.Log(mu/(k+mu)))
	}
	for name, c := range map[string]struct {
		family regression.Family
		shape  float64
	}{"poisson": {regression.Poisson{}, 1e9}, "negbinomial": {regression.NegativeBinomial{}, 0.7},
		"geometric": {regression.Geometric{}, 1}, "gamma": {regression.Gamma{}, 2}} {
		for _, mu := range []float64{0.02, 1, 12} {
			m, err := regression.Formula{Mean: "y ~ 1", Family: regression.Hurdle{Of: c.family}}.Fit(
				tableOf(t, numbers("y", 0, 1, 3)))
			require.NoError(t, err)
			d, err := draws.New([]draws.Site{{Name: "intercept", Size: 1}, {Name: "hu", Offset: 1, Size: 1},
				{Name: "shape", Offset: 2, Size: 1}}, nil, 1)
			require.NoError(t, err)
			d.SetSpace(draws.Named)
			for range n {
				require.NoError(t, d.Append([]float64{math.Log(mu), hu, c.shape}, nil))
			}
			predicted, err := m.Predict(d, regression.Rows{Seed: 1})
			require.NoError(t, err)
			y := predicted.Pooled(0)
			p0, mean, square := negative(0, mu, c.shape), mu, mu+mu*mu/c.shape+mu*mu
			if name == "gamma" {
				p0, square = 0, mu*mu*(1+1/c.shape)
			}
			mean, square = mean*(1-hu)/(1-p0), square*(1-hu)/(1-p0)
			sum, shares := 0.0, make([]float64, 3)
			for _, v := range y {
				sum += v / n
				if v < 3 && v == math.Trunc(v) {
					shares[int(v)] += 1.0 / n
				}
			}
			require.InDelta(t, mean, sum, 4*math.Sqrt((square-mean*mean)/n), "%s, %g", name, mu)
			require.InDelta(t, hu, shares[0], 4*math.Sqrt(hu*(1-hu)/n), "%s, %g", name, mu)
			for k := 1; k < 3 && name != "gamma"; k++ {
				p := (1 - hu) * negative(float64(k), mu, math.Min(c.shape, 1e6)) / (1 - p0)
				require.InDelta(t, p, shares[k], 4*math.Sqrt(p*(1-p)/n)+1e-5, "%s, %g, %d", name, mu, k)
			}
		}
	}
	_, err := regression.Formula{Mean: "y ~ 1", Family: regression.Hurdle{Of: regression.Gaussian{}}}.Fit(
		tableOf(t, numbers("y", 0, 1, 3)))
	require.ErrorContains(t, err, "Hurdle is of Poisson, NegativeBinomial")
	_, err = regression.Formula{Mean: "y ~ 1", Family: regression.Hurdle{Of: regression.Beta{}}}.Fit(
		tableOf(t, numbers("y", 0, 1, 0.3)))
	require.ErrorContains(t, err, `row 1, column "y", value "1": of the family hurdle_beta it must be from 0, and below 1`)
}
