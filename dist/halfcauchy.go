package dist

import (
	"math"

	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/sugarme/gotch/ts"
)

// HalfCauchyDist is the distribution of the absolute value of a Cauchy number; see [HalfCauchy].
type HalfCauchyDist struct {
	base
	scale val
}

// HalfCauchy is the distribution of |z|, where z is Cauchy with median 0 and half width scale > 0; for x ≥ 0
//
//	log p(x) = −log(1 + (x/scale)²) − log scale + log(2/π)
//
// Its mean is infinite; it has no variance.
func HalfCauchy(scale any) HalfCauchyDist {
	s := param("HalfCauchy", "scale", scale)
	d := HalfCauchyDist{base: newBase("HalfCauchy", s), scale: s}
	d.checkNumber("scale", s, positive)
	return d
}

// Support is x ≥ 0.
func (d HalfCauchyDist) Support() support.Support { return support.Nonnegative }

// LogProb is the log density.
func (d HalfCauchyDist) LogProb(value *ts.Tensor) *ts.Tensor {
	return d.inside(value, value.MustLt(ts.FloatScalar(0), false), num(1), func(x *ts.Tensor) val {
		return log1pSquare(ten(x).div(d.scale).t).neg().sub(d.scale.log().sub(num(math.Log(2 / math.Pi))))
	})
}

// Sample draws quantiles of uniform numbers, reparameterised.
func (d HalfCauchyDist) Sample(src *Source, sample ...int64) *ts.Tensor {
	return d.ICDF(d.uniform(src, sample, d.scale))
}

// Mean is infinite.
func (d HalfCauchyDist) Mean() *ts.Tensor { return d.constantLike(math.Inf(1), d.scale) }

// Variance is NaN.
func (d HalfCauchyDist) Variance() *ts.Tensor { return d.constantLike(math.NaN(), d.scale) }

// CDF is 2/π arctan(x/scale).
func (d HalfCauchyDist) CDF(value *ts.Tensor) *ts.Tensor {
	return d.positivePart(value, 0, func(x *ts.Tensor) val { return ten(ten(x).div(d.scale).t.MustAtan(false)).mul(num(2 / math.Pi)) })
}

// ICDF is scale·tan(πp/2).
func (d HalfCauchyDist) ICDF(p *ts.Tensor) *ts.Tensor {
	return d.full(ten(ten(p).mul(num(math.Pi / 2)).t.MustTan(false)).mul(d.scale).t)
}

// Expand broadcasts the batch shape.
func (d HalfCauchyDist) Expand(batch ...int64) Distribution {
	d.base = d.expand(batch)
	return d
}

// Validate checks scale.
func (d HalfCauchyDist) Validate() error {
	return d.validate("scale", d.scale, positive)
}

// Params are the parameters by name.
func (d HalfCauchyDist) Params() map[string]any {
	return map[string]any{"scale": d.scale.any()}
}
