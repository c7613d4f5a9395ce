package posteriors

import (
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/ppl"
)

// eightSchoolsNoncentered is Rubin's eight schools (posteriordb, eight_schools_noncentered):
//
//	mu ~ N(0, 5), tau ~ HalfCauchy(5), theta_trans_j ~ N(0, 1)
//	theta = mu + tau theta_trans, y_j ~ N(theta_j, sigma_j)
func eightSchoolsNoncentered(d *Data) Posterior {
	n := d.count("J", 1)
	d.positive("sigma", n)
	return Posterior{
		Model: func(c *ppl.Ctx) {
			mu := c.Sample("mu", dist.Normal(0, 5))
			tau := c.Sample("tau", dist.HalfCauchy(5))
			c.Plate("schools", int64(n), func(c *ppl.Ctx) {
				z := c.Sample("theta_trans", dist.Normal(0, 1))
				theta := c.Deterministic("theta", z.Mul(tau).Add(mu))
				c.Observe("y", dist.Normal(theta, c.Data("sigma")), c.Data("y"))
			})
		},
		Batch: infer.Batch{"y": d.vectorTensor("y", n), "sigma": d.vectorTensor("sigma", n)},
		// The reference's own run had 0.95 and a warm-up ten times as long. After 1000 transitions one run of four
		// seeds had a single divergence with 0.95.
		Method: hmc.NUTS{TargetAccept: 0.99},
	}
}
