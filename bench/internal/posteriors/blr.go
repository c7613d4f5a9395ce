package posteriors

import (
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/ppl"
)

// blr is a linear regression (posteriordb, blr):
//
//	beta ~ N(0, 10), sigma ~ HalfN(10), y ~ N(X beta, sigma)
func blr(d *Data) Posterior {
	n, k := d.count("N", 1), d.count("D", 1)
	return Posterior{
		Model: func(c *ppl.Ctx) {
			beta := c.Sample("beta", dist.Normal(0, 10).Expand(int64(k)))
			sigma := c.Sample("sigma", dist.HalfNormal(10))
			c.Plate("data", int64(n), func(c *ppl.Ctx) {
				c.Observe("y", dist.NormalGLM(c.Data("x"), beta, 0, sigma), c.Data("y"))
			})
		},
		Batch: infer.Batch{"x": d.tensor(d.matrix("X", n, k), int64(n), int64(k)), "y": d.vectorTensor("y", n)},
		// The columns of X are correlated: a diagonal metric takes seven times the gradients.
		Method: hmc.NUTS{Metric: hmc.LowRank},
	}
}
