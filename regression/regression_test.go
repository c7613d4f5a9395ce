package regression_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/kelvin-ppl/kelvin/data"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/laplace"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/infer/vi"
	"github.com/kelvin-ppl/kelvin/regression"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/stat/distuv"
)

// numbers and labels are columns.
func numbers(name string, v ...float64) data.Column { return data.Column{Name: name, Numbers: v} }

func labels(name string, v ...string) data.Column { return data.Column{Name: name, Labels: v} }

func tableOf(t *testing.T, columns ...data.Column) *data.Table {
	t.Helper()
	table, err := data.NewTable(columns...)
	require.NoError(t, err)
	return table
}

// one is a set of draws of one draw, of scalars and vectors.
func one(t *testing.T, values map[string][]float64) *draws.Draws {
	t.Helper()
	var sites []draws.Site
	var row []float64
	for name, v := range values {
		s := draws.Site{Name: name, Offset: len(row), Size: len(v)}
		if strings.HasPrefix(name, "b") || strings.HasPrefix(name, "thresholds") {
			s.Shape = []int{len(v)}
		}
		sites, row = append(sites, s), append(row, v...)
	}
	d, err := draws.New(sites, nil, 1)
	require.NoError(t, err)
	require.NoError(t, d.Append(row, nil))
	d.SetSpace(draws.Named)
	return d
}

