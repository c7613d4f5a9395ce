package svi_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/svi"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// The expectation of ℓ under a normal guide of a normal model has a closed form, here by quadrature of the densities
// themselves; its gradient in φ = (loc, log scale) by differences.
func TestReparameterisedGradients(t *testing.T) {
	program := must(ppl.Compile(conjugate, batch()))
	const loc, scale = 0.2, 0.7
	phi := []float64{loc, math.Log(scale)}
	for _, temperature := range []float64{1, 0.4, 0} {
		want := slope(func(x []float64) float64 {
			sd := math.Exp(x[1])
			return mean(func(mu float64) float64 {
				return logJoint(mu) - temperature*logNormal(mu, x[0], sd)
			}, x[0], sd)
		}, phi)
		for name, elbo := range map[string]svi.ELBO{"Trace": svi.Trace{}, "MeanField": svi.MeanField{}} {
			for _, samples := range []int{1, 3} {
				layout, rows := gradients(t, program, svi.SVI{Guide: normalAt(loc, scale), ELBO: elbo, Samples: samples,
					Temperature: constant(temperature)}, 4000)
				require.Equal(t, []string{"loc", "scale"}, layout.Names())
				unbiased(t, want, rows, infertest.Name("%s, T %g, S %d", name, temperature, samples))
			}
		}
	}
}

// λ weighs the prior and the guide against the likelihood.
func TestKLWeight(t *testing.T) {
	program := must(ppl.Compile(conjugate, batch()))
	const loc, scale, weight, temperature = 0.2, 0.7, 0.3, 0.6
	want := slope(func(x []float64) float64 {
		sd := math.Exp(x[1])
		return mean(func(mu float64) float64 {
			prior := logNormal(mu, 0.5, 2)
			return logJoint(mu) - prior + weight*(prior-temperature*logNormal(mu, x[0], sd))
		}, x[0], sd)
	}, []float64{loc, math.Log(scale)})
	for _, elbo := range []svi.ELBO{svi.Trace{}, svi.MeanField{}} {
		_, rows := gradients(t, program, svi.SVI{Guide: normalAt(loc, scale), ELBO: elbo, Samples: 2,
			Temperature: constant(temperature), KLWeight: constant(weight)}, 4000)
		unbiased(t, want, rows, infertest.Name("%T", elbo))
	}
}

// λ weighs the sites that are not in the likelihood, whatever is observed: here the data are prior, and the prior of mu
// is the likelihood.
func TestKLWeightOfNamedLikelihood(t *testing.T) {
	program := must(must(ppl.Compile(conjugate, batch())).WithLikelihood("mu"))
	const loc, scale, weight, temperature = 0.2, 0.7, 0.3, 0.6
	want := slope(func(x []float64) float64 {
		sd := math.Exp(x[1])
		return mean(func(mu float64) float64 {
			prior := logNormal(mu, 0.5, 2)
			return prior + weight*(logJoint(mu)-prior-temperature*logNormal(mu, x[0], sd))
		}, x[0], sd)
	}, []float64{loc, math.Log(scale)})
	for _, elbo := range []svi.ELBO{svi.Trace{}, svi.MeanField{}} {
		_, rows := gradients(t, program, svi.SVI{Guide: normalAt(loc, scale), ELBO: elbo, Samples: 2,
			Temperature: constant(temperature), KLWeight: constant(weight)}, 4000)
		unbiased(t, want, rows, infertest.Name("%T", elbo))
	}
}

// A guide that draws the variables of a chain a → b → y in the order b, a: given a, b is no longer independent of the
// draw of a, so that its divergence from its prior has no closed form. With b ~ N(m, s²) and a = kb + tε
//
//	E[a²] = k²(m² + s²) + t²,  E[(b − a)²] = (1 − k)²(m² + s²) + t²,  E[(y − b)²] = (y − m)² + s²
func TestGuideInAnotherOrder(t *testing.T) {
	const y = 1.5
	model := func(c *ppl.Ctx) {
		b := c.Sample("b", dist.Normal(c.Sample("a", dist.Normal(0, 1)), 1))
		c.Observe("y", dist.Normal(b, 1), y)
	}
	phi := []float64{0.3, 0.8, math.Log(0.6), math.Log(0.5)}
	guide := func(c *ppl.Ctx) {
		b := c.Sample("b", dist.Normal(c.Param("2_m", phi[1], support.Real), c.Param("3_s", 0.6, support.Positive)))
		c.Sample("a", dist.Normal(c.Param("1_k", phi[0], support.Real).Mul(b), c.Param("4_t", 0.5, support.Positive)))
	}
	want := slope(func(x []float64) float64 {
		k, m, s2, t2 := x[0], x[1], math.Exp(2*x[2]), math.Exp(2*x[3])
		b2 := m*m + s2
		return x[2] + x[3] - 0.5*(k*k*b2+t2+(1-k)*(1-k)*b2+t2+(y-m)*(y-m)+s2)
	}, phi)
	program := must(ppl.Compile(model, nil))
	for _, elbo := range []svi.ELBO{svi.Trace{}, svi.MeanField{}} {
		layout, rows := gradients(t, program, svi.SVI{Guide: guide, ELBO: elbo, Samples: 2}, 4000)
		require.Equal(t, []string{"1_k", "2_m", "3_s", "4_t"}, layout.Names())
		unbiased(t, want, rows, infertest.Name("%T", elbo))
	}
}

