package main

import (
	"math"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// hierarchies are models of groups, and a latent process.
var hierarchies = []target{
	{"centred", func(m *maker) problem { return groupMeans(m, true) }},
	{"noncentred", func(m *maker) problem { return groupMeans(m, false) }},
	{"funnel", funnel},
	{"horseshoe", horseshoe},
	{"irt2pl", itemResponse},
	{"gp_poisson", processCounts},
}

// groupMeans is the means of 30 groups of 20 numbers, which tell the means well:
//
//	mu ~ N(0, 5), tau ~ HalfNormal(2), sigma ~ HalfNormal(2), y_i ~ N(theta_g[i], sigma)
//	theta_g ~ N(mu, tau), or theta_g = mu + tau z_g with z_g ~ N(0, 1)
func groupMeans(_ *maker, centred bool) problem {
	const groups, size = 30, 20
	m := newMaker("group means") // the same data for both forms
	means := m.normals(groups, 1.5)
	g := each(groups*size, func(i int) float64 { return float64(i / size) })
	y := each(groups*size, func(i int) float64 { return 2 + means[i/size] + m.NormFloat64() })
	data := numbers{"N": groups * size, "G": groups, "g": g, "y": y}
	stan := "noncentred"
	if centred {
		stan = "centred"
	}
	return problem{
		model: func(c *ppl.Ctx) {
			mu := c.Sample("mu", dist.Normal(0, 5))
			tau := c.Sample("tau", dist.HalfNormal(2))
			sigma := c.Sample("sigma", dist.HalfNormal(2))
			var theta torch.Tensor
			c.Plate("groups", groups, func(c *ppl.Ctx) {
				if centred {
					theta = c.Sample("theta", dist.Normal(mu, tau))
				} else {
					theta = mu.Add(tau.Mul(c.Sample("z", dist.Normal(0, 1))))
				}
			})
			c.Plate("data", 0, func(c *ppl.Ctx) {
				c.Observe("y", dist.Normal(theta.Take(c.Data("g")), sigma), c.Data("y"))
			})
		},
		batch: data.batch(), data: data, stan: stan,
	}
}

// funnel is Neal's (2003, Annals of Statistics 31, 705–767, section 8), as it is written down:
//
//	v ~ N(0, 3), x_i ~ N(0, exp(v/2)), i = 1, …, 9
//
// v is judged: x has heavy tails.
func funnel(*maker) problem {
	return problem{
		model: func(c *ppl.Ctx) {
			v := c.Sample("v", dist.Normal(0, 3))
			c.Sample("x", dist.Normal(0, v.Mul(0.5).Exp()).Expand(9))
		},
		watch: []string{"v"}, exact: truth{"v": {mean: 0, sd: 3}}, stan: "funnel",
	}
}

// horseshoe is a regression with more columns than rows, and the horseshoe (Carvalho, Polson and Scott 2010):
//
//	tau ~ HalfCauchy(1), lambda_j ~ HalfCauchy(1), z_j ~ N(0, 1), beta_j = tau lambda_j z_j, sigma ~ HalfNormal(2)
//	y ~ N(X beta, sigma)
//
// The logarithms of the scales are judged, whose tails are heavy.
func horseshoe(m *maker) problem {
	const n, p = 60, 100
	x := m.normals(n*p, 1)
	y := each(n, func(i int) float64 {
		row := x[i*p:]
		return 3*row[0] - 2*row[1] + 1.5*row[2] + row[3] - row[4] + m.NormFloat64()
	})
	data := numbers{"N": n, "P": p, "x": matrix{x, p}, "y": y}
	return problem{
		model: func(c *ppl.Ctx) {
			tau := c.Sample("tau", dist.HalfCauchy(1))
			lambda := c.Sample("lambda", dist.HalfCauchy(1).Expand(p))
			z := c.Sample("z", dist.Normal(0, 1).Expand(p))
			sigma := c.Sample("sigma", dist.HalfNormal(2))
			c.Deterministic("log_tau", tau.Log())
			c.Deterministic("log_lambda", lambda.Log())
			beta := c.Deterministic("beta", z.Mul(lambda).Mul(tau))
			c.Plate("data", 0, func(c *ppl.Ctx) {
				c.Observe("y", dist.NormalGLM(c.Data("x"), beta, 0, sigma), c.Data("y"))
			})
		},
		batch: data.batch(), data: data, watch: []string{"log_tau", "log_lambda", "beta", "sigma"}, stan: "horseshoe",
	}
}

// itemResponse is the answers of 100 persons to 20 items (2PL):
//
//	a_j ~ LogNormal(0, 0.5), b_j ~ N(0, 1.5), theta_i ~ N(0, 1), y_ij ~ Bernoulli(logit⁻¹(a_j (theta_i − b_j)))
func itemResponse(m *maker) problem {
	const persons, items = 100, 20
	theta, b := m.normals(persons, 1), m.normals(items, 1)
	a := each(items, func(int) float64 { return math.Exp(0.4 * m.NormFloat64()) })
	n := persons * items
	person := each(n, func(i int) float64 { return float64(i / items) })
	item := each(n, func(i int) float64 { return float64(i % items) })
	y := each(n, func(i int) float64 {
		return m.chance(1 / (1 + math.Exp(-a[i%items]*(theta[i/items]-b[i%items]))))
	})
	data := numbers{"N": n, "I": persons, "J": items, "person": person, "item": item, "y": y}
	return problem{
		model: func(c *ppl.Ctx) {
			a := c.Sample("a", dist.LogNormal(0, 0.5).Expand(items))
			b := c.Sample("b", dist.Normal(0, 1.5).Expand(items))
			theta := c.Sample("theta", dist.Normal(0, 1).Expand(persons))
			c.Plate("answers", 0, func(c *ppl.Ctx) {
				item := c.Data("item")
				eta := a.Take(item).Mul(theta.Take(c.Data("person")).Sub(b.Take(item)))
				c.Observe("y", dist.BernoulliLogits(eta), c.Data("y"))
			})
		},
		batch: data.batch(), data: data, stan: "irt",
	}
}

// processCounts is counts at 100 points whose log rate is a Gaussian process:
//
//	rho ~ InverseGamma(5, 5), alpha ~ HalfNormal(2), base ~ N(0, 3), z ~ N(0, I)
//	K_ij = alpha² exp(−(x_i − x_j)²/(2 rho²)) + 1e-6 [i = j], f = base + chol(K) z, y_i ~ Poisson(exp f_i)
func processCounts(m *maker) problem {
	const n = 100
	x := each(n, func(i int) float64 { return 0.1 * float64(i) })
	y := each(n, func(i int) float64 { return m.poisson(math.Exp(1 + math.Sin(x[i]) + 0.5*math.Cos(2.3*x[i]))) })
	squares := each(n*n, func(i int) float64 { return -0.5 * (x[i/n] - x[i%n]) * (x[i/n] - x[i%n]) })
	jitter := each(n*n, func(i int) float64 {
		if i/n == i%n {
			return 1e-6
		}
		return 0
	})
	data := numbers{"N": n, "x": x, "y": y}
	apart, diagonal := tensor(squares, n, n), tensor(jitter, n, n)
	return problem{
		model: func(c *ppl.Ctx) {
			rho := c.Sample("rho", dist.InverseGamma(5, 5))
			alpha := c.Sample("alpha", dist.HalfNormal(2))
			base := c.Sample("base", dist.Normal(0, 3))
			z := c.Sample("z", dist.Normal(0, 1).Expand(n))
			k := apart.Div(rho.Square()).Exp().Mul(alpha.Square()).Add(diagonal)
			f := base.Add(k.Cholesky().MatMul(z))
			c.Plate("data", 0, func(c *ppl.Ctx) { c.Observe("y", dist.PoissonLog(f), c.Data("y")) })
		},
		batch: data.batch(), data: data, stan: "gp_poisson",
	}
}

// poisson is a count with a mean, by products of uniform numbers (Knuth).
func (m *maker) poisson(mean float64) float64 {
	k, product, end := 0.0, m.Float64(), math.Exp(-mean)
	for ; product > end; k++ {
		product *= m.Float64()
	}
	return k
}
