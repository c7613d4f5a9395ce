package main

import (
	"math"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/ppl"
	"gonum.org/v1/gonum/integrate/quad"
	"gonum.org/v1/gonum/mat"
)

// densities are laws of a shape that is hard by itself; most have a closed form.
var densities = []target{
	{"axes200_1e6", func(m *maker) problem { return gaussian(m, 200, 1e6, false) }},
	{"rotated200_1e6", func(m *maker) problem { return gaussian(m, 200, 1e6, true) }},
	{"rotated100_1e8", func(m *maker) problem { return gaussian(m, 100, 1e8, true) }},
	{"student_1.5", heavyTails},
	{"multinomial50", categories},
	{"simplex_0.05", sparseSimplex},
	{"bounds", bounds},
	{"mixture4", mixture},
	{"bimodal", bimodal},
}

// gaussian is a normal law of d dimensions whose covariance has eigenvalues from 1/condition to 1, evenly in the
// logarithm, along the axes or along random directions.
func gaussian(m *maker, d int, condition float64, rotated bool) problem {
	scales := each(d, func(i int) float64 { return math.Pow(condition, -0.5*float64(i)/float64(d-1)) })
	known := truth{}
	if !rotated {
		for i, s := range scales {
			known[at("x", i)] = moments{mean: 0, sd: s}
		}
		widths := tensor(scales)
		return problem{
			model: func(c *ppl.Ctx) { c.Sample("x", dist.Normal(0, widths)) },
			exact: known, stan: "axes", data: numbers{"D": d, "scale": scales},
		}
	}
	var qr, root mat.QR
	var q, r mat.Dense
	qr.Factorize(mat.NewDense(d, d, m.normals(d*d, 1)))
	qr.QTo(&q)
	// R of diag(scales) Qᵀ is the transposed Cholesky factor of the covariance, but for the signs of its rows.
	scaled := mat.NewDense(d, d, nil)
	scaled.Mul(mat.NewDiagDense(d, scales), q.T())
	root.Factorize(scaled)
	root.RTo(&r)
	factor := make([]float64, d*d)
	for i := range d {
		sum := 0.0
		for j := range i + 1 {
			v := r.At(j, i) * math.Copysign(1, r.At(j, j))
			factor[i*d+j] = v
			sum += v * v
		}
		known[at("x", i)] = moments{mean: 0, sd: math.Sqrt(sum)}
	}
	l := tensor(factor, d, d)
	return problem{
		model: func(c *ppl.Ctx) { c.Sample("x", dist.MultivariateNormalCholesky(vector(d, 0), l)) },
		exact: known, stan: "rotated", data: numbers{"D": d, "L": matrix{factor, d}},
	}
}

// heavyTails is ten numbers of Student's t with 1.5 degrees of freedom, whose variance is infinite. x/√(1 + x²) is
// judged, whose moments are integrals.
func heavyTails(*maker) problem {
	const d, nu = 10, 1.5
	up, _ := math.Lgamma((nu + 1) / 2)
	down, _ := math.Lgamma(nu / 2)
	density := func(x float64) float64 {
		return math.Exp(up-down) / math.Sqrt(nu*math.Pi) * math.Pow(1+x*x/nu, -(nu+1)/2)
	}
	// x = tan a turns the line into (−π/2, π/2), and x²/(1 + x²) into sin² a.
	square := quad.Fixed(func(a float64) float64 {
		return math.Pow(math.Sin(a), 2) * density(math.Tan(a)) / math.Pow(math.Cos(a), 2)
	}, -math.Pi/2, math.Pi/2, 20000, quad.Legendre{}, 0)
	known := truth{}
	for i := range d {
		known[at("bounded", i)] = moments{mean: 0, sd: math.Sqrt(square)}
	}
	return problem{
		model: func(c *ppl.Ctx) {
			x := c.Sample("x", dist.StudentT(nu, 0, 1).Expand(d))
			c.Deterministic("bounded", x.Div(x.Square().Add(1).Sqrt()))
		},
		watch: []string{"bounded"}, exact: known, stan: "heavy", data: numbers{"D": d},
	}
}

// dirichletTruth is the moments of a Dirichlet law: mean α_i/A, variance mean (1 − mean)/(A + 1), A = Σ α.
func dirichletTruth(name string, alpha []float64) truth {
	total, out := 0.0, truth{}
	for _, a := range alpha {
		total += a
	}
	for i, a := range alpha {
		mean := a / total
		out[at(name, i)] = moments{mean: mean, sd: math.Sqrt(mean * (1 - mean) / (total + 1))}
	}
	return out
}

