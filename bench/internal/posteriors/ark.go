package posteriors

import (
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/ppl"
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
			beta := c.Sample("beta", dist.Normal(0, 10).Expand(int64(k)))
			sigma := c.Sample("sigma", dist.HalfCauchy(2.5))
			c.Plate("time", int64(n), func(c *ppl.Ctx) {
				c.Observe("y", dist.NormalGLM(c.Data("lags"), beta, alpha, sigma), c.Data("y"))
			})
		},
		Batch: infer.Batch{"y": d.tensor(y[k:], int64(n)), "lags": d.tensor(lags, int64(n), int64(k))},
		// The coefficients depend on each other: a diagonal metric takes ten times the gradients.
		Method: hmc.NUTS{Metric: hmc.LowRank},
	}
}
