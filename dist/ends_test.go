package dist_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/torch"
)

// withCDF are distributions of every family that has a CDF, each with numbers, and with tensors, as parameters; open
// ones are truncated on either side and on both.
func withCDF() (all []dist.Distribution) {
	rng := rand.New(rand.NewPCG(5, 9))
	inf := math.Inf(1)
	add := func(d dist.Distribution) {
		if _, ok := d.(dist.CDFer); ok {
			all = append(all, d)
		}
	}
	for _, f := range scalarFamilies {
		columns := f.random(rng, 2)
		params, _ := tensors(columns)
		add(f.make(params...))
		add(f.make(scalarNumbers(row(columns, 1))...))
	}
	for _, c := range truncatedCases {
		d := c.make(scalarNumbers(c.p)...)
		add(d)
		add(dist.Truncated(d, c.low, c.high))
		add(dist.Truncated(d, c.low, inf))
		add(dist.Truncated(d, -inf, c.high))
		add(dist.Truncated(d, scalarVec(c.low, -inf), scalarVec(inf, c.high)))
	}
	both := torch.Of(scalarVec(1, 3))
	add(dist.MixtureSameFamily([]float64{1, 2}, dist.Gamma(both, 1)))
	add(dist.Truncated(dist.MixtureSameFamily([]float64{1, 2}, dist.StudentT(both, 0, 1)), -1, inf))
	return all
}

// Quantiles at 0 and 1 are the ends of the support, and a CDF is 0 and 1 from them to infinity. Both are NaN of NaN.
func TestEnds(t *testing.T) {
	scoped(t, func() {
		for i, d := range withCDF() {
			name := fmt.Sprintf("%d: %s", i, d.Name())
			s := d.Support()
			low, high := math.Inf(-1), math.Inf(1)
			ends := func(x torch.Tensor) []float64 {
				return x.Expand(append([]int{}, d.BatchShape()...)...).Values()
			}
			lows, highs := []float64{low, low}, []float64{high, high}
			if s.String() != "a real number" {
				lows, highs = ends(torch.Of(s.Low.T())), ends(torch.Of(s.High.T()))
			}
			for k := range max(1, len(ends(torch.Scalar(0)))) {
				at := func(f func(torch.Tensor) torch.Tensor, x float64) float64 {
					return f(torch.Of(scalarVec(x))).Values()[k]
				}
				if q, ok := d.(dist.ICDFer); ok {
					assert.Equal(t, lows[k], at(q.ICDF, 0), "%s: quantile at 0", name)
					assert.Equal(t, highs[k], at(q.ICDF, 1), "%s: quantile at 1", name)
					assert.True(t, math.IsNaN(at(q.ICDF, math.NaN())), "%s: quantile at NaN", name)
				}
				cdf := d.(dist.CDFer).CDF
				for _, x := range []float64{math.Inf(-1), lows[k], -1e308} {
					if x <= lows[k] {
						assert.Zero(t, at(cdf, x), "%s: CDF at %v", name, x)
					}
				}
				for _, x := range []float64{math.Inf(1), highs[k]} {
					assert.Equal(t, 1., at(cdf, x), "%s: CDF at %v", name, x)
				}
				assert.True(t, math.IsNaN(at(cdf, math.NaN())), "%s: CDF at NaN", name)
			}
		}
	})
}

