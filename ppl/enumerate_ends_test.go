package ppl_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// family is a distribution with a parameter w from 0 to 1, and numbers proportional to its masses from low on, at ends
// their limits.
type family struct {
	name   string
	low    float64
	of     func(w torch.Tensor) dist.Distribution
	masses func(w float64) []float64
}

// choose is n over k.
func choose(n, k int) float64 {
	c := 1.0
	for i := range k {
		c *= float64(n-i) / float64(i+1)
	}
	return c
}

// powers are c(k) pᵏ qⁿ⁻ᵏ for k from low to high, with 0⁰ = 1, over the largest common power of p and q.
func powers(low, high, n int, p, q float64, c func(k int) float64) (out []float64) {
	for k := low; k <= high; k++ {
		out = append(out, c(k)*math.Pow(p, float64(k-low))*math.Pow(q, float64(min(n, high)-k)))
	}
	return out
}

func binomialMasses(low, high, n int, p float64) []float64 {
	return powers(low, high, n, p, 1-p, func(k int) float64 { return choose(n, k) })
}

func negativeMasses(low, high int, r int, p float64) []float64 {
	return powers(low, high, high, p, 1, func(k int) float64 { return choose(k+r-1, k) })
}

func poissonMasses(low, high int, rate float64) []float64 {
	return powers(low, high, high, rate, 1, func(k int) float64 { return 1 / math.Gamma(float64(k+1)) })
}

func betaBinomialMasses(n int, a, b float64) (out []float64) {
	rising := func(a float64, k int) float64 {
		r := 1.0
		for i := range k {
			r *= a + float64(i)
		}
		return r
	}
	for k := range n + 1 {
		out = append(out, choose(n, k)*rising(a, k)*rising(b, n-k)/rising(a+b, n))
	}
	return out
}

// gated are masses, of sum 1, with more at 0.
func gated(gate float64, masses []float64) []float64 {
	out := make([]float64, len(masses))
	for i, m := range masses {
		out[i] = (1 - gate) * m
	}
	out[0] += gate
	return out
}

func one(w torch.Tensor) torch.Tensor { return torch.Of(1).Sub(w) }