// The bounds of weights, of two samples: their mean is an integral over both draws, and the gradient that is estimated
// is that of the mean.
func TestWeightedGradients(t *testing.T) {
	program := must(ppl.Compile(conjugate, batch()))
	const loc, scale = 0.2, 0.7
	phi := []float64{loc, math.Log(scale)}
	for _, c := range []struct {
		elbo               svi.ELBO
		alpha, temperature float64
	}{{svi.IWAE{}, 0, 1}, {svi.IWAE{}, 0, 0.5}, {svi.Renyi{Alpha: 0.5}, 0.5, 1}, {svi.Renyi{Alpha: -1}, -1, 1},
		{svi.Renyi{Alpha: 3}, 3, 2}} {
		want := slope(func(x []float64) float64 {
			sd := math.Exp(x[1])
			c1 := (1 - c.alpha) / c.temperature
			l := func(mu float64) float64 { return logJoint(mu) - c.temperature*logNormal(mu, x[0], sd) }
			return mean(func(one float64) float64 {
				a := l(one)
				return mean(func(two float64) float64 {
					b := l(two)
					top := max(c1*a, c1*b)
					return (top + math.Log(0.5*(math.Exp(c1*a-top)+math.Exp(c1*b-top)))) / c1
				}, x[0], sd)
			}, x[0], sd)
		}, phi)
		_, rows := gradients(t, program, svi.SVI{Guide: normalAt(loc, scale), ELBO: c.elbo, Samples: 2,
			Temperature: constant(c.temperature)}, 8000)
		unbiased(t, want, rows, infertest.Name("%#v, T %g", c.elbo, c.temperature))
	}
}

// shifts is a model with a discrete variable for each datum, beside a continuous one for all.
func shifts(c *ppl.Ctx) {
	mu := c.Sample("mu", dist.Normal(0, 1))
	c.Plate("data", 0, func(c *ppl.Ctx) {
		z := c.Sample("z", dist.Bernoulli(0.3).Expand(len(data)))
		c.Observe("y", dist.Normal(mu.Add(z.Mul(2)), 0.8), c.Data("y"))
	})
}

var logits = []float64{-0.5, 0.2, 0.7, -1.1, 0.4}

// shiftsGuide has a normal mu and independent z.
func shiftsGuide(c *ppl.Ctx) {
	c.Sample("mu", dist.Normal(c.Param("a_loc", 0.3, support.Real), c.Param("b_scale", 0.6, support.Positive)))
	l := c.Param("c_logits", infertest.Vector(logits), support.Real)
	c.Plate("data", len(data), func(c *ppl.Ctx) { c.Sample("z", dist.BernoulliLogits(l)) })
}

// shiftsELBO is E_q[log p − T log q] of shifts under its guide, exactly: the terms of one datum need its z alone, and
// squares of mu have their mean.
func shiftsELBO(x []float64, temperature float64) float64 {
	loc, sd := x[0], math.Exp(x[1])
	sum := -0.5*math.Log(2*math.Pi) - 0.5*(loc*loc+sd*sd) + temperature*(math.Log(sd)+0.5*math.Log(2*math.Pi*math.E))
	for i, y := range data {
		q := 1 / (1 + math.Exp(-x[2+i]))
		for z, w := range []float64{1 - q, q} {
			prior := []float64{0.7, 0.3}[z]
			d := y - loc - 2*float64(z)
			logp := math.Log(prior) - math.Log(0.8) - 0.5*math.Log(2*math.Pi) - 0.5*(d*d+sd*sd)/0.64
			sum += w * (logp - temperature*math.Log(w))
		}
	}
	return sum
}

// Score-function gradients beside reparameterised ones, with the baseline of other samples, and without one in the
// first update of a single sample.
func TestScoreFunctionGradients(t *testing.T) {
	program := must(svi.Compile(shifts, shiftsGuide, batch()))
	phi := append([]float64{0.3, math.Log(0.6)}, logits...)
	for _, temperature := range []float64{1, 0.5} {
		want := slope(func(x []float64) float64 { return shiftsELBO(x, temperature) }, phi)
		for _, elbo := range []svi.ELBO{svi.Trace{}, svi.MeanField{}} {
			for _, samples := range []int{1, 2, 5} {
				layout, rows := gradients(t, program, svi.SVI{ELBO: elbo, Samples: samples,
					Temperature: constant(temperature)}, 6000)
				require.Equal(t, []string{"a_loc", "b_scale", "c_logits"}, layout.Names())
				unbiased(t, want, rows, infertest.Name("%T, T %g, S %d", elbo, temperature, samples))
			}
		}
	}
}

