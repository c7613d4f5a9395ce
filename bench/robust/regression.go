package main

import (
	"math"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/ppl"
	"gonum.org/v1/gonum/mat"
)

// regressions are models of one outcome for each row.
var regressions = []target{
	{"scaled9", scaledColumns},
	{"collinear", func(m *maker) problem { return collinear(m, 5, 0.999) }},
	{"columns25", func(m *maker) problem { return collinear(m, 25, 0.9996) }},
	{"student_1e6", studentLarge},
	{"separation", separation},
	{"negbin_1e5", largeCounts},
	{"ordered7", orderedOutcome},
	{"network501", network},
}

// scaledColumns is a regression on nine columns whose scales go from 1e-4 to 1e4.
func scaledColumns(m *maker) problem {
	const n, k = 200, 9
	x := each(n*k, func(i int) float64 { return math.Pow(10, float64(i%k)-4) * m.NormFloat64() })
	return flatRegression(m, x, k, func(j int) float64 { return math.Pow(10, 4-float64(j)) })
}

// collinear is a regression on k columns each two of which have a correlation.
func collinear(m *maker, k int, correlation float64) problem {
	const n = 200
	x := make([]float64, 0, n*k)
	for range n {
		common := m.NormFloat64()
		for range k {
			x = append(x, math.Sqrt(correlation)*common+math.Sqrt(1-correlation)*m.NormFloat64())
		}
	}
	return flatRegression(m, x, k, func(int) float64 { return 1 })
}

// flatRegression is y ~ N(X beta, sigma) with flat priors of beta and of sigma > 0. With ν = n − k − 1, the least
// squares b and the sum S of squared residuals (Gelman et al. 2013, Bayesian Data Analysis, section 14.2, with 1 in the
// place of 1/σ²)
//
//	sigma² ~ InverseGamma(ν/2, S/2), beta ~ t_ν(b, (XᵀX)⁻¹ S/ν)
func flatRegression(m *maker, x []float64, k int, coefficient func(j int) float64) problem {
	n := len(x) / k
	y := each(n, func(i int) float64 {
		mean := 0.0
		for j := range k {
			mean += x[i*k+j] * coefficient(j)
		}
		return mean + m.NormFloat64()
	})
	data := numbers{"N": n, "K": k, "x": matrix{x, k}, "y": y}
	return problem{
		model: func(c *ppl.Ctx) {
			beta := c.Sample("beta", dist.Flat(k))
			sigma := c.Sample("sigma", dist.FlatPositive())
			c.Plate("data", 0, func(c *ppl.Ctx) {
				c.Observe("y", dist.NormalGLM(c.Data("x"), beta, 0, sigma), c.Data("y"))
			})
		},
		batch: data.batch(), data: data, exact: flatTruth(x, y, k), stan: "regression",
	}
}

// flatTruth is the posterior of flatRegression. Means and standard deviations of t_ν and of √InverseGamma are known.
func flatTruth(x, y []float64, k int) truth {
	n := len(y)
	design, outcome := mat.NewDense(n, k, x), mat.NewVecDense(n, y)
	var qr mat.QR
	qr.Factorize(design)
	var b, fitted mat.VecDense
	if err := qr.SolveVecTo(&b, false, outcome); err != nil && !conditioned(err) {
		panic(err)
	}
	fitted.MulVec(design, &b)
	fitted.SubVec(outcome, &fitted)
	squares, nu := mat.Dot(&fitted, &fitted), float64(n-k-1)
	var r, inverse, covariance mat.Dense
	qr.RTo(&r)
	if err := inverse.Inverse(r.Slice(0, k, 0, k)); err != nil && !conditioned(err) {
		panic(err)
	}
	covariance.Mul(&inverse, inverse.T())
	out := truth{}
	for j := range k {
		out[at("beta", j)] = moments{mean: b.AtVec(j), sd: math.Sqrt(covariance.At(j, j) * squares / (nu - 2))}
	}
	high, _ := math.Lgamma(nu / 2)
	low, _ := math.Lgamma((nu - 1) / 2)
	mean := math.Sqrt(squares/2) * math.Exp(low-high)
	out["sigma"] = moments{mean: mean, sd: math.Sqrt(squares/(nu-2) - mean*mean)}
	return out
}

// conditioned says that an error is no more than a warning of a large condition number.
func conditioned(err error) bool {
	_, ok := err.(mat.Condition)
	return ok
}

// studentLarge is a regression with heavy tails on data of 1e6 ± 1e5:
//
//	a, b flat, sigma > 0 flat, nu ~ Gamma(2, 0.1), y_i ~ t_nu(a + b x_i, sigma)
func studentLarge(m *maker) problem {
	const n = 200
	x := m.normals(n, 1)
	y := each(n, func(i int) float64 {
		heavy := m.NormFloat64() / math.Sqrt((math.Pow(m.NormFloat64(), 2)+math.Pow(m.NormFloat64(), 2)+
			math.Pow(m.NormFloat64(), 2)+math.Pow(m.NormFloat64(), 2))/4)
		return 1e6 + 8e4*x[i] + 4e4*heavy
	})
	data := numbers{"N": n, "x": x, "y": y}
	return problem{
		model: func(c *ppl.Ctx) {
			a, b := c.Sample("a", dist.Flat()), c.Sample("b", dist.Flat())
			sigma := c.Sample("sigma", dist.FlatPositive())
			nu := c.Sample("nu", dist.Gamma(2, 0.1))
			c.Plate("data", 0, func(c *ppl.Ctx) {
				c.Observe("y", dist.StudentT(nu, a.Add(b.Mul(c.Data("x"))), sigma), c.Data("y"))
			})
		},
		batch: data.batch(), data: data, stan: "student",
	}
}