var families = []family{
	{"Bernoulli", 0, func(w torch.Tensor) dist.Distribution { return dist.Bernoulli(w) },
		func(w float64) []float64 { return []float64{1 - w, w} }},
	{"BernoulliLogits", 0, func(w torch.Tensor) dist.Distribution { return dist.BernoulliLogits(w.Mul(4000).Sub(2000)) },
		func(w float64) []float64 { return []float64{logistic(2000 - 4000*w), logistic(4000*w - 2000)} }},
	{"Binomial", 0, func(w torch.Tensor) dist.Distribution { return dist.Binomial(3, w) },
		func(w float64) []float64 { return binomialMasses(0, 3, 3, w) }},
	{"BinomialLogits", 0, func(w torch.Tensor) dist.Distribution {
		return dist.BinomialLogits(2, w.Mul(4000).Sub(2000))
	}, func(w float64) []float64 { return binomialMasses(0, 2, 2, logistic(4000*w-2000)) }},
	{"BetaBinomial without successes", 0, func(w torch.Tensor) dist.Distribution {
		return dist.BetaBinomial(3, w.Mul(2), 1.5)
	}, func(w float64) []float64 { return betaBinomialMasses(3, 2*w, 1.5) }},
	{"BetaBinomial without failures", 0, func(w torch.Tensor) dist.Distribution { return dist.BetaBinomial(3, 1.5, w) },
		func(w float64) []float64 { return betaBinomialMasses(3, 1.5, w) }},
	{"Categorical", 0, func(w torch.Tensor) dist.Distribution {
		return dist.Categorical(torch.Stack(-1, one(w), w.Mul(0.7), w.Mul(0.3)))
	}, func(w float64) []float64 { return []float64{1 - w, 0.7 * w, 0.3 * w} }},
	{"CategoricalLogits", 0, func(w torch.Tensor) dist.Distribution {
		return dist.CategoricalLogits(torch.Stack(-1, 0, w.Mul(4000).Sub(2000)))
	}, func(w float64) []float64 { return []float64{logistic(2000 - 4000*w), logistic(4000*w - 2000)} }},
	{"OrderedLogistic", 0, func(w torch.Tensor) dist.Distribution {
		return dist.OrderedLogistic(0.3, torch.Stack(-1, 0, w))
	}, func(w float64) []float64 {
		return []float64{logistic(-0.3), logistic(w-0.3) - logistic(-0.3), logistic(0.3 - w)}
	}},
	{"ZeroInflated", 0, func(w torch.Tensor) dist.Distribution { return dist.ZeroInflated(w, dist.Binomial(2, 0.4)) },
		func(w float64) []float64 { return gated(w, binomialMasses(0, 2, 2, 0.4)) }},
	{"Mixture", 0, func(w torch.Tensor) dist.Distribution {
		return dist.Mixture(torch.Stack(-1, one(w), w), dist.Bernoulli(w), dist.Bernoulli(one(w)))
	}, func(w float64) []float64 { return []float64{(1-w)*(1-w) + w*w, 2 * w * (1 - w)} }},
	{"MixtureSameFamily", 0, func(w torch.Tensor) dist.Distribution {
		return dist.MixtureSameFamily(torch.Stack(-1, w, one(w)), dist.Bernoulli(torch.Stack(-1, w, 0.3)))
	}, func(w float64) []float64 { return []float64{w*(1-w) + (1-w)*0.7, w*w + (1-w)*0.3} }},
	{"Poisson", 0, func(w torch.Tensor) dist.Distribution { return dist.Truncated(dist.Poisson(w.Mul(3)), 0, 5) },
		func(w float64) []float64 { return poissonMasses(0, 5, 3*w) }},
	{"Poisson from 1", 1, func(w torch.Tensor) dist.Distribution { return dist.Truncated(dist.Poisson(w), 1, 5) },
		func(w float64) []float64 { return poissonMasses(1, 5, w) }},
	{"Geometric", 0, func(w torch.Tensor) dist.Distribution { return dist.Truncated(dist.Geometric(w), 0, 3) },
		func(w float64) []float64 { return negativeMasses(0, 3, 1, 1-w) }},
	{"Geometric from 1", 1, func(w torch.Tensor) dist.Distribution { return dist.Truncated(dist.Geometric(w), 1, 3) },
		func(w float64) []float64 { return negativeMasses(1, 3, 1, 1-w) }},
	{"Binomial from 1 to 3", 1, func(w torch.Tensor) dist.Distribution {
		return dist.Truncated(dist.Binomial(4, w), 1, 3)
	}, func(w float64) []float64 { return binomialMasses(1, 3, 4, w) }},
	{"NegativeBinomial", 0, func(w torch.Tensor) dist.Distribution {
		return dist.Truncated(dist.NegativeBinomial(w, 2), 0, 4)
	}, func(w float64) []float64 { return negativeMasses(0, 4, 2, w/(w+2)) }},
	{"NegativeBinomialProbs", 0, func(w torch.Tensor) dist.Distribution {
		return dist.Truncated(dist.NegativeBinomialProbs(2, w), 0, 4)
	}, func(w float64) []float64 { return negativeMasses(0, 4, 2, w) }},
	{"NegativeBinomialProbs from 1", 1, func(w torch.Tensor) dist.Distribution {
		return dist.Truncated(dist.NegativeBinomialProbs(3, w), 1, 4)
	}, func(w float64) []float64 { return negativeMasses(1, 4, 3, w) }},
	{"NegativeBinomialLogits", 0, func(w torch.Tensor) dist.Distribution {
		return dist.Truncated(dist.NegativeBinomialLogits(2, w.Mul(2000).Sub(2000)), 0, 4)
	}, func(w float64) []float64 { return negativeMasses(0, 4, 2, logistic(2000*w-2000)) }},
	{"ZeroInflated Poisson", 0, func(w torch.Tensor) dist.Distribution {
		return dist.Truncated(dist.ZeroInflated(w, dist.Poisson(w)), 0, 3)
	}, func(w float64) []float64 {
		masses := poissonMasses(0, 3, w)
		for i := range masses {
			masses[i] *= math.Exp(-w)
		}
		return gated(w, masses)
	}},
}

