package main

import (
	"math"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/models"
	"github.com/kelvin-ppl/kelvin/ode"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// systems are differential equations, with chains that start uniformly in (−2, 2): most of them far from the data.
var systems = []target{
	{"sir", epidemic},
	{"predator_prey", predatorPrey},
}

// epidemic is models.Influenza.
func epidemic(*maker) problem {
	m, err := models.Influenza()
	if err != nil {
		panic(err) // its data are constants
	}
	times, cases := m.Batch["times"].Values(), m.Batch["cases"].Values()
	return problem{
		model: m.Model, batch: m.Batch, watch: []string{"beta", "gamma", "phi_inv"}, stan: "influenza",
		data: numbers{"T": len(times), "N": 763, "times": times, "cases": cases},
	}
}

// predatorPrey is two populations in 20 years (Lotka 1925; Volterra 1926; the priors are those of Carpenter 2018,
// Predator-Prey Population Dynamics, a Stan case study):
//
//	du/dt = (a − b v) u, dv/dt = (−g + d u) v
//	a, g ~ N(1, 0.5) > 0, b, d ~ N(0.05, 0.05) > 0, start ~ LogNormal(log 10, 1), sigma ~ LogNormal(−1, 1)
//	log y_0 ~ N(log start, sigma), log y_t ~ N(log (u, v)(t), sigma)
func predatorPrey(m *maker) problem {
	const years = 20
	times := each(years, func(i int) float64 { return float64(i + 1) })
	first := []float64{30 * math.Exp(0.25*m.NormFloat64()), 5 * math.Exp(0.25*m.NormFloat64())}
	var y []float64
	u, v := 30.0, 5.0
	for range years {
		const steps = 10000
		for range steps { // by Euler's rule, whose error is far below the noise
			u, v = u+(0.55-0.028*v)*u/steps, v+(-0.8+0.024*u)*v/steps
		}
		y = append(y, u*math.Exp(0.25*m.NormFloat64()), v*math.Exp(0.25*m.NormFloat64()))
	}
	data := numbers{"T": years, "times": times, "y": matrix{y, 2}, "first": first}
	system := ode.New(func(_, y torch.Tensor, p []torch.Tensor) torch.Tensor {
		u, v := y.At(0), y.At(1)
		return torch.Stack(0, p[0].Sub(p[1].Mul(v)).Mul(u), p[3].Mul(u).Sub(p[2]).Mul(v))
	}, ode.Options{})
	positive := func(mean, sd float64) dist.Distribution {
		return dist.Truncated(dist.Normal(mean, sd), 0, math.Inf(1))
	}
	return problem{
		model: func(c *ppl.Ctx) {
			a, b := c.Sample("a", positive(1, 0.5)), c.Sample("b", positive(0.05, 0.05))
			g, d := c.Sample("g", positive(1, 0.5)), c.Sample("d", positive(0.05, 0.05))
			start := c.Sample("start", dist.LogNormal(math.Log(10), 1).Expand(2))
			sigma := c.Sample("sigma", dist.LogNormal(-1, 1).Expand(2))
			z := ode.Solve(system, start, 0, c.Data("times"), a, b, g, d)
			c.Observe("first", dist.Independent(dist.LogNormal(start.Log(), sigma), 1), c.Data("first"))
			c.Plate("years", 0, func(c *ppl.Ctx) {
				c.Observe("y", dist.Independent(dist.LogNormal(z.Max(1e-8).Log(), sigma), 1), c.Data("y"))
			})
		},
		batch: data.batch(), data: data, stan: "predator_prey",
	}
}
