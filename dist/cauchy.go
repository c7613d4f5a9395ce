package dist

import (
	"math"

	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/sugarme/gotch/ts"
)

// CauchyDist is the Cauchy distribution; see [Cauchy].
type CauchyDist struct {
	base
	loc, scale val
}

// Cauchy is the Cauchy distribution with median loc and half width scale > 0:
//
//	log p(x) = −log(1 + ((x − loc)/scale)²) − log scale − log π
//
// It has neither mean nor variance.
func Cauchy(loc, scale any) CauchyDist {
	l, s := param("Cauchy", "loc", loc), param("Cauchy", "scale", scale)
	d := CauchyDist{base: newBase("Cauchy", l, s), loc: l, scale: s}
	d.checkNumber("loc", l, finite)
	d.checkNumber("scale", s, positive)
	return d
}

// Support is the real line.
func (d CauchyDist) Support() support.Support { return support.Real }

// LogProb is the log density.
func (d CauchyDist) LogProb(value *ts.Tensor) *ts.Tensor {
	z := floated(value).sub(d.loc).div(d.scale)
	return d.full(log1pSquare(z.t).neg().sub(d.scale.log().add(num(math.Log(math.Pi)))).t)
}

// Sample draws quantiles of uniform numbers, reparameterised.
func (d CauchyDist) Sample(src *Source, sample ...int64) *ts.Tensor {
	return d.ICDF(d.uniform(src, sample, d.loc, d.scale))
}

// Mean is NaN.
func (d CauchyDist) Mean() *ts.Tensor { return d.constantLike(math.NaN(), d.loc, d.scale) }

// Variance is NaN.
func (d CauchyDist) Variance() *ts.Tensor { return d.constantLike(math.NaN(), d.loc, d.scale) }

// CDF is the angle of the point (−z, 1) over π, with z = (x − loc)/scale: it is exact in the lower tail.
func (d CauchyDist) CDF(value *ts.Tensor) *ts.Tensor {
	z := floated(value).sub(d.loc).div(d.scale)
	return d.full(ten(z.t.MustOnesLike(false).MustAtan2(z.neg().t, false)).mul(num(1 / math.Pi)).t)
}

// ICDF is loc − scale·cot(πp).
func (d CauchyDist) ICDF(p *ts.Tensor) *ts.Tensor {
	return d.full(ten(ten(p).mul(num(math.Pi)).t.MustTan(false)).recip().neg().mul(d.scale).add(d.loc).t)
}

// Expand broadcasts the batch shape.
func (d CauchyDist) Expand(batch ...int64) Distribution {
	d.base = d.expand(batch)
	return d
}

// Validate checks loc and scale.
func (d CauchyDist) Validate() error {
	return first(d.validate("loc", d.loc, finite), d.validate("scale", d.scale, positive))
}

// Params are the parameters by name.
func (d CauchyDist) Params() map[string]any {
	return map[string]any{"loc": d.loc.any(), "scale": d.scale.any()}
}