// separation is a logistic regression that one row keeps from being separable:
//
//	a, b_j ~ N(0, 10), y_i ~ Bernoulli(logit⁻¹(a + x_i · b))
func separation(m *maker) problem {
	const n, k = 40, 2
	x, y := m.normals(n*k, 1), make([]float64, n)
	least := 0
	for i := range y {
		if x[i*k]+0.5*x[i*k+1] > 0 {
			y[i] = 1
		}
		if math.Abs(x[i*k]+0.5*x[i*k+1]) < math.Abs(x[least*k]+0.5*x[least*k+1]) {
			least = i
		}
	}
	y[least] = 1 - y[least]
	data := numbers{"N": n, "K": k, "x": matrix{x, k}, "y": y}
	return problem{
		model: func(c *ppl.Ctx) {
			a := c.Sample("a", dist.Normal(0, 10))
			b := c.Sample("b", dist.Normal(0, 10).Expand(k))
			c.Plate("data", 0, func(c *ppl.Ctx) {
				c.Observe("y", dist.BernoulliLogitGLM(c.Data("x"), b, a), c.Data("y"))
			})
		},
		batch: data.batch(), data: data, stan: "separation",
	}
}

// largeCounts is 60 counts of 1e5 with an error of 5 %:
//
//	mu ~ N(0, 10), phi ~ HalfCauchy(100), y_i ~ NegativeBinomial(exp mu, phi)
func largeCounts(m *maker) problem {
	const n = 60
	y := each(n, func(int) float64 { return math.Round(1e5 * math.Exp(0.05*m.NormFloat64())) })
	data := numbers{"N": n, "y": y}
	return problem{
		model: func(c *ppl.Ctx) {
			mu := c.Sample("mu", dist.Normal(0, 10))
			phi := c.Sample("phi", dist.HalfCauchy(100))
			c.Plate("data", 0, func(c *ppl.Ctx) { c.Observe("y", dist.NegativeBinomial(mu.Exp(), phi), c.Data("y")) })
		},
		batch: data.batch(), data: data, stan: "negbin",
	}
}

// orderedOutcome is an outcome of eight ordered categories on three columns:
//
//	b_j ~ N(0, 2), cut_1 < … < cut_7 ~ N(0, 5), y_i ~ OrderedLogistic(x_i · b, cut)
func orderedOutcome(m *maker) problem {
	const n, k, cuts = 300, 3, 7
	x := m.normals(n*k, 1)
	y := each(n, func(i int) float64 {
		u := m.Float64()
		latent := x[i*k] - 0.5*x[i*k+1] + 0.2*x[i*k+2] + math.Log(u/(1-u))
		return math.Max(0, math.Min(cuts, math.Floor(latent+3.5)))
	})
	data := numbers{"N": n, "K": k, "C": cuts, "x": matrix{x, k}, "y": y}
	return problem{
		model: func(c *ppl.Ctx) {
			b := c.Sample("b", dist.Normal(0, 2).Expand(k))
			cut := c.Sample("cut", dist.ImproperUniform(support.Ordered, nil, []int{cuts}))
			c.Factor("cut_prior", dist.Normal(0, 5).LogProb(cut).Sum())
			c.Plate("data", 0, func(c *ppl.Ctx) {
				c.Observe("y", dist.OrderedLogistic(c.Data("x").MatMul(b), cut), c.Data("y"))
			})
		},
		batch: data.batch(), data: data, stan: "ordered",
	}
}

// network is a network of one hidden layer and 501 weights, 8 to 50 to 1:
//
//	u, b ~ N(0, 1), w ~ N(0, 1/√50), a ~ N(0, 1), sigma ~ HalfNormal(1), y_i ~ N(a + tanh(x_i u + b) w, sigma)
//
// Its units may change places: what it says at five points is judged, and not the weights.
func network(m *maker) problem {
	const n, k, units, points = 200, 8, 50, 5
	x, at := m.normals(n*k, 1), m.normals(points*k, 1)
	y := each(n, func(i int) float64 {
		return math.Sin(x[i*k]) + 0.5*x[i*k+1]*x[i*k+2] + 0.3*m.NormFloat64()
	})
	data := numbers{"N": n, "K": k, "H": units, "P": points, "x": matrix{x, k}, "y": y, "at": matrix{at, k}}
	return problem{
		model: func(c *ppl.Ctx) {
			u := c.Sample("u", dist.Normal(0, 1).Expand(k, units))
			b := c.Sample("b", dist.Normal(0, 1).Expand(units))
			w := c.Sample("w", dist.Normal(0, 1/math.Sqrt(units)).Expand(units))
			a := c.Sample("a", dist.Normal(0, 1))
			sigma := c.Sample("sigma", dist.HalfNormal(1))
			c.Deterministic("f", c.Data("at").MatMul(u).Add(b).Tanh().MatMul(w).Add(a))
			c.Plate("data", n, func(c *ppl.Ctx) {
				mean := c.Data("x").MatMul(u).Add(b).Tanh().MatMul(w).Add(a)
				c.Observe("y", dist.Normal(mean, sigma), c.Data("y"))
			})
		},
		batch: data.batch(), data: data, watch: []string{"f", "sigma"}, stan: "network",
	}
}
