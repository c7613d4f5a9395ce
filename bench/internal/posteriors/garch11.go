package posteriors

import (
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

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
			news := torch.Of(previous).Sub(mu).Square()
			a := torch.Of(first.MustAddcmul(counts, news.Mul(alpha1).Add(alpha0).T(), false))
			sigma := r.solve(a, beta1).Sqrt()
			c.Plate("time", int64(n), func(c *ppl.Ctx) {
				c.Observe("y", dist.Normal(mu, sigma), c.Data("y"))
			})
		},
		Batch: infer.Batch{"y": d.tensor(y, int64(n))},
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
	n, size   int64      // size is rows·m, n rounded up
	rows, m   int64      // of the grid
	exponents *ts.Tensor // of b: in the product within rows, [m, m], in that over rows, [rows, rows], and of the ends, [m]
	mask      *ts.Tensor // 1 where the power counts, 0 above the diagonal
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
	k := int64(len(mask))
	return recurrence{int64(n), int64(rows * m), int64(rows), int64(m), d.tensor(exponents, k), d.tensor(mask, k)}
}

// solve is v, [n], from a, [size], whose numbers after the first n do not matter.
func (r recurrence) solve(a, b torch.Tensor) torch.Tensor {
	powers := torch.Of(r.exponents).Mul(b.Log()).Exp().Mul(torch.Of(r.mask))
	square := func(from, side int64) torch.Tensor {
		return powers.Slice(0, int(from), int(from+side*side)).Reshape(side, side)
	}
	inside, over := square(0, r.m), square(r.m*r.m, r.rows)
	tail := powers.Slice(0, int(r.m*r.m+r.rows*r.rows), int(r.m*r.m+r.rows*r.rows+r.m))
	w := a.Reshape(r.rows, r.m).MatMul(inside)
	ends := over.MatMul(w.T().MustSelect(1, r.m-1, false))
	v := torch.Of(w.T().MustAddcmul(ends.Unsqueeze(1).T(), tail.T(), false)).Reshape(r.size)
	return v.Slice(0, 0, int(r.n))
}
