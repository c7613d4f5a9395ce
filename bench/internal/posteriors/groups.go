package posteriors

import (
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
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
			c.Plate("schools", n, func(c *ppl.Ctx) {
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

// lowDimGaussMix is a mixture of two normal distributions (posteriordb, low_dim_gauss_mix):
//
//	mu_1 < mu_2, mu ~ N(0, 2), sigma ~ HalfN(2), theta ~ Beta(5, 5)
//	y ~ theta N(mu_1, sigma_1) + (1 − theta) N(mu_2, sigma_2)
func lowDimGaussMix(d *Data) Posterior {
	n := d.count("N", 1)
	return Posterior{
		Model: func(c *ppl.Ctx) {
			mu := c.Sample("mu", dist.ImproperUniform(support.Ordered, nil, []int{2}))
			c.Factor("mu_prior", sum(dist.Normal(0, 2).LogProb(mu)))
			sigma := c.Sample("sigma", dist.HalfNormal(2).Expand(2))
			theta := c.Sample("theta", dist.Beta(5, 5))
			weights := torch.Stack(-1, theta, torch.Of(1).Sub(theta)).Log()
			c.Plate("data", n, func(c *ppl.Ctx) {
				// What dist.MixtureSameFamily says, with the two components one after the other in memory and without
				// its care for densities of 0: a third of the time.
				parts := dist.Normal(mu.Unsqueeze(-1), sigma.Unsqueeze(-1)).LogProb(c.Data("y"))
				c.Factor("y", parts.Add(weights.Unsqueeze(-1)).LogSumExp(0))
			})
		},
		Batch: infer.Batch{"y": d.vectorTensor("y", n)},
		// Locations, scales and the weight are correlated: a diagonal metric takes 1.7 times the gradients.
		Method: hmc.NUTS{Metric: hmc.LowRank},
	}
}
