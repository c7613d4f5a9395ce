package posteriors

import (
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// garch11 is a series whose variance depends on the last number and the last variance (posteriordb, garch11;
// Bollerslev 1986):
//
//	mu flat, alpha0 > 0 flat, alpha1 flat in (0, 1), beta1 flat in (0, 1 − alpha1)
//	v_1 = sigma1², v_t = alpha0 + alpha1 (y_{t−1} − mu)² + beta1 v_{t−1}
//	y_t ~ N(mu, √v_t)
//
// The variances are a Scan.
func garch11(d *Data) Posterior {
	n := d.count("T", 2)
	y, sigma1 := d.vector("y", n), d.number("sigma1")
	before := d.tensor(y[:n-1], int64(n-1))
	return Posterior{
		Model: func(c *ppl.Ctx) {
			mu := c.Sample("mu", flat(support.Real, 0))
			alpha0 := c.Sample("alpha0", flat(support.Positive, 0))
			alpha1 := c.Sample("alpha1", flat(support.UnitInterval, 0))
			beta1 := c.Sample("beta1", flat(support.Interval(0, torch.Of(1).Sub(alpha1)), 0))
			news := torch.Of(before).Sub(mu).Square().Mul(alpha1).Add(alpha0)
			first := torch.Of(sigma1 * sigma1)
			_, rest := c.Scan(n-1, []torch.Tensor{first}, func(c *ppl.Ctx, t int, carry []torch.Tensor) (
				next []torch.Tensor, v torch.Tensor) {
				v = news.At(t).Add(beta1.Mul(carry[0]))
				return []torch.Tensor{v}, v
			})
			sigma := torch.Cat(0, first.Unsqueeze(0), rest).Sqrt()
			c.Plate("time", int64(n), func(c *ppl.Ctx) {
				c.Observe("y", dist.Normal(mu, sigma), c.Data("y"))
			})
		},
		Batch: infer.Batch{"y": d.tensor(y, int64(n))},
	}
}
