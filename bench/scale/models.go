package main

import (
	"math"
	"math/rand/v2"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/statespace"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/models/gp"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// model is a model of some sizes. Its data are made up: what an evaluation costs does not depend on them.
type model struct {
	name  string
	peer  string // its name in jax_scale.py, and of its program in stan
	sizes []int
	make  func(sizes []int) (ppl.Model, infer.Batch, error)
}

var models = []model{
	{"logistic 1000x20", "logistic", []int{1000, 20}, logistic},
	{"logistic 10000x20", "logistic", []int{10000, 20}, logistic},
	{"logistic 100000x20", "logistic", []int{100000, 20}, logistic},
	{"logistic 1000000x20", "logistic", []int{1000000, 20}, logistic},
	{"logistic 10000x200", "logistic", []int{10000, 200}, logistic},
	{"slopes 10000", "slopes", []int{10000, 100}, slopes},
	{"slopes 100000", "slopes", []int{100000, 1000}, slopes},
	{"slopes 1000000", "slopes", []int{1000000, 10000}, slopes},
	{"items 200x20", "items", []int{200, 20}, items},
	{"items 2000x50", "items", []int{2000, 50}, items},
	{"gp 50", "process", []int{50}, process},
	{"gp 200", "process", []int{200}, process},
	{"gp 500", "process", []int{500}, process},
	{"covariance 500x5", "covariance", []int{500, 5}, covariance},
	{"covariance 500x20", "covariance", []int{500, 20}, covariance},
	{"covariance 500x50", "covariance", []int{500, 50}, covariance},
	{"network 500", "network", []int{500}, network},
	{"network 5000", "network", []int{5000}, network},
	{"kalman 200", "kalman", []int{200}, kalman},
	{"kalman 1000", "kalman", []int{1000}, kalman},
	{"hmm 400", "hmm", []int{400, 4}, hmm},
}

// normals are numbers from N(0, 1).
func normals(seed uint64, shape ...int) torch.Tensor {
	n := 1
	for _, s := range shape {
		n *= s
	}
	rng := rand.New(rand.NewPCG(seed, 1))
	x := make([]float64, n)
	for i := range x {
		x[i] = rng.NormFloat64()
	}
	return torch.New(x, shape...)
}

// logistic is a logistic regression: w ~ N(0, I), y_i ~ Bernoulli(σ(x_i·w)).
func logistic(sizes []int) (ppl.Model, infer.Batch, error) {
	n, d := sizes[0], sizes[1]
	y := make([]float64, n)
	for i := range y {
		y[i] = float64(i % 2)
	}
	return func(c *ppl.Ctx) {
		w := c.Sample("w", dist.Normal(0, 1).Expand(d))
		c.Plate("rows", n, func(c *ppl.Ctx) {
			c.Observe("y", dist.BernoulliLogitGLM(c.Data("x"), w, 0), c.Data("y"))
		})
	}, infer.Batch{"x": normals(1, n, d), "y": torch.New(y)}, nil
}

// slopes is a regression whose intercept and slope vary between k groups: y_i ~ N(a_g[i] + b_g[i] x_i, sigma).
func slopes(sizes []int) (ppl.Model, infer.Batch, error) {
	n, k := sizes[0], sizes[1]
	g := make([]int, n)
	for i := range g {
		g[i] = i % k
	}
	return func(c *ppl.Ctx) {
		mu := c.Sample("mu", dist.Normal(0, 5).Expand(2))
		tau := c.Sample("tau", dist.HalfNormal(1).Expand(2))
		a := c.Sample("a", dist.Normal(mu.At(0), tau.At(0)).Expand(k)).Take(c.Data("g"))
		b := c.Sample("b", dist.Normal(mu.At(1), tau.At(1)).Expand(k)).Take(c.Data("g"))
		sigma := c.Sample("sigma", dist.HalfNormal(1))
		c.Plate("rows", n, func(c *ppl.Ctx) {
			c.Observe("y", dist.Normal(b.Mul(c.Data("x")).Add(a), sigma), c.Data("y"))
		})
	}, infer.Batch{"x": normals(8, n), "y": normals(9, n), "g": torch.New(g)}, nil
}

// items is the answers of n persons to k items, with two parameters each: y_ij ~ Bernoulli(σ(a_j (theta_i − b_j))).
func items(sizes []int) (ppl.Model, infer.Batch, error) {
	n, k := sizes[0], sizes[1]
	y := make([]float64, n*k)
	for i := range y {
		y[i] = float64(i * i % 3 % 2)
	}
	return func(c *ppl.Ctx) {
		theta := c.Sample("theta", dist.Normal(0, 1).Expand(n))
		a := c.Sample("a", dist.LogNormal(0, 0.5).Expand(k))
		b := c.Sample("b", dist.Normal(0, 1.5).Expand(k))
		c.Observe("y", dist.BernoulliLogits(theta.Unsqueeze(-1).Sub(b).Mul(a)), c.Data("y"))
	}, infer.Batch{"y": torch.New(y, n, k)}, nil
}

// process is a Gaussian process on a line, with its exact marginal likelihood:
// y ~ N(0, s² exp(−(x_i − x_j)²/2l²) + σ² I).
func process(sizes []int) (ppl.Model, infer.Batch, error) {
	n := sizes[0]
	x := make([]float64, n)
	for i := range x {
		x[i] = 10 * float64(i) / float64(n)
	}
	return func(c *ppl.Ctx) {
		k := gp.SquaredExponential{Scale: c.Sample("scale", dist.HalfNormal(1)),
			Length: c.Sample("length", dist.LogNormal(0, 1))}
		p := gp.Process{Kernel: k, X: c.Data("x")}
		c.Observe("y", p.Marginal(c.Sample("noise", dist.HalfNormal(1))), c.Data("y"))
	}, infer.Batch{"x": torch.New(x), "y": normals(2, n)}, nil
}

// covariance is a normal distribution of k columns with a Cholesky factor of correlations:
// y_i ~ N(mu, diag(s) L Lᵀ diag(s)).
func covariance(sizes []int) (ppl.Model, infer.Batch, error) {
	n, k := sizes[0], sizes[1]
	return func(c *ppl.Ctx) {
		mu := c.Sample("mu", dist.Normal(0, 5).Expand(k))
		s := c.Sample("s", dist.HalfNormal(2).Expand(k))
		l := c.Sample("L", dist.LKJCholesky(k, 2))
		c.Plate("rows", n, func(c *ppl.Ctx) {
			c.Observe("y", dist.MultivariateNormalCholesky(mu, s.Unsqueeze(-1).Mul(l)), c.Data("y"))
		})
	}, infer.Batch{"y": normals(3, n, k)}, nil
}

// network is a regression by two layers of 50 tanh units.
func network(sizes []int) (ppl.Model, infer.Batch, error) {
	n := sizes[0]
	return func(c *ppl.Ctx) {
		layer := func(name string, x torch.Tensor, in, out int) torch.Tensor {
			w := c.Sample("w"+name, dist.Normal(0, 1/math.Sqrt(float64(in))).Expand(in, out))
			return x.MatMul(w).Add(c.Sample("b"+name, dist.Normal(0, 1).Expand(out)))
		}
		h := layer("1", c.Data("x"), 8, 50).Tanh()
		f := layer("3", layer("2", h, 50, 50).Tanh(), 50, 1).Squeeze(-1)
		sigma := c.Sample("sigma", dist.HalfNormal(1))
		c.Observe("y", dist.Normal(f, sigma), c.Data("y"))
	}, infer.Batch{"x": normals(4, n, 8), "y": normals(5, n)}, nil
}

// kalman is a trend with seasons: 5 states.
func kalman(sizes []int) (ppl.Model, infer.Batch, error) {
	n := sizes[0]
	return func(c *ppl.Ctx) {
		noise, scale := c.Sample("noise", dist.HalfNormal(1)), c.Sample("scale", dist.HalfNormal(1))
		c.Observe("y", statespace.New(n, noise, statespace.LocalTrend{LevelScale: scale, SlopeScale: 0.1},
			statespace.Seasonal{Period: 4, Scale: scale}), c.Data("y"))
	}, infer.Batch{"y": normals(6, n)}, nil
}

// hmm is a chain of k hidden states, by the forward algorithm in logarithms.
func hmm(sizes []int) (ppl.Model, infer.Batch, error) {
	n, k := sizes[0], sizes[1]
	return func(c *ppl.Ctx) {
		log := c.Sample("transition", dist.Dirichlet(torch.Zeros(k, k).Add(1))).Log()
		mu := c.Sample("mu", dist.Normal(0, 3).Expand(k))
		seen := dist.Normal(mu, 1).LogProb(c.Data("y").Unsqueeze(-1))
		last, _ := c.Scan(n-1, []torch.Tensor{seen.At(0).Sub(math.Log(float64(k)))},
			func(c *ppl.Ctx, t int, carry []torch.Tensor) ([]torch.Tensor, torch.Tensor) {
				return []torch.Tensor{carry[0].Unsqueeze(-1).Add(log).LogSumExp(0).Add(seen.At(t + 1))}, torch.Of(0)
			})
		c.Factor("y", last[0].LogSumExp(0))
	}, infer.Batch{"y": normals(7, n)}, nil
}
