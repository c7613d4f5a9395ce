package posteriors

import (
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// arK is the autoregression of order K (posteriordb, arK):
//
//	alpha ~ N(0, 10), beta_k ~ N(0, 10), sigma ~ HalfCauchy(2.5)
//	y_t ~ N(alpha + Σ_k beta_k y_{t−k}, sigma), t > K
func arK(d *Data) Posterior {
	k := d.count("K", 1)
	t := d.count("T", k+1)
	y := d.vector("y", t)
	n := t - k
	lags := make([]float64, 0, n*k)
	for i := k; i < t; i++ {
		for j := 1; j <= k; j++ {
			lags = append(lags, y[i-j])
		}
	}
	return Posterior{
		Model: func(c *ppl.Ctx) {
			alpha := c.Sample("alpha", dist.Normal(0, 10))
			beta := c.Sample("beta", dist.Normal(0, 10).Expand(k))
			sigma := c.Sample("sigma", dist.HalfCauchy(2.5))
			c.Plate("time", n, func(c *ppl.Ctx) {
				c.Observe("y", dist.NormalGLM(c.Data("lags"), beta, alpha, sigma), c.Data("y"))
			})
		},
		Batch: infer.Batch{"y": d.tensor(y[k:], n), "lags": d.tensor(lags, n, k)},
		// The coefficients depend on each other: a diagonal metric takes ten times the gradients.
		Method: hmc.NUTS{Metric: hmc.LowRank},
	}
}

// garch11 is a series whose variance depends on the last number and the last variance (posteriordb, garch11;
// Bollerslev 1986):
//
//	mu flat, alpha0 > 0 flat, alpha1 flat in (0, 1), beta1 flat in (0, 1 − alpha1)
//	v_1 = sigma1², v_t = alpha0 + alpha1 (y_{t−1} − mu)² + beta1 v_{t−1}
//	y_t ~ N(mu, √v_t)
//
// The variances are the recurrence v_t = a_t + beta1 v_{t−1} with a_1 = sigma1².
func garch11(d *Data) Posterior {
	n := d.count("T", 2)
	y, sigma1 := d.vector("y", n), d.number("sigma1")
	r := newRecurrence(d, n)
	before, after, start := make([]float64, r.size), make([]float64, r.size), make([]float64, r.size)
	start[0] = sigma1 * sigma1
	for t := 1; t < n; t++ {
		before[t], after[t] = y[t-1], 1
	}
	previous, counts, first := d.tensor(before, r.size), d.tensor(after, r.size), d.tensor(start, r.size)
	return Posterior{
		Model: func(c *ppl.Ctx) {
			mu := c.Sample("mu", flat(support.Real, 0))
			alpha0 := c.Sample("alpha0", flat(support.Positive, 0))
			alpha1 := c.Sample("alpha1", flat(support.UnitInterval, 0))
			beta1 := c.Sample("beta1", flat(support.Interval(0, torch.Of(1).Sub(alpha1)), 0))
			news := previous.Sub(mu).Square()
			a := torch.Of(first.T().MustAddcmul(counts.T(), news.Mul(alpha1).Add(alpha0).T(), false))
			sigma := r.solve(a, beta1).Sqrt()
			c.Plate("time", n, func(c *ppl.Ctx) {
				c.Observe("y", dist.Normal(mu, sigma), c.Data("y"))
			})
		},
		Batch: infer.Batch{"y": d.tensor(y, n)},
		// alpha0 and beta1 are correlated: a diagonal metric takes 1.7 times the gradients.
		Method: hmc.NUTS{Metric: hmc.LowRank},
	}
}

// recurrence solves v_t = a_t + b v_{t−1}, v_0 = 0, for all t at once. The solution is v_t = Σ_s b^{t−s} a_s, a
// product with a triangular matrix of powers. With time cut into about √n rows of as many columns, t = m·row + column,
// it is two small such products, within the rows and over their ends,
//
//	w_{r,c} = Σ_{s≤c} b^{c−s} a_{r,s},  e_r = Σ_{q<r} b^{m(r−1−q)} w_{q,m−1},  v_{r,c} = w_{r,c} + b^{c+1} e_r
//
// in a dozen operations whatever n is.
type recurrence struct {
	n, size int // size is rows·m, n rounded up
	rows, m int // of the grid
	// exponents of b: in the product within rows, [m, m], in that over rows, [rows, rows], and of the ends, [m]
	exponents torch.Tensor
	mask      torch.Tensor // 1 where the power counts, 0 above the diagonal
}

func newRecurrence(d *Data, n int) recurrence {
	m := 1
	for m*m < n {
		m++
	}
	rows := (n + m - 1) / m
	var exponents, mask []float64
	put := func(power int) {
		if power < 0 {
			exponents, mask = append(exponents, 0), append(mask, 0)
			return
		}
		exponents, mask = append(exponents, float64(power)), append(mask, 1)
	}
	for s := range m { // transposed, so that rows of a are multiplied from the right
		for c := range m {
			put(c - s)
		}
	}
	for r := range rows {
		for q := range rows {
			put(m * (r - 1 - q))
		}
	}
	for c := range m {
		put(c + 1)
	}
	k := len(mask)
	return recurrence{n, rows * m, rows, m, d.tensor(exponents, k), d.tensor(mask, k)}
}

// solve is v, [n], from a, [size], whose numbers after the first n do not matter.
func (r recurrence) solve(a, b torch.Tensor) torch.Tensor {
	powers := r.exponents.Mul(b.Log()).Exp().Mul(r.mask)
	square := func(from, side int) torch.Tensor {
		return powers.Slice(0, from, from+side*side).Reshape(side, side)
	}
	inside, over := square(0, r.m), square(r.m*r.m, r.rows)
	tail := powers.Slice(0, r.m*r.m+r.rows*r.rows, r.m*r.m+r.rows*r.rows+r.m)
	w := a.Reshape(r.rows, r.m).MatMul(inside)
	ends := over.MatMul(w.T().MustSelect(1, int64(r.m-1), false))
	v := torch.Of(w.T().MustAddcmul(ends.Unsqueeze(1).T(), tail.T(), false)).Reshape(r.size)
	return v.Slice(0, 0, r.n)
}

// hmmExample is a hidden Markov chain of two states that are seen through normal noise (posteriordb, hmm_example):
//
//	theta1, theta2 flat on the simplex: the rows of the transition matrix
//	0 < mu_1 < mu_2, mu_1 ~ N(3, 1), mu_2 ~ N(10, 1), y_t ~ N(mu_{state_t}, 1)
//
// As in the Stan program the first state has no weight: what is summed over all states starts with the density of y_1.
func hmmExample(d *Data) Posterior {
	n := d.count("N", 2)
	if k := d.count("K", 1); k != 2 {
		d.fail("K is %d: the model has 2 states", k)
	}
	centres := d.tensor([]float64{3, 10}, 2)
	return Posterior{
		Model: func(c *ppl.Ctx) {
			theta1 := c.Sample("theta1", dist.ImproperUniform(support.Simplex, nil, []int{2}))
			theta2 := c.Sample("theta2", dist.ImproperUniform(support.Simplex, nil, []int{2}))
			mu := c.Sample("mu", dist.ImproperUniform(support.PositiveOrdered, nil, []int{2}))
			c.Factor("mu_prior", sum(dist.Normal(centres, 1).LogProb(mu)))
			states := dist.Normal(mu, 1).LogProb(c.Data("y").Unsqueeze(-1))
			c.Factor("y", forward(c, torch.Stack(0, theta1, theta2), states, n))
		},
		Batch: infer.Batch{"y": d.vectorTensor("y", n)},
		// The parameters are correlated: a diagonal metric takes six times the gradients.
		Method: hmc.NUTS{Metric: hmc.LowRank},
	}
}

// forward is the forward algorithm with scaling (Rabiner 1989, Proceedings of the IEEE 77, 257–286), log Σ p(y,
// states), from the transition matrix, [S, S], and the logarithms of the densities in each state, [T, S]:
//
//	a_t(s) = Σ_r p_{t−1}(r) transition(r, s) exp(l_t(s) − m_t),  c_t = Σ_s a_t(s),  p_t = a_t / c_t
//
// and the logarithm is Σ_t (m_t + log c_t), where m_t is the larger of the l_t(s).
func forward(c *ppl.Ctx, transition, logDensity torch.Tensor, times int) torch.Tensor {
	most := logDensity.Slice(1, 0, 1).Max(logDensity.Slice(1, 1, 2)).Squeeze(-1)
	density := logDensity.Sub(most.Unsqueeze(-1)).Exp()
	first := density.At(0).Sum()
	_, sums := c.Scan(times-1, []torch.Tensor{density.At(0).Div(first)}, func(c *ppl.Ctx, t int, carry []torch.Tensor) (
		next []torch.Tensor, total torch.Tensor) {
		// A product with a vector resizes tensors in libtorch, and says so at each step of a replay.
		joint := carry[0].Unsqueeze(-1).Mul(transition).Sum(0).Mul(density.At(t + 1))
		total = joint.Sum()
		return []torch.Tensor{joint.Div(total)}, total
	})
	return sums.Log().Sum().Add(first.Log()).Add(most.Sum())
}

// ARMA is the model ARMA(1, 1) of n numbers, with the errors of its predictions as the carry:
//
//	mu ~ N(0, 10), phi ~ N(0, 2), theta ~ N(0, 2), sigma ~ HalfCauchy(2.5)
//	e_t = y_t − (mu + phi y_{t−1} + theta e_{t−1}), e_1 = y_1 − (mu + phi mu), e_t ~ N(0, sigma)
func ARMA(n int) ppl.Model {
	return func(c *ppl.Ctx) {
		mu := c.Sample("mu", dist.Normal(0, 10))
		phi := c.Sample("phi", dist.Normal(0, 2))
		theta := c.Sample("theta", dist.Normal(0, 2))
		sigma := c.Sample("sigma", dist.HalfCauchy(2.5))
		y := c.Data("y")
		first := y.At(0).Sub(mu.Add(phi.Mul(mu)))
		_, rest := c.Scan(n-1, []torch.Tensor{first}, func(c *ppl.Ctx, t int, carry []torch.Tensor) ([]torch.Tensor,
			torch.Tensor) {
			e := y.At(t + 1).Sub(mu.Add(phi.Mul(y.At(t))).Add(theta.Mul(carry[0])))
			return []torch.Tensor{e}, e
		})
		c.Factor("first", dist.Normal(0, sigma).LogProb(first))
		c.Factor("rest", dist.Normal(0, sigma).LogProb(rest).Sum())
	}
}
