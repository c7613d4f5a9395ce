package main

import (
	"math"

	"github.com/kelvin-ppl/kelvin/bench/internal/posteriors"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// seriesTargets are models of numbers that follow each other.
var seriesTargets = []target{
	{"arma11", arma},
	{"garch11_scan", garch},
	{"volatility300", func(m *maker) problem { return volatility(m, 300) }},
	{"volatility500", func(m *maker) problem { return volatility(m, 500) }},
	{"local_level", localLevel},
	{"hmm_exponential", func(m *maker) problem { return hiddenStates(m, true) }},
	{"hmm_normal", func(m *maker) problem { return hiddenStates(m, false) }},
}

// arma is ARMA(1, 1) of 200 numbers, with the errors of its predictions as the carry (Stan User's Guide,
// "Autoregressive moving average models"):
//
//	mu ~ N(0, 10), phi ~ N(0, 2), theta ~ N(0, 2), sigma ~ HalfCauchy(2.5)
//	e_t = y_t − (mu + phi y_{t−1} + theta e_{t−1}), e_1 = y_1 − (mu + phi mu), e_t ~ N(0, sigma)
//
// Where |theta| > 1 the errors grow as |theta|^t.
func arma(m *maker) problem {
	const n = 200
	y, last, before := make([]float64, n), 0.0, 0.0
	for t := range y {
		e := m.NormFloat64()
		y[t] = 0.3 + 0.7*last + 0.4*before + e
		last, before = y[t], e
	}
	data := numbers{"T": n, "y": y}
	return problem{
		model: posteriors.ARMA(n), batch: data.batch(), data: data, stan: "arma",
	}
}

// garch is GARCH(1, 1) of 500 returns with shares of the variance (docs/language.md):
//
//	base ~ HalfNormal(1), w ~ Dirichlet(1, 1, 1), v_1 = base, v_t = base w_3 + w_1 y_{t−1}² + w_2 v_{t−1}
//	y_t ~ N(0, √v_t)
func garch(m *maker) problem {
	const n = 500
	y, v := make([]float64, n), 1.0
	for t := range y {
		y[t] = math.Sqrt(v) * m.NormFloat64()
		v = 0.1 + 0.15*y[t]*y[t] + 0.75*v
	}
	data := numbers{"T": n, "y": y}
	return problem{
		model: func(c *ppl.Ctx) {
			base := c.Sample("base", dist.HalfNormal(1))
			w := c.Sample("w", dist.Dirichlet(vector(3, 1)))
			y := c.Data("y")
			_, variance := c.Scan(n, []torch.Tensor{base}, func(c *ppl.Ctx, t int, carry []torch.Tensor) ([]torch.Tensor,
				torch.Tensor) {
				next := base.Mul(w.At(2)).Add(w.At(0).Mul(y.At(t).Square())).Add(w.At(1).Mul(carry[0]))
				return []torch.Tensor{next}, carry[0]
			})
			c.Plate("time", 0, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(0, variance.Sqrt()), y) })
		},
		batch: data.batch(), data: data, stan: "garch",
	}
}

// volatility is a series whose log variance is an autoregression, in the non-centred form (Stan User's Guide,
// "Stochastic volatility models", which has the priors):
//
//	mu ~ Cauchy(0, 10), phi ~ U(−1, 1), sigma ~ HalfCauchy(5), z_t ~ N(0, 1)
//	h_1 = mu + sigma z_1/√(1 − phi²), h_t = mu + phi (h_{t−1} − mu) + sigma z_t, y_t ~ N(0, exp(h_t/2))
func volatility(m *maker, n int) problem {
	y, h := make([]float64, n), 0.0
	for t := range y {
		h = 0.95*h + 0.25*m.NormFloat64()
		y[t] = math.Exp((h-1)/2) * m.NormFloat64()
	}
	data := numbers{"T": n, "y": y}
	return problem{
		model: func(c *ppl.Ctx) {
			mu := c.Sample("mu", dist.Cauchy(0, 10))
			phi := c.Sample("phi", dist.Uniform(-1, 1))
			sigma := c.Sample("sigma", dist.HalfCauchy(5))
			z := c.Sample("z", dist.Normal(0, 1).Expand(n))
			first := sigma.Mul(z.At(0)).Div(torch.Of(1).Sub(phi.Square()).Sqrt())
			_, rest := c.Scan(n-1, []torch.Tensor{first}, func(c *ppl.Ctx, t int, carry []torch.Tensor) ([]torch.Tensor,
				torch.Tensor) {
				h := phi.Mul(carry[0]).Add(sigma.Mul(z.At(t + 1)))
				return []torch.Tensor{h}, h
			})
			h := torch.Cat(0, first.Unsqueeze(0), rest).Add(mu)
			c.Plate("time", 0, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(0, h.Mul(0.5).Exp()), c.Data("y")) })
		},
		batch: data.batch(), data: data, stan: "volatility",
	}
}