// requireAtEnds compares a program with one latent variable a, flat, with a density of a: where w = σ(1000 a) is 0 or 1
// by rounding, next to that, and between.
func requireAtEnds(t *testing.T, m ppl.Model, batch infer.Batch, want func(a, w float64) float64) {
	t.Helper()
	p, err := ppl.Compile(m, batch)
	require.NoError(t, err)
	x := []float64{-1, 1, -0.74, 0.0365, 0.0003, -0.0011}
	values, slopes := evaluate(t, p, whole(p), batch, x...)
	start, err := p.Start(batch, 1, 1)
	require.NoError(t, err)
	f, report, err := infer.Compile(p.Target(), start, batch, native.Options{Tier: native.VM})
	require.NoError(t, err)
	require.NotNil(t, f, report.Reason)
	for i, a := range x {
		at := func(step float64) float64 { return want(a+step, logistic(1000*(a+step))) }
		h := 1e-5
		if math.Abs(a) > 0.03 {
			h = 1e-3 // w moves by less than rounding
		}
		// Differences of fourth order: off by h⁴ times a fifth derivative, of up to 1000⁵ in w, over 30, and by rounding.
		slope := (8*(at(h)-at(-h)) - (at(2*h) - at(-2*h))) / (12 * h)
		grad := make([]float64, 1)
		v, err := f.Eval(x[i:i+1], 1/p.Target().N(), grad)
		require.NoError(t, err)
		for tier, have := range map[string][2]float64{"eager": {values[i], slopes[i]},
			"compiled": {v * p.Target().N(), grad[0] * p.Target().N()}} {
			require.InDelta(t, at(0), have[0], 1e-10*max(1, math.Abs(at(0))), "%s: value at %v", tier, a)
			require.InDelta(t, slope, have[1], 1e-5*max(1, math.Abs(slope)), "%s: gradient at %v", tier, a)
		}
	}
}

func saturated(c *ppl.Ctx) (a, w torch.Tensor) {
	a = c.Sample("a", dist.Flat())
	return a, a.Mul(1000).Sigmoid()
}

// A summed-out variable whose probabilities are 0 or 1, as sigmoids and exponentials make them by rounding, has the
// density of the limit, and a gradient.
func TestEnumerateAtEnds(t *testing.T) {
	y := []float64{0.3, -0.4, 1.1}
	batch := infer.Batch{"y": vec(y...)}
	for _, f := range families {
		t.Run(f.name, func(t *testing.T) {
			requireAtEnds(t, func(c *ppl.Ctx) {
				a, w := saturated(c)
				c.Plate("data", 0, func(c *ppl.Ctx) {
					z := c.Sample("z", f.of(w))
					c.Observe("y", dist.Normal(z.Add(a), 1), c.Data("y"))
				})
			}, batch, func(a, w float64) (sum float64) {
				masses, total := f.masses(w), 0.0
				for _, m := range masses {
					total += m
				}
				for _, v := range y {
					var terms []float64
					for k, m := range masses {
						terms = append(terms, math.Log(m/total)+normal(v, a+f.low+float64(k), 1))
					}
					sum += logSumExp(terms)
				}
				return sum
			})
		})
	}
}

// The same holds for chains, where a value cannot be reached from any other, and for what is observed with probability
// 0 under some values.
func TestEnumerateImpossible(t *testing.T) {
	y := []float64{0.3, -0.4, 1.1, 0.2}
	t.Run("chain", func(t *testing.T) {
		requireAtEnds(t, func(c *ppl.Ctx) {
			a, w := saturated(c)
			z := torch.Of(0)
			c.Markov(len(y), func(c *ppl.Ctx, t int) {
				z = c.Sample("z", dist.Bernoulli(torch.Stack(0, w, w).Take(z)))
				c.Observe("y", dist.Normal(z.Add(a), 1), c.Data("y").At(t))
			})
		}, infer.Batch{"y": vec(y...)}, func(a, w float64) (sum float64) {
			for _, v := range y { // states do not depend on each other
				sum += logSumExp([]float64{math.Log(1-w) + normal(v, a, 1), math.Log(w) + normal(v, a+1, 1)})
			}
			return sum
		})
	})
	t.Run("observed counts", func(t *testing.T) {
		counts := []float64{0, 2}
		requireAtEnds(t, func(c *ppl.Ctx) {
			a, w := saturated(c)
			c.Plate("data", 0, func(c *ppl.Ctx) {
				z := c.Sample("z", dist.Bernoulli(0.4))
				c.Observe("y", dist.Poisson(z.Mul(a.Exp())), c.Data("y"))
				c.Observe("v", dist.Binomial(3, z.Mul(w.Mul(0.4).Add(0.3))), c.Data("y"))
			})
		}, infer.Batch{"y": vec(counts...)}, func(a, w float64) float64 {
			p, r := 0.3+0.4*w, math.Exp(a)
			both := math.Log(0.4) - r + 3*math.Log(1-p)
			none := logSumExp([]float64{math.Log(0.6), both})
			return none + math.Log(0.4) + 2*a - r - math.Ln2 + math.Log(3) + 2*math.Log(p) + math.Log(1-p)
		})
	})
}