// categories is counts of 50 categories, most of which are rare:
//
//	p ~ Dirichlet(1, …, 1), y ~ Multinomial(2000, p), so that p given y is Dirichlet(1 + y)
func categories(m *maker) problem {
	const n, k = 2000, 50
	p, total := each(k, func(i int) float64 { return math.Pow(float64(i+1), -1.5) }), 0.0
	for _, v := range p {
		total += v
	}
	y := make([]float64, k)
	for range n {
		y[m.category(each(k, func(i int) float64 { return p[i] / total }))]++
	}
	data := numbers{"K": k, "y": y}
	return problem{
		model: func(c *ppl.Ctx) {
			p := c.Sample("p", dist.Dirichlet(vector(k, 1)))
			c.Observe("y", dist.Multinomial(n, p), c.Data("y"))
		},
		batch: data.batch(), data: data, stan: "multinomial",
		exact: dirichletTruth("p", each(k, func(i int) float64 { return 1 + y[i] })),
	}
}

// sparseSimplex is Dirichlet(0.05, …, 0.05) of ten probabilities: nearly always one is 1 and the others are 0.
func sparseSimplex(*maker) problem {
	const k = 10
	return problem{
		model: func(c *ppl.Ctx) { c.Sample("p", dist.Dirichlet(vector(k, 0.05))) },
		exact: dirichletTruth("p", each(k, func(int) float64 { return 0.05 })), stan: "simplex",
		data: numbers{"K": k, "alpha": 0.05},
	}
}

// bounds is posteriors at the ends of their supports:
//
//	p ~ Beta(1, 1), 0 of 1000, so that p ~ Beta(1, 1001)
//	theta ~ FlatPositive, 100 numbers of N(theta, 1) of mean −0.5: a normal law with its mean 5 sds below the bound
//	u ~ U(0, 1), 100 numbers of N(u, 1) of mean 1.3: the same from above, 3 sds
func bounds(*maker) problem {
	const n = 100
	data := numbers{"N": n, "low": -0.5, "high": 1.3}
	low, high := tailMoments(5), tailMoments(3)
	return problem{
		model: func(c *ppl.Ctx) {
			c.Observe("none", dist.Binomial(1000, c.Sample("p", dist.Beta(1, 1))), 0)
			c.Observe("low", dist.Normal(c.Sample("theta", dist.FlatPositive()), 0.1), -0.5)
			c.Observe("high", dist.Normal(c.Sample("u", dist.Uniform(0, 1)), 0.1), 1.3)
		},
		data: data, stan: "bounds",
		exact: truth{
			"p":     {mean: 1.0 / 1002, sd: math.Sqrt(1001.0 / (1002 * 1002 * 1003))},
			"theta": {mean: -0.5 + 0.1*low.mean, sd: 0.1 * low.sd},
			"u":     {mean: 1.3 - 0.1*high.mean, sd: 0.1 * high.sd},
		},
	}
}

// tailMoments is the moments of N(0, 1) above a: mean h = φ(a)/(1 − Φ(a)), variance 1 + a h − h².
func tailMoments(a float64) moments {
	h := math.Exp(-a*a/2) / math.Sqrt(2*math.Pi) / (math.Erfc(a/math.Sqrt2) / 2)
	return moments{mean: h, sd: math.Sqrt(1 + a*h - h*h)}
}

// mixture is 400 numbers of four normal components in order:
//
//	w ~ Dirichlet(2, …), mu_1 < … < mu_4 ~ N(0, 5), sigma_k ~ LogNormal(0, 0.5), y_i ~ Σ_k w_k N(mu_k, sigma_k)
func mixture(m *maker) problem {
	const n, k = 400, 4
	y := each(n, func(int) float64 {
		j := m.category([]float64{0.2, 0.3, 0.3, 0.2})
		return []float64{-4.5, -1.5, 1.5, 4.5}[j] + 0.8*m.NormFloat64()
	})
	data := numbers{"N": n, "K": k, "y": y}
	return problem{
		model: func(c *ppl.Ctx) {
			w := c.Sample("w", dist.Dirichlet(vector(k, 2)))
			mu := c.Sample("mu", dist.ImproperUniform(support.Ordered, nil, []int{k}))
			c.Factor("mu_prior", dist.Normal(0, 5).LogProb(mu).Sum())
			sigma := c.Sample("sigma", dist.LogNormal(0, 0.5).Expand(k))
			c.Plate("data", 0, func(c *ppl.Ctx) {
				c.Observe("y", dist.MixtureSameFamily(w, dist.Normal(mu, sigma)), c.Data("y"))
			})
		},
		batch: data.batch(), data: data, stan: "mixture",
	}
}

// bimodal is four numbers, each of N(−10, 1) or N(10, 1) with probability 1/2. No chain can go from one mode to the
// other, and four that start apart are all on one side of each number with probability 8⁻⁴.
func bimodal(*maker) problem {
	return problem{
		model: func(c *ppl.Ctx) {
			centres := tensor([]float64{-10, 10})
			c.Sample("x", dist.MixtureSameFamily(vector(2, 0.5), dist.Normal(centres, 1)).Expand(4))
		},
		bimodal: true, stan: "bimodal",
	}
}