func logistic(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// The log density of each observation is that of the family at the inverse link of its predictor, and the expected
// outcome its mean: by gonum's distributions and closed forms.
func TestFamilies(t *testing.T) {
	x := []float64{-1, 0.5, 2, 0.5} // of mean 0.5
	const a, b = 0.3, 0.4           // at the mean of x, and the slope
	lgamma := func(x float64) float64 { v, _ := math.Lgamma(x); return v }
	choose := func(n, k float64) float64 { return lgamma(n+1) - lgamma(k+1) - lgamma(n-k+1) }
	beta := func(x, y float64) float64 { return lgamma(x) + lgamma(y) - lgamma(x+y) }
	negative := func(y, mu, k float64) float64 {
		return lgamma(y+k) - lgamma(k) - lgamma(y+1) + k*math.Log(k/(k+mu)) + y*math.Log(mu/(k+mu))
	}
	type law struct {
		family regression.Family
		y      []float64
		of     map[string][]float64
		logp   func(eta, y float64) float64
		mean   func(eta float64) float64
	}
	same := func(eta float64) float64 { return eta }
	for name, c := range map[string]law{
		"gaussian": {regression.Gaussian{}, []float64{1, -2, 0.5, 3}, map[string][]float64{"sigma": {1.3}},
			func(eta, y float64) float64 { return distuv.Normal{Mu: eta, Sigma: 1.3}.LogProb(y) }, same},
		"gaussian, log": {regression.Gaussian{Link: "log"}, []float64{1, 2, 0.5, 3}, map[string][]float64{"sigma": {1.3}},
			func(eta, y float64) float64 { return distuv.Normal{Mu: math.Exp(eta), Sigma: 1.3}.LogProb(y) }, math.Exp},
		"student": {regression.StudentT{}, []float64{1, -2, 0.5, 3}, map[string][]float64{"sigma": {1.3}, "nu": {4}},
			func(eta, y float64) float64 { return distuv.StudentsT{Mu: eta, Sigma: 1.3, Nu: 4}.LogProb(y) }, same},
		"lognormal": {regression.LogNormal{}, []float64{1, 2, 0.5, 3}, map[string][]float64{"sigma": {0.7}},
			func(eta, y float64) float64 { return distuv.LogNormal{Mu: eta, Sigma: 0.7}.LogProb(y) },
			func(eta float64) float64 { return distuv.LogNormal{Mu: eta, Sigma: 0.7}.Mean() }},
		"skew normal, no skew": {regression.SkewNormal{}, []float64{1, -2, 0.5, 3},
			map[string][]float64{"sigma": {1.3}, "alpha": {0}},
			func(eta, y float64) float64 { return distuv.Normal{Mu: eta, Sigma: 1.3}.LogProb(y) }, same},
		"gamma": {regression.Gamma{}, []float64{1, 2, 0.5, 3}, map[string][]float64{"shape": {2.5}},
			func(eta, y float64) float64 {
				return distuv.Gamma{Alpha: 2.5, Beta: 2.5 / math.Exp(eta)}.LogProb(y)
			}, math.Exp},
		"inverse gaussian": {regression.InverseGaussian{}, []float64{1, 2, 0.5, 3}, map[string][]float64{"shape": {2.5}},
			func(eta, y float64) float64 {
				mu := math.Exp(eta)
				return 0.5*math.Log(2.5/(2*math.Pi*y*y*y)) - 2.5*(y-mu)*(y-mu)/(2*mu*mu*y)
			}, math.Exp},
		"exponential": {regression.Exponential{}, []float64{1, 2, 0.5, 3}, nil,
			func(eta, y float64) float64 { return distuv.Exponential{Rate: math.Exp(-eta)}.LogProb(y) }, math.Exp},
		"weibull": {regression.Weibull{}, []float64{1, 2, 0.5, 3}, map[string][]float64{"shape": {1.7}},
			func(eta, y float64) float64 {
				return distuv.Weibull{K: 1.7, Lambda: math.Exp(eta) / math.Gamma(1+1/1.7)}.LogProb(y)
			}, math.Exp},
		"beta": {regression.Beta{}, []float64{0.1, 0.5, 0.9, 0.3}, map[string][]float64{"phi": {3}},
			func(eta, y float64) float64 {
				mu := logistic(eta)
				return distuv.Beta{Alpha: 3 * mu, Beta: 3 * (1 - mu)}.LogProb(y)
			}, logistic},
		"bernoulli": {regression.Bernoulli{}, []float64{0, 1, 1, 0}, nil,
			func(eta, y float64) float64 { return distuv.Bernoulli{P: logistic(eta)}.LogProb(y) }, logistic},
		"bernoulli, probit": {regression.Bernoulli{Link: "probit"}, []float64{0, 1, 1, 0}, nil,
			func(eta, y float64) float64 { return distuv.Bernoulli{P: distuv.UnitNormal.CDF(eta)}.LogProb(y) },
			distuv.UnitNormal.CDF},
		"bernoulli, cloglog": {regression.Bernoulli{Link: "cloglog"}, []float64{0, 1, 1, 0}, nil,
			func(eta, y float64) float64 { return distuv.Bernoulli{P: -math.Expm1(-math.Exp(eta))}.LogProb(y) },
			func(eta float64) float64 { return -math.Expm1(-math.Exp(eta)) }},
		"binomial": {regression.Binomial{}, []float64{0, 5, 7, 3}, nil,
			func(eta, y float64) float64 { return distuv.Binomial{N: 7, P: logistic(eta)}.LogProb(y) },
			func(eta float64) float64 { return 7 * logistic(eta) }},
		"beta binomial": {regression.BetaBinomial{}, []float64{0, 5, 7, 3}, map[string][]float64{"phi": {3}},
			func(eta, y float64) float64 {
				mu := logistic(eta)
				return choose(7, y) + beta(y+3*mu, 7-y+3*(1-mu)) - beta(3*mu, 3*(1-mu))
			}, func(eta float64) float64 { return 7 * logistic(eta) }},
		"poisson": {regression.Poisson{}, []float64{0, 2, 1, 5}, nil,
			func(eta, y float64) float64 { return distuv.Poisson{Lambda: math.Exp(eta)}.LogProb(y) }, math.Exp},
		"negative binomial": {regression.NegativeBinomial{}, []float64{0, 2, 1, 5}, map[string][]float64{"shape": {2.5}},
			func(eta, y float64) float64 { return negative(y, math.Exp(eta), 2.5) }, math.Exp},
		"geometric": {regression.Geometric{}, []float64{0, 2, 1, 5}, nil,
			func(eta, y float64) float64 { return negative(y, math.Exp(eta), 1) }, math.Exp},
		"zero-inflated poisson": {regression.ZeroInflated{Of: regression.Poisson{}}, []float64{0, 2, 1, 5},
			map[string][]float64{"zi": {0.2}}, func(eta, y float64) float64 {
				p := 0.8 * distuv.Poisson{Lambda: math.Exp(eta)}.Prob(y)
				if y == 0 {
					p += 0.2
				}
				return math.Log(p)
			}, func(eta float64) float64 { return 0.8 * math.Exp(eta) }},
		"hurdle poisson": {regression.Hurdle{Of: regression.Poisson{}}, []float64{0, 2, 1, 5},
			map[string][]float64{"hu": {0.2}}, func(eta, y float64) float64 {
				if y == 0 {
					return math.Log(0.2)
				}
				p := distuv.Poisson{Lambda: math.Exp(eta)}
				return math.Log(0.8) + p.LogProb(y) - math.Log1p(-p.Prob(0))
			}, func(eta float64) float64 { return 0.8 * math.Exp(eta) / -math.Expm1(-math.Exp(eta)) }},
		"hurdle negative binomial": {regression.Hurdle{Of: regression.NegativeBinomial{}}, []float64{0, 2, 1, 5},
			map[string][]float64{"hu": {0.2}, "shape": {2.5}}, func(eta, y float64) float64 {
				if y == 0 {
					return math.Log(0.2)
				}
				mu := math.Exp(eta)
				return math.Log(0.8) + negative(y, mu, 2.5) - math.Log1p(-math.Exp(negative(0, mu, 2.5)))
			}, func(eta float64) float64 {
				return 0.8 * math.Exp(eta) / -math.Expm1(negative(0, math.Exp(eta), 2.5))
			}},
		"hurdle gamma": {regression.Hurdle{Of: regression.Gamma{}}, []float64{0, 2, 0.5, 3},
			map[string][]float64{"hu": {0.2}, "shape": {2.5}}, func(eta, y float64) float64 {
				if y == 0 {
					return math.Log(0.2)
				}
				return math.Log(0.8) + distuv.Gamma{Alpha: 2.5, Beta: 2.5 / math.Exp(eta)}.LogProb(y)
			}, func(eta float64) float64 { return 0.8 * math.Exp(eta) }},
		"hurdle lognormal": {regression.Hurdle{Of: regression.LogNormal{}}, []float64{0, 2, 0.5, 3},
			map[string][]float64{"hu": {0.2}, "sigma": {0.7}}, func(eta, y float64) float64 {
				if y == 0 {
					return math.Log(0.2)
				}
				return math.Log(0.8) + distuv.LogNormal{Mu: eta, Sigma: 0.7}.LogProb(y)
			}, func(eta float64) float64 { return 0.8 * distuv.LogNormal{Mu: eta, Sigma: 0.7}.Mean() }},
		"hurdle beta": {regression.Hurdle{Of: regression.Beta{}}, []float64{0, 0.5, 0.9, 0.3},
			map[string][]float64{"hu": {0.2}, "phi": {3}}, func(eta, y float64) float64 {
				if y == 0 {
					return math.Log(0.2)
				}
				mu := logistic(eta)
				return math.Log(0.8) + distuv.Beta{Alpha: 3 * mu, Beta: 3 * (1 - mu)}.LogProb(y)
			}, func(eta float64) float64 { return 0.8 * logistic(eta) }},
		"von mises": {regression.VonMises{}, []float64{0, 2, -1, 3}, map[string][]float64{"kappa": {1.5}},
			func(eta, y float64) float64 { // I₀(1.5) = 1.646723189772890845
				return 1.5*math.Cos(y-2*math.Atan(eta)) - math.Log(2*math.Pi*1.646723189772890845)
			}, func(eta float64) float64 { return 2 * math.Atan(eta) }},
	} {
		t.Run(name, func(t *testing.T) {
			formula := "y ~ x"
			switch c.family.(type) {
			case regression.Binomial, regression.BetaBinomial:
				formula = "y | trials(7) ~ x"
			}
			m, err := regression.Formula{Mean: formula, Family: c.family}.Fit(
				tableOf(t, numbers("y", c.y...), numbers("x", x...)))
			require.NoError(t, err)
			values := map[string][]float64{"b": {b}, "intercept_centred": {a}, "intercept": {a - 0.5*b}}
			for name, v := range c.of {
				values[name] = v
			}
			d := one(t, values)
			loglik, err := m.LogLikelihood(d)
			require.NoError(t, err)
			expected, err := m.Expected(d, regression.Rows{})
			require.NoError(t, err)
			for i := range x {
				eta := a + b*(x[i]-0.5)
				require.InDelta(t, c.logp(eta, c.y[i]), loglik.Row(0, 0)[i], 1e-9, "row %d", i)
				require.InDelta(t, c.mean(eta), expected.Row(0, 0)[i], 1e-9, "row %d", i)
			}
		})
	}
}

// With known errors and normal priors the posterior of the coefficients is normal, with a closed form.
func TestKnownErrors(t *testing.T) {
	x, y, se := []float64{-1, 0, 1, 2}, []float64{1, 3, 2, 5}, []float64{0.5, 1, 0.7, 2}
	m, err := regression.Formula{Mean: "y | se(s) ~ x", Priors: regression.Priors{
		"intercept": dist.Normal(1, 2), "b": dist.Normal(0, 3)}}.Fit(
		tableOf(t, numbers("x", x...), numbers("y", y...), numbers("s", se...)))
	require.NoError(t, err)
	// Precision and shift in the intercept at the mean of x, 0.5, and the slope.
	p := [3]float64{1.0 / 4, 0, 1.0 / 9}
	h := [2]float64{1.0 / 4, 0}
	for i := range x {
		w, z := 1/(se[i]*se[i]), x[i]-0.5
		p[0], p[1], p[2] = p[0]+w, p[1]+w*z, p[2]+w*z*z
		h[0], h[1] = h[0]+w*y[i], h[1]+w*z*y[i]
	}
	det := p[0]*p[2] - p[1]*p[1]
	mean := []float64{(p[2]*h[0] - p[1]*h[1]) / det, (p[0]*h[1] - p[1]*h[0]) / det}
	sd := []float64{math.Sqrt(p[2] / det), math.Sqrt(p[0] / det)}
	for seed := range uint64(20) {
		posterior, err := infer.Sample(context.Background(), m, hmc.NUTS{}, infer.Options{Seed: seed, Observer: infer.Silent})
		require.NoError(t, err)
		summary, err := m.Summary(posterior)
		require.NoError(t, err)
		require.Equal(t, "intercept", summary.Rows[0].Name)
		require.Equal(t, "b[x]", summary.Rows[1].Name)
		for k, site := range []string{"intercept_centred", "b"} {
			got, err := posterior.Mean(site)
			require.NoError(t, err)
			spread, err := posterior.SD(site)
			require.NoError(t, err)
			// 4,000 draws of NUTS have at least 1,000 effective ones here.
			require.InDelta(t, mean[k], got[0], 4*sd[k]/math.Sqrt(1000), "seed %d, %s", seed, site)
			require.InDelta(t, sd[k], spread[0], 4*sd[k]/math.Sqrt(2*1000), "seed %d, %s", seed, site)
		}
	}
}

// Censored rows count with the probability of what is known of them: the closed form of exponential times, and the
// normal distribution function, far out too; truncated ones are divided by the probability of their interval.
func TestCensoredAndTruncated(t *testing.T) {
	y, end := []float64{1, 2, 0.5, 40}, []float64{0, 3, 0, 0}
	kinds := []string{"none", "interval", "left", "right"}
	table := tableOf(t, numbers("y", y...), numbers("end", end...), labels("c", kinds...))
	m, err := regression.Formula{Mean: "y | cens(c, end) ~ 1", Family: regression.Exponential{}}.Fit(table)
	require.NoError(t, err)
	loglik, err := m.LogLikelihood(one(t, map[string][]float64{"intercept": {math.Log(2)}}))
	require.NoError(t, err)
	want := []float64{math.Log(0.5) - 0.5, math.Log(math.Exp(-1) - math.Exp(-1.5)), math.Log(1 - math.Exp(-0.25)), -20}
	require.InDeltaSlice(t, want, loglik.Row(0, 0), 1e-12)

	m, err = regression.Formula{Mean: "y | cens(c, end) ~ 1"}.Fit(table)
	require.NoError(t, err)
	loglik, err = m.LogLikelihood(one(t, map[string][]float64{"intercept": {1}, "sigma": {2}}))
	require.NoError(t, err)
	cdf := distuv.Normal{Mu: 1, Sigma: 2}
	// log(erfc(19.5/√2)/2) is -194.0160 by its asymptotic series.
	z := 19.5
	tail := -z*z/2 - math.Log(z*math.Sqrt(2*math.Pi)) + math.Log(1-1/(z*z)+3/math.Pow(z, 4)-15/math.Pow(z, 6))
	want = []float64{cdf.LogProb(1), math.Log(cdf.CDF(3) - cdf.CDF(2)), math.Log(cdf.CDF(0.5)), tail}
	require.InDeltaSlice(t, want, loglik.Row(0, 0), 1e-6)

	m, err = regression.Formula{Mean: "y | trunc(lb = 0.25) ~ 1"}.Fit(table)
	require.NoError(t, err)
	loglik, err = m.LogLikelihood(one(t, map[string][]float64{"intercept": {1}, "sigma": {2}}))
	require.NoError(t, err)
	for i, v := range y {
		require.InDelta(t, cdf.LogProb(v)-math.Log(1-cdf.CDF(0.25)), loglik.Row(0, 0)[i], 1e-9)
	}
	_, err = regression.Formula{Mean: "y | cens(c) ~ 1", Family: regression.Poisson{}}.Fit(table)
	require.Error(t, err)
}

// Categories have the softmax of their predictors, the first of 0; the asymmetric Laplace law has its closed form, and
// weights multiply log densities.
func TestOtherLaws(t *testing.T) {
	x := []float64{-1, 0.5, 2, 0.5}
	table := tableOf(t, labels("y", "a", "b", "c", "b"), numbers("x", x...), numbers("z", 1, -2, 0.5, 3),
		numbers("w", 1, 2, 0.5, 0))
	m, err := regression.Formula{Mean: "y ~ x", Family: regression.Categorical{}}.Fit(table)
	require.NoError(t, err)
	d := one(t, map[string][]float64{"b_b": {0.4}, "intercept_centred_b": {0.1}, "b_c": {-0.3},
		"intercept_centred_c": {1}})
	loglik, err := m.LogLikelihood(d)
	require.NoError(t, err)
	expected, err := m.Expected(d, regression.Rows{})
	require.NoError(t, err)
	for i, level := range []int{0, 1, 2, 1} {
		eta := []float64{0, 0.1 + 0.4*(x[i]-0.5), 1 - 0.3*(x[i]-0.5)}
		total := 1 + math.Exp(eta[1]) + math.Exp(eta[2])
		require.InDelta(t, eta[level]-math.Log(total), loglik.Row(0, 0)[i], 1e-12)
		for k := range eta {
			require.InDelta(t, math.Exp(eta[k])/total, expected.Row(0, 0)[3*i+k], 1e-12)
		}
	}

	values := map[string][]float64{"b": {0.4}, "intercept_centred": {0.1}, "sigma": {2}}
	m, err = regression.Formula{Mean: "z ~ x", Family: regression.Quantile{Tau: 0.9}}.Fit(table)
	require.NoError(t, err)
	loglik, err = m.LogLikelihood(one(t, values))
	require.NoError(t, err)
	r2, err := m.R2(one(t, values))
	require.NoError(t, err)
	weighted, err := regression.Formula{Mean: "z | weights(w) ~ x", Family: regression.Quantile{Tau: 0.9}}.Fit(table)
	require.NoError(t, err)
	twice, err := weighted.LogLikelihood(one(t, values))
	require.NoError(t, err)
	fitted := 0.0
	for i, y := range []float64{1, -2, 0.5, 3} {
		e := (y - 0.1 - 0.4*(x[i]-0.5)) / 2
		want := math.Log(0.9*0.1/2) - math.Max(0.9*e, -0.1*e)
		require.InDelta(t, want, loglik.Row(0, 0)[i], 1e-12)
		require.InDelta(t, []float64{1, 2, 0.5, 0}[i]*want, twice.Row(0, 0)[i], 1e-12)
		fitted += 0.16 * (x[i] - 0.5) * (x[i] - 0.5) / 3
	}
	require.InDelta(t, fitted/(fitted+4*(1/0.81+1/0.01)), r2.Row(0, 0)[0], 1e-12)
	_, err = regression.Formula{Mean: "z ~ x", Family: regression.Quantile{Tau: 2}}.Fit(table)
	require.ErrorContains(t, err, "Tau is 2: it must be between 0 and 1")
}

// A model is a program for any method: samplers, fits and minibatches find the least-squares line, which the posterior
// under weak priors has for its mean to a hundredth of a standard error.
func TestMethods(t *testing.T) {
	var x, y []float64
	for i := range 200 {
		x = append(x, math.Sin(float64(i)*1.3))
		y = append(y, 1+2*x[i]+0.5*math.Cos(float64(i*i)*0.7))
	}
	m, err := regression.Formula{Mean: "y ~ x"}.Fit(tableOf(t, numbers("x", x...), numbers("y", y...)))
	require.NoError(t, err)
	meanX, meanY, xx, xy := 0.0, 0.0, 0.0, 0.0
	for i := range x {
		meanX, meanY = meanX+x[i]/200, meanY+y[i]/200
	}
	for i := range x {
		xx, xy = xx+(x[i]-meanX)*(x[i]-meanX), xy+(x[i]-meanX)*(y[i]-meanY)
	}
	parts, err := infer.Minibatches(m.Batch(), infer.MinibatchOptions{Size: 50, Seed: 1})
	require.NoError(t, err)
	for name, c := range map[string]struct {
		method infer.Method
		o      infer.Options
	}{
		"NUTS": {hmc.NUTS{}, infer.Options{}}, "vi": {vi.Dense{}, infer.Options{}},
		"Laplace": {laplace.DenseHessian{}, infer.Options{}}, "L-BFGS": {optim.LBFGS{}, infer.Options{}},
		"SGHMC": {sgmcmc.SGHMC{LR: infer.Constant(0.01)},
			infer.Options{Batches: parts, Warmup: 5000, Draws: 2000, Thin: 10}},
	} {
		c.o.Seed, c.o.Observer = 1, infer.Silent
		d, err := infer.Sample(context.Background(), m, c.method, c.o)
		require.NoError(t, err, name)
		b, err := d.Mean("b")
		require.NoError(t, err)
		se := 0.36 / math.Sqrt(xx)
		require.InDelta(t, xy/xx, b[0], 0.3*se, name)
	}
}

// Thresholds have a normal prior, ordered: another family is refused, and a given one is in the table.
func TestPriorOfThresholds(t *testing.T) {
	table := tableOf(t, labels("y", "a", "b", "c", "b"), numbers("x", -1, 0.5, 2, 0.5))
	f := regression.Formula{Mean: "y ~ x", Family: regression.Cumulative{},
		Priors: regression.Priors{"thresholds": dist.Normal(1, 4)}}
	m, err := f.Fit(table)
	require.NoError(t, err)
	require.Contains(t, m.String(), "Normal(1, 4), in order")
	f.Priors["thresholds"] = dist.Exponential(1)
	_, err = f.Fit(table)
	require.ErrorContains(t, err, "must be a dist.Normal of numbers")
}