// With loc 0, log f(x; s) = log f(x/s; 1) − log s, F(x; s) = F(x/s; 1) and Q(p; s) = s·Q(p; 1); so do the derivatives
// follow: x ∂f/∂x = z g'(z) and s ∂f/∂s = −z g'(z) − 1, with z = x/s and g = log f(·; 1). The scales are powers of two,
// so that nothing is rounded on the way. Of a rate the same holds with x = z/s.
func TestScalesFarFromOne(t *testing.T) {
	scoped(t, func() {
		for name, make := range map[string]func(s torch.Tensor) dist.Distribution{
			"Normal":            func(s torch.Tensor) dist.Distribution { return dist.Normal(0, s) },
			"HalfNormal":        func(s torch.Tensor) dist.Distribution { return dist.HalfNormal(s) },
			"Cauchy":            func(s torch.Tensor) dist.Distribution { return dist.Cauchy(0, s) },
			"HalfCauchy":        func(s torch.Tensor) dist.Distribution { return dist.HalfCauchy(s) },
			"StudentT":          func(s torch.Tensor) dist.Distribution { return dist.StudentT(3, 0, s) },
			"Laplace":           func(s torch.Tensor) dist.Distribution { return dist.Laplace(0, s) },
			"Logistic":          func(s torch.Tensor) dist.Distribution { return dist.Logistic(0, s) },
			"Gumbel":            func(s torch.Tensor) dist.Distribution { return dist.Gumbel(0, s) },
			"SkewNormal":        func(s torch.Tensor) dist.Distribution { return dist.SkewNormal(0, s, 2) },
			"GeneralizedNormal": func(s torch.Tensor) dist.Distribution { return dist.GeneralizedNormal(0, s, 1.5) },
			"Weibull":           func(s torch.Tensor) dist.Distribution { return dist.Weibull(s, 2) },
			"Pareto":            func(s torch.Tensor) dist.Distribution { return dist.Pareto(s.Mul(0.5), 2) },
			"InverseGamma":      func(s torch.Tensor) dist.Distribution { return dist.InverseGamma(2, s) },
			"InverseGaussian":   func(s torch.Tensor) dist.Distribution { return dist.InverseGaussian(s, s.Mul(2)) },
			"Exponential/rate":  func(s torch.Tensor) dist.Distribution { return dist.Exponential(s) },
			"Gamma/rate":        func(s torch.Tensor) dist.Distribution { return dist.Gamma(2.5, s) },
			"Gamma, large/rate": func(s torch.Tensor) dist.Distribution { return dist.Gamma(25, s) },
			"Uniform":           func(s torch.Tensor) dist.Distribution { return dist.Uniform(0, s.Mul(4)) },
			"TruncatedNormal": func(s torch.Tensor) dist.Distribution {
				return dist.TruncatedNormal(0, s, s.Neg(), s.Mul(4))
			},
			"Truncated StudentT": func(s torch.Tensor) dist.Distribution {
				return dist.Truncated(dist.StudentT(3, 0, s), s.Neg(), s.Mul(4))
			},
			"Truncated Gamma/rate": func(s torch.Tensor) dist.Distribution {
				return dist.Truncated(dist.Gamma(2.5, s), 0, torch.Of(4).Div(s.T().MustDetach(false)))
			},
			"Mixture": func(s torch.Tensor) dist.Distribution {
				return dist.Mixture([]float64{1, 2}, dist.Normal(0, s), dist.Logistic(0, s))
			},
		} {
			eachScale(t, name, make)
		}
	})
}

func eachScale(t *testing.T, name string, make func(s torch.Tensor) dist.Distribution) {
	z, p := torch.Of(scalarVec(0.75, 1.5, 2.5)), torch.Of(scalarVec(0.01, 0.3, 0.99))
	at := func(s float64) (out [][]float64) {
		by := s // what x is multiplied by
		if strings.HasSuffix(name, "/rate") {
			by = 1 / s
		}
		scale, x := torch.Must(torch.Leaf(torch.Of(scalarVec(s, s, s)))), torch.Must(torch.Leaf(z.Mul(by)))
		d := make(scale)
		logp := d.LogProb(x)
		grads := scalarGrad(logp.T(), []torch.Tensor{x, scale})
		out = append(out, logp.Add(math.Log(by)).Values(),
			torch.Of(scalarVec(grads[0]...)).Mul(by).Values(), torch.Of(scalarVec(grads[1]...)).Mul(s).Values())
		if c, ok := d.(dist.CDFer); ok {
			out = append(out, c.CDF(x).Values())
		}
		if q, ok := d.(dist.ICDFer); ok {
			out = append(out, q.ICDF(p).Div(by).Values())
		}
		return out
	}
	want := at(1)
	for _, s := range []float64{0x1p-1000, 0x1p-600, 0x1p-100, 0x1p100, 0x1p600, 0x1p1000} {
		for i, got := range at(s) {
			for k := range got {
				same(t, want[i][k], got[k], 1e-10, "%s, scale %v: figure %d", name, s, i)
			}
		}
	}
}

