package main

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/ppl"
)

// covariances are models of correlation matrices.
var covariances = []target{
	{"lkj5", func(m *maker) problem { return covariance(m, 5) }},
	{"lkj20", func(m *maker) problem { return covariance(m, 20) }},
	{"lkj50", func(m *maker) problem { return covariance(m, 50) }},
	{"effects100", func(m *maker) problem { return effects(m, 100, 10) }},
	{"effects500", func(m *maker) problem { return effects(m, 500, 5) }},
}

// covariance is the covariance of k columns of 500 rows:
//
//	mu ~ N(0, 5), s ~ HalfNormal(2), L ~ LKJCholesky(k, 2), y_i ~ N(mu, diag(s) L Lᵀ diag(s))
//
// The data are of one factor, with correlations of 0.25.
func covariance(m *maker, k int) problem {
	const rows = 500
	y := make([]float64, 0, rows*k)
	for range rows {
		factor := m.NormFloat64()
		for j := range k {
			y = append(y, 0.1*float64(j)+(0.5+float64(j%4))*(0.5*factor+math.Sqrt(0.75)*m.NormFloat64()))
		}
	}
	data := numbers{"N": rows, "K": k, "y": matrix{y, k}}
	return problem{
		model: func(c *ppl.Ctx) {
			mu := c.Sample("mu", dist.Normal(0, 5).Expand(k))
			s := c.Sample("s", dist.HalfNormal(2).Expand(k))
			l := c.Sample("L", dist.LKJCholesky(k, 2))
			c.Plate("rows", 0, func(c *ppl.Ctx) {
				c.Observe("y", dist.MultivariateNormalCholesky(mu, s.Unsqueeze(-1).Mul(l)), c.Data("y"))
			})
		},
		batch: data.batch(), data: data, stan: "covariance",
	}
}

// effects is an intercept and two slopes that vary together among groups, in the non-centred form:
//
//	gamma ~ N(0, 5), tau ~ HalfNormal(1), L ~ LKJCholesky(3, 2), sigma ~ HalfNormal(1), z_g ~ N(0, I)
//	b_g = gamma + diag(tau) L z_g, y_i ~ N(x_i · b_g[i], sigma)
func effects(m *maker, groups, size int) problem {
	n := groups * size
	x, g, y := make([]float64, 0, 3*n), make([]float64, n), make([]float64, n)
	var b [3]float64
	for i := range n {
		g[i] = float64(i / size)
		if i%size == 0 {
			u, v, w := m.NormFloat64(), m.NormFloat64(), m.NormFloat64()
			b = [3]float64{1 + u, -0.5 + 0.7*(0.6*u+0.8*v), 0.3 + 0.4*(-0.3*u+0.95*w)}
		}
		row := []float64{1, m.NormFloat64(), m.NormFloat64()}
		x = append(x, row...)
		y[i] = row[0]*b[0] + row[1]*b[1] + row[2]*b[2] + 0.5*m.NormFloat64()
	}
	data := numbers{"N": n, "G": groups, "x": matrix{x, 3}, "g": g, "y": y}
	return problem{
		model: func(c *ppl.Ctx) {
			gamma := c.Sample("gamma", dist.Normal(0, 5).Expand(3))
			tau := c.Sample("tau", dist.HalfNormal(1).Expand(3))
			l := c.Sample("L", dist.LKJCholesky(3, 2))
			sigma := c.Sample("sigma", dist.HalfNormal(1))
			z := c.Sample("z", dist.Normal(0, 1).Expand(groups, 3))
			effect := gamma.Add(z.MatMul(tau.Unsqueeze(-1).Mul(l).Transpose()))
			c.Plate("data", 0, func(c *ppl.Ctx) {
				mean := c.Data("x").Mul(effect.Take(c.Data("g"))).Sum(-1)
				c.Observe("y", dist.Normal(mean, sigma), c.Data("y"))
			})
		},
		batch: data.batch(), data: data, stan: "effects",
	}
}

// at is the name of an element of a vector, counted from 1 as in Stan.
func at(name string, i int) string { return fmt.Sprintf("%s[%d]", name, i+1) }