// localLevel is a random walk of 500 steps that is seen with noise:
//
//	step ~ HalfNormal(1), noise ~ HalfNormal(1), level_t − level_{t−1} ~ N(0, step), level_0 = 0, y_t ~ N(level_t, noise)
func localLevel(m *maker) problem {
	const n = 500
	y, level := make([]float64, n), 0.0
	for t := range y {
		level += 0.3 * m.NormFloat64()
		y[t] = level + m.NormFloat64()
	}
	data := numbers{"T": n, "y": y}
	return problem{
		model: func(c *ppl.Ctx) {
			step := c.Sample("step", dist.HalfNormal(1))
			noise := c.Sample("noise", dist.HalfNormal(1))
			level := c.Sample("level", dist.GaussianRandomWalk(n, step))
			c.Plate("time", 0, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(level, noise), c.Data("y")) })
		},
		batch: data.batch(), data: data, stan: "level",
	}
}

// hiddenStates is two hidden states that keep for a while, each seen through two outputs, which are exponential or
// normal:
//
//	stay_k ~ Beta(8, 2), 0 < a_1 < a_2 ~ N(0, 2), 0 < b_1 < b_2 ~ N(0, 2), state_1 ~ (1/2, 1/2)
//	y_t ~ Exponential(a_state) and v_t ~ Exponential(b_state), or N(a_state, 0.5) and N(b_state, 0.5)
func hiddenStates(m *maker, exponential bool) problem {
	const n = 200
	y, v, state := make([]float64, n), make([]float64, n), 0
	for t := range y {
		if m.Float64() > 0.9 {
			state = 1 - state
		}
		a, b := []float64{0.5, 3}[state], []float64{1, 2.5}[state]
		if exponential {
			y[t], v[t] = m.ExpFloat64()/a, m.ExpFloat64()/b
		} else {
			y[t], v[t] = a+0.5*m.NormFloat64(), b+0.5*m.NormFloat64()
		}
	}
	data := numbers{"T": n, "y": y, "v": v, "exponential": 0}
	output := func(x torch.Tensor) dist.Distribution { return dist.Normal(x, 0.5) }
	if exponential {
		data["exponential"] = 1
		output = func(x torch.Tensor) dist.Distribution { return dist.Exponential(x) }
	}
	return problem{
		model: func(c *ppl.Ctx) {
			stay := c.Sample("stay", dist.Beta(8, 2).Expand(2))
			a := c.Sample("a", dist.ImproperUniform(support.PositiveOrdered, nil, []int{2}))
			b := c.Sample("b", dist.ImproperUniform(support.PositiveOrdered, nil, []int{2}))
			c.Factor("priors", dist.Normal(0, 2).LogProb(a).Add(dist.Normal(0, 2).LogProb(b)).Sum())
			leave := torch.Of(1).Sub(stay)
			rows := torch.Stack(0, torch.Stack(0, stay.At(0), leave.At(0)), torch.Stack(0, leave.At(1), stay.At(1)))
			y, v := c.Data("y"), c.Data("v")
			var state torch.Tensor
			c.Markov(n, func(c *ppl.Ctx, t int) {
				if t == 0 {
					state = c.Sample("state", dist.Categorical(vector(2, 0.5)))
				} else {
					state = c.Sample("state", dist.Categorical(rows.Take(state)))
				}
				c.Observe("y", output(a.Take(state)), y.At(t))
				c.Observe("v", output(b.Take(state)), v.At(t))
			})
		},
		batch: data.batch(), data: data, stan: "hmm",
	}
}