// Only what is in the plates of a variable, element by element, and what is in none, counts in its gradient: the
// estimate of one element has the same noise however many data there are beside it. Were all of ℓ in it, its variance
// would be larger by about the square of ℓ.
func TestPlatesLeaveOthersOut(t *testing.T) {
	far := func(c *ppl.Ctx) { // the second datum is far from all that the model expects
		c.Plate("data", 2, func(c *ppl.Ctx) {
			z := c.Sample("z", dist.Bernoulli(0.3).Expand(2))
			c.Observe("y", dist.Normal(z, tensorOf(t, 1, 1e-3)), c.Data("y"))
		})
	}
	guide := func(c *ppl.Ctx) {
		l := c.Param("logits", infertest.Vector([]float64{0, 0}), support.Real)
		c.Plate("data", 2, func(c *ppl.Ctx) { c.Sample("z", dist.BernoulliLogits(l)) })
	}
	program := must(svi.Compile(far, guide, infer.Batch{"y": torch.Of(infertest.Vector([]float64{0.5, 0.5}))}))
	_, rows := gradients(t, program, svi.SVI{Samples: 1}, 1000)
	for _, row := range rows {
		// ±½ ℓ with |ℓ| < 3 for the first datum; the second has ℓ ≈ −1.25e5.
		require.Less(t, math.Abs(row[0]), 2.0)
		require.Greater(t, math.Abs(row[1]), 1e4)
	}
}

// A bound of weights with discrete variables: the mean over all 2³ draws of three samples, exactly.
func TestWeightedScoreFunctionGradients(t *testing.T) {
	const logit = 0.4
	model := func(c *ppl.Ctx) {
		z := c.Sample("z", dist.Bernoulli(0.3))
		c.Observe("y", dist.Normal(z.Mul(2), 1), 1.2)
	}
	guide := func(c *ppl.Ctx) { c.Sample("z", dist.BernoulliLogits(c.Param("logit", logit, support.Real))) }
	program := must(svi.Compile(model, guide, nil))
	for _, alpha := range []float64{0, 0.5, -1} {
		want := slope(func(x []float64) float64 {
			q := 1 / (1 + math.Exp(-x[0]))
			share := []float64{1 - q, q}
			l := func(z int) float64 {
				return math.Log([]float64{0.7, 0.3}[z]) + logNormal(1.2, 2*float64(z), 1) - math.Log(share[z])
			}
			sum := 0.0
			for draw := range 8 {
				weight, inside := 1.0, 0.0
				for s := range 3 {
					z := draw >> s & 1
					weight *= share[z]
					inside += math.Exp((1-alpha)*l(z)) / 3
				}
				sum += weight * math.Log(inside) / (1 - alpha)
			}
			return sum
		}, []float64{logit})
		_, rows := gradients(t, program, svi.SVI{ELBO: svi.Renyi{Alpha: alpha}, Samples: 3}, 40000)
		unbiased(t, want, rows, infertest.Name("Rényi, α %g", alpha))
		if alpha == 0 {
			_, rows = gradients(t, program, svi.SVI{ELBO: svi.IWAE{}, Samples: 3}, 40000)
			unbiased(t, want, rows, "IWAE")
		}
	}
}

// Draws of a mixture have a gradient in the components and none in the weights: the score function has both.
func TestMixtureGuide(t *testing.T) {
	phi := []float64{0.3, -0.4, -1, 0.8} // the log weights, up to a constant, and the locations
	guide := func(c *ppl.Ctx) {
		weights := c.Param("a_logits", infertest.Vector(phi[:2]), support.Real)
		locs := c.Param("b_locs", infertest.Vector(phi[2:]), support.Real)
		c.Sample("mu", dist.MixtureSameFamily(dist.CategoricalLogits(weights), dist.Normal(locs, 0.5)))
	}
	want := slope(func(x []float64) float64 {
		w := 1 / (1 + math.Exp(x[1]-x[0]))
		l := func(mu float64) float64 {
			q := w*math.Exp(logNormal(mu, x[2], 0.5)) + (1-w)*math.Exp(logNormal(mu, x[3], 0.5))
			return logJoint(mu) - math.Log(q)
		}
		return w*mean(l, x[2], 0.5) + (1-w)*mean(l, x[3], 0.5)
	}, phi)
	program := must(ppl.Compile(conjugate, batch()))
	_, rows := gradients(t, program, svi.SVI{Guide: guide, Samples: 4}, 8000)
	unbiased(t, want, rows, "mixture")
}
