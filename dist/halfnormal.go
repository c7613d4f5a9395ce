package dist

import (
	"math"

	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/sugarme/gotch/ts"
)

// HalfNormalDist is the distribution of the absolute value of a normal number; see [HalfNormal].
type HalfNormalDist struct {
	base
	scale val
}

// HalfNormal is the distribution of |z|, where z is normal with mean 0 and standard deviation scale > 0; for x ≥ 0
//
//	log p(x) = −(x/scale)²/2 − log scale + log √(2/π)
func HalfNormal(scale any) HalfNormalDist {
	s := param("HalfNormal", "scale", scale)
	d := HalfNormalDist{base: newBase("HalfNormal", s), scale: s}
	d.checkNumber("scale", s, positive)
	return d
}

// Support is x ≥ 0.
func (d HalfNormalDist) Support() support.Support { return support.Nonnegative }

// LogProb is the log density.
func (d HalfNormalDist) LogProb(value *ts.Tensor) *ts.Tensor {
	return d.inside(value, value.MustLt(ts.FloatScalar(0), false), num(1), func(x *ts.Tensor) val {
		return ten(x).div(d.scale).square().mul(num(-0.5)).sub(d.scale.log().sub(num(0.5 * math.Log(2/math.Pi))))
	})
}

// Sample draws scale·|z|, reparameterised.
func (d HalfNormalDist) Sample(src *Source, sample ...int64) *ts.Tensor {
	return ten(d.normal(src, sample, d.scale)).abs().mul(d.scale).t
}

// Mean is scale √(2/π).
func (d HalfNormalDist) Mean() *ts.Tensor { return d.spread(d.scale.mul(num(math.Sqrt(2 / math.Pi)))) }

// Variance is scale² (1 − 2/π).
func (d HalfNormalDist) Variance() *ts.Tensor {
	return d.spread(d.scale.square().mul(num(1 - 2/math.Pi)))
}

// CDF is erf(x/(scale √2)).
func (d HalfNormalDist) CDF(value *ts.Tensor) *ts.Tensor {
	return d.positivePart(value, 0, func(x *ts.Tensor) val { return ten(ten(x).div(d.scale).mul(num(math.Sqrt2 / 2)).t.MustErf(false)) })
}

// ICDF is scale·Φ⁻¹((1 + p)/2).
func (d HalfNormalDist) ICDF(p *ts.Tensor) *ts.Tensor {
	return d.full(ten(p.MustErfinv(false)).mul(num(math.Sqrt2)).mul(d.scale).t)
}

// Expand broadcasts the batch shape.
func (d HalfNormalDist) Expand(batch ...int64) Distribution {
	d.base = d.expand(batch)
	return d
}

// Validate checks scale.
func (d HalfNormalDist) Validate() error {
	return d.validate("scale", d.scale, positive)
}

// Params are the parameters by name.
func (d HalfNormalDist) Params() map[string]any {
	return map[string]any{"scale": d.scale.any()}
}
