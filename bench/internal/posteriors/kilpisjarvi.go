package posteriors

import (
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
	"gonum.org/v1/gonum/stat"
)

// kilpisjarvi is the trend of summer temperatures (posteriordb, kilpisjarvi):
//
//	alpha ~ N(pmualpha, psalpha), beta ~ N(pmubeta, psbeta), sigma > 0 flat
//	y ~ N(alpha + beta x, sigma)
//
// Since all x are near 4000, alpha and beta are correlated by −0.99999. The chains therefore move in the height of the
// line at the mean of x, centre = alpha + beta x̄, in the place of alpha. Given beta that is a shift, which leaves the
// density as it is.
func kilpisjarvi(d *Data) Posterior {
	n := d.count("N", 1)
	meanAlpha, sdAlpha := d.number("pmualpha"), d.number("psalpha")
	meanBeta, sdBeta := d.number("pmubeta"), d.number("psbeta")
	x := d.vector("x", n)
	mean := stat.Mean(x, nil)
	centred := each(n, func(i int) float64 { return x[i] - mean })
	return Posterior{
		Model: func(c *ppl.Ctx) {
			centre := c.Sample("centre", flat(support.Real, 0))
			beta := c.Sample("beta", dist.Normal(meanBeta, sdBeta))
			sigma := c.Sample("sigma", flat(support.Positive, 0))
			alpha := c.Deterministic("alpha", beta.Mul(-mean).Add(centre))
			c.Factor("alpha_prior", dist.Normal(meanAlpha, sdAlpha).LogProb(alpha))
			c.Plate("years", int64(n), func(c *ppl.Ctx) {
				c.Observe("y", dist.Normal(c.Data("x").Mul(beta).Add(centre), sigma), c.Data("y"))
			})
		},
		Batch: infer.Batch{"x": d.tensor(centred, int64(n)), "y": d.vectorTensor("y", n)},
	}
}