// At the ends of what a parameter may be, the log density and its derivative are their limits.
func TestParametersAtTheirEnds(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		name       string
		make       func(p torch.Tensor) dist.Distribution
		p, x       float64
		logp, grad float64
	}{
		{"Bernoulli", func(p torch.Tensor) dist.Distribution { return dist.Bernoulli(p) }, 0, 0, 0, -1},
		{"Bernoulli", func(p torch.Tensor) dist.Distribution { return dist.Bernoulli(p) }, 1, 1, 0, 1},
		{"Bernoulli", func(p torch.Tensor) dist.Distribution { return dist.Bernoulli(p) }, 1, 0, -inf, math.NaN()},
		{"Binomial", func(p torch.Tensor) dist.Distribution { return dist.Binomial(5, p) }, 0, 0, 0, -5},
		{"Binomial", func(p torch.Tensor) dist.Distribution { return dist.Binomial(5, p) }, 1, 5, 0, 5},
		{"Binomial", func(p torch.Tensor) dist.Distribution { return dist.Binomial(5, p) }, 0, 2, -inf, math.NaN()},
		{"Geometric", func(p torch.Tensor) dist.Distribution { return dist.Geometric(p) }, 1, 0, 0, 1},
		{"NegativeBinomialProbs", func(p torch.Tensor) dist.Distribution { return dist.NegativeBinomialProbs(3, p) }, 0, 0,
			0, -3},
		{"Poisson", func(p torch.Tensor) dist.Distribution { return dist.Poisson(p) }, 0, 0, 0, -1},
		{"Poisson", func(p torch.Tensor) dist.Distribution { return dist.Poisson(p) }, 0, 2, -inf, math.NaN()},
		// P(0) = g + (1 − g) e⁻², P(1) = (1 − g) 2 e⁻².
		{"ZeroInflated", func(p torch.Tensor) dist.Distribution { return dist.ZeroInflated(p, dist.Poisson(2)) }, 0, 0, -2,
			math.Exp(2) - 1},
		{"ZeroInflated", func(p torch.Tensor) dist.Distribution { return dist.ZeroInflated(p, dist.Poisson(2)) }, 0, 1,
			math.Ln2 - 2, -1},
		{"ZeroInflated", func(p torch.Tensor) dist.Distribution { return dist.ZeroInflated(p, dist.Poisson(2)) }, 1, 0, 0,
			1 - math.Exp(-2)},
		// log p = κ cos x − log 2π I₀(κ), I₀'(0) = 0.
		{"VonMises", func(p torch.Tensor) dist.Distribution { return dist.VonMises(0, p) }, 0, 1, -math.Log(2 * math.Pi),
			math.Cos(1)},
		// A weight of 0 beside one of 1: log (1 + w f₀/f₁) − log(1 + w).
		{"Mixture", func(p torch.Tensor) dist.Distribution {
			return dist.Mixture(torch.Stack(-1, []torch.Tensor{p, p.Mul(0).Add(1)}), dist.Normal(1, 1), dist.Normal(0, 1))
		}, 0, 2, -2 - 0.5*math.Log(2*math.Pi), math.Exp(1.5) - 1},
		{"Categorical", func(p torch.Tensor) dist.Distribution {
			return dist.Categorical(torch.Stack(-1, []torch.Tensor{p, p.Mul(0).Add(2)}))
		}, 0, 1, 0, -0.5},
		// Log-odds of certain and of impossible outcomes; log σ(l) has the derivative σ(−l).
		{"BernoulliLogits", func(p torch.Tensor) dist.Distribution { return dist.BernoulliLogits(p) }, inf, 1, 0, 0},
		{"BernoulliLogits", func(p torch.Tensor) dist.Distribution { return dist.BernoulliLogits(p) }, -inf, 0, 0, 0},
		{"BernoulliLogits", func(p torch.Tensor) dist.Distribution { return dist.BernoulliLogits(p) }, -inf, 1, -inf, 0},
		{"BinomialLogits", func(p torch.Tensor) dist.Distribution { return dist.BinomialLogits(5, p) }, inf, 5, 0, 0},
		{"BinomialLogits", func(p torch.Tensor) dist.Distribution { return dist.BinomialLogits(5, p) }, -inf, 0, 0, 0},
		{"BinomialLogits", func(p torch.Tensor) dist.Distribution { return dist.BinomialLogits(5, p) }, -inf, 2, -inf, 0},
		{"PoissonLog", func(p torch.Tensor) dist.Distribution { return dist.PoissonLog(p) }, -inf, 0, 0, 0},
		{"PoissonLog", func(p torch.Tensor) dist.Distribution { return dist.PoissonLog(p) }, -inf, 2, -inf, 0},
		// φ log(φ/(φ + μ)) has the derivative −1 at μ = 0.
		{"NegativeBinomial", func(p torch.Tensor) dist.Distribution { return dist.NegativeBinomial(p, 3) }, 0, 0, 0, -1},
		{"NegativeBinomial", func(p torch.Tensor) dist.Distribution { return dist.NegativeBinomial(p, 3) }, 0, 2, -inf, 0},
		{"NegativeBinomialProbs", func(p torch.Tensor) dist.Distribution { return dist.NegativeBinomialProbs(3, p) }, 0, 2,
			-inf, 0},
		{"NegativeBinomialLogits", func(p torch.Tensor) dist.Distribution { return dist.NegativeBinomialLogits(3, p) },
			-inf, 0, 0, 0},
		{"NegativeBinomialLogits", func(p torch.Tensor) dist.Distribution { return dist.NegativeBinomialLogits(3, p) },
			-inf, 2, -inf, 0},
		{"Geometric", func(p torch.Tensor) dist.Distribution { return dist.Geometric(p) }, 1, 2, -inf, 0},
		{"ZeroInflated", func(p torch.Tensor) dist.Distribution { return dist.ZeroInflated(p, dist.Poisson(2)) }, 1, 1,
			-inf, 0},
		// No trials have one outcome, whatever the parameter.
		{"Binomial of none", func(p torch.Tensor) dist.Distribution { return dist.Binomial(0, p) }, 0.3, 0, 0, 0},
		{"BinomialLogits of none", func(p torch.Tensor) dist.Distribution { return dist.BinomialLogits(0, p) }, 0.3, 0, 0, 0},
		{"BetaBinomial of none", func(p torch.Tensor) dist.Distribution { return dist.BetaBinomial(0, p, 2) }, 0.3, 0, 0, 0},
		{"CategoricalLogits", func(p torch.Tensor) dist.Distribution {
			return dist.CategoricalLogits(torch.Stack(-1, []torch.Tensor{p, p.Exp().Add(2)}))
		}, -inf, 1, 0, 0},
		// An end at infinity is none: the density of a half-normal number.
		{"TruncatedNormal, high", func(p torch.Tensor) dist.Distribution { return dist.TruncatedNormal(0, 1, 0, p) }, inf, 1,
			-0.5 - 0.5*math.Log(2*math.Pi) + math.Ln2, 0},
		{"TruncatedNormal, low", func(p torch.Tensor) dist.Distribution { return dist.TruncatedNormal(0, 1, p, 0) }, -inf,
			-1, -0.5 - 0.5*math.Log(2*math.Pi) + math.Ln2, 0},
		// An exponential number below an end at infinity.
		{"Truncated Exponential, high", func(p torch.Tensor) dist.Distribution {
			return dist.Truncated(dist.Exponential(1), 0, p)
		}, inf, 1, -1, 0},
		// An end at the location, where |x − loc| has no derivative but the mass has: log p = loc − x − log 2 − log mass, and
		// the mass above 0 is 1 − e^(−loc)/2 on one side and e^loc/2 on the other, both of derivative ½ at 0.
		{"Truncated Laplace at its location", func(p torch.Tensor) dist.Distribution {
			return dist.Truncated(dist.Laplace(p, 1), 0, inf)
		}, 0, 1, -1, 0},
		{"LogNormal, low", func(p torch.Tensor) dist.Distribution {
			return dist.Truncated(dist.LogNormal(0, 1), p, 1)
		}, 0, math.Exp(-1), 1 - 0.5 - 0.5*math.Log(2*math.Pi) + math.Ln2, 0},
		{"SkewNormal", func(p torch.Tensor) dist.Distribution { return dist.SkewNormal(0, 1, p) }, 0, 1,
			-0.5 - 0.5*math.Log(2*math.Pi), math.Sqrt(2 / math.Pi)},
	} {
		scoped(t, func() {
			p := torch.Must(torch.Leaf(torch.Of(scalarVec(c.p))))
			d := c.make(p)
			assert.NoError(t, d.Validate())
			logp := d.LogProb(torch.Of(scalarVec(c.x))).T()
			name := fmt.Sprintf("%s of %v at %v", c.name, c.p, c.x)
			got, grad := scalarRead(logp)[0], scalarGrad(logp, []torch.Tensor{p})[0][0]
			if math.IsInf(c.logp, 0) {
				assert.Equal(t, c.logp, got, name)
				assert.False(t, math.IsNaN(grad), "%s: gradient", name)
				return
			}
			assert.InDelta(t, c.logp, got, 1e-14, name)
			assert.InDelta(t, c.grad, grad, 1e-12, "%s: gradient", name)
		})
	}
}
