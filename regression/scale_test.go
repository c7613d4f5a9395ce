package regression_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/regression"
	"github.com/stretchr/testify/require"
)

// A column in millions is as good as one in units: each family with each link compiles and has points to start from,
// with the slopes of groups too, and the coefficient is that of a column in thousands over a thousand.
func TestLargeColumns(t *testing.T) {
	const n = 40
	families := map[string][]regression.Family{
		"share ~ ": {regression.Beta{}, regression.Beta{Link: "probit"}, regression.Beta{Link: "cloglog"},
			regression.VonMises{}},
		"amount ~ ": {regression.Gaussian{}, regression.Gaussian{Link: "log"}, regression.StudentT{}, regression.SkewNormal{},
			regression.LogNormal{}, regression.Gamma{}, regression.InverseGaussian{}, regression.Exponential{},
			regression.Weibull{}},
		"yes ~ ": {regression.Bernoulli{}, regression.Bernoulli{Link: "probit"}, regression.Bernoulli{Link: "cloglog"}},
		"count ~ ": {regression.Poisson{}, regression.NegativeBinomial{}, regression.Geometric{}, regression.Cumulative{},
			regression.ZeroInflated{Of: regression.Poisson{}}},
		"count | trials(20) ~ ": {regression.Binomial{}, regression.Binomial{Link: "probit"},
			regression.Binomial{Link: "cloglog"}, regression.BetaBinomial{}},
	}
	scales := []float64{1e3, 1e6}
	slope := make([]float64, 2)
	for k, scale := range scales {
		x, amount, share, count, yes := make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n),
			make([]float64, n)
		group := make([]string, n)
		for i := range x {
			u := math.Sin(float64(i * i))
			x[i], group[i] = scale*(3+u), fmt.Sprint(i%5)
			amount[i] = math.Exp(0.5*u + 0.3*math.Cos(float64(3*i)))
			share[i] = logistic(u + math.Cos(float64(3*i)))
			count[i], yes[i] = math.Round(4*amount[i]), math.Round(share[i])
		}
		table := tableOf(t, numbers("x", x...), numbers("amount", amount...), numbers("share", share...),
			numbers("count", count...), numbers("yes", yes...), labels("g", group...))
		for outcome, of := range families {
			if k == 0 {
				break
			}
			for _, f := range of {
				for _, right := range []string{"x", "x + (1 + x | g)"} {
					m, err := regression.Formula{Mean: outcome + right, Family: f}.Fit(table)
					require.NoError(t, err, "%T%+v, %g", f, f, scale)
					_, err = m.Start(m.Batch(), 4, 1)
					require.NoError(t, err, "%T%+v, %g", f, f, scale)
				}
			}
		}
		m, err := regression.Formula{Mean: "share ~ x", Family: regression.Beta{}}.Fit(table)
		require.NoError(t, err)
		d, err := infer.Sample(context.Background(), m, hmc.NUTS{},
			infer.Options{Warmup: 500, Draws: 500, Seed: 1, Observer: infer.Silent})
		require.NoError(t, err)
		require.NotContains(t, fmt.Sprint(m.Reported(d)), "unit_")
		b, err := d.Mean("b")
		require.NoError(t, err)
		slope[k] = scale * b[0]
		_, err = m.Expected(d, regression.Rows{})
		require.NoError(t, err)
	}
	require.InDelta(t, slope[0], slope[1], 0.05) // the posterior sd is 0.16, of which the means of 2000 draws have 0.005
}

// Thresholds are those where the columns are 0.
func TestThresholds(t *testing.T) {
	y, x := []float64{1, 2, 3, 2, 1, 3, 3, 1}, []float64{9, 11, 12, 10, 8, 13, 12, 10}
	m, err := regression.Formula{Mean: "y ~ x", Family: regression.Cumulative{}}.Fit(
		tableOf(t, numbers("y", y...), numbers("x", x...)))
	require.NoError(t, err)
	d, err := infer.Sample(context.Background(), m, hmc.NUTS{},
		infer.Options{Warmup: 100, Draws: 20, Seed: 1, Observer: infer.Silent})
	require.NoError(t, err)
	require.Equal(t, []string{"thresholds", "b"}, m.Reported(d))
	at := func(name string) []float64 {
		values, err := d.Values(name)
		require.NoError(t, err)
		return values[0][7]
	}
	for k, v := range at("thresholds") {
		require.InDelta(t, at("thresholds_centred")[k]+at("b")[0]*85.0/8, v, 1e-9)
	}
}

// Log odds keep their digits where probabilities are nearly 0 or 1: a binary outcome that is all but impossible has a
// finite log density, by the tail of the normal law and by -e^η.
func TestTails(t *testing.T) {
	for link, want := range map[string][2]float64{ // log P(1) at η = -30, log P(0) at 5
		"probit":  {-454.3212439955, -15.0649983939},
		"cloglog": {-30, -math.Exp(5)},
	} {
		m, err := regression.Formula{Mean: "y ~ 1", Family: regression.Bernoulli{Link: link}}.Fit(
			tableOf(t, numbers("y", 0, 1)))
		require.NoError(t, err)
		for i, eta := range []float64{-30, 5} {
			d := one(t, map[string][]float64{"intercept": {eta}})
			loglik, err := m.LogLikelihood(d)
			require.NoError(t, err)
			require.InDelta(t, want[i], loglik.Row(0, 0)[1-i], 1e-6, link)
		}
	}
}
