package dist

import (
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/sugarme/gotch/ts"
)

// LogNormalDist is the distribution of a number whose logarithm is normal; see [LogNormal].
type LogNormalDist struct {
	base
	loc, scale val
}

// LogNormal is the distribution of exp(z), where z is normal with mean loc and standard deviation scale > 0; for x > 0
//
//	log p(x) = −((log x − loc)/scale)²/2 − log x − log scale − log √(2π)
func LogNormal(loc, scale any) LogNormalDist {
	l, s := param("LogNormal", "loc", loc), param("LogNormal", "scale", scale)
	d := LogNormalDist{base: newBase("LogNormal", l, s), loc: l, scale: s}
	d.checkNumber("loc", l, finite)
	d.checkNumber("scale", s, positive)
	return d
}

// Support is x > 0.
func (d LogNormalDist) Support() support.Support { return support.Positive }

// LogProb is the log density.
func (d LogNormalDist) LogProb(value *ts.Tensor) *ts.Tensor {
	return d.inside(value, value.MustLe(ts.FloatScalar(0), false), num(1), func(x *ts.Tensor) val {
		l := ten(x).log()
		z := l.sub(d.loc).div(d.scale)
		return z.square().mul(num(-0.5)).sub(l).sub(d.scale.log().add(num(halfLog2Pi)))
	})
}

// Sample draws exp(loc + scale·z), reparameterised.
func (d LogNormalDist) Sample(src *Source, sample ...int64) *ts.Tensor {
	return ten(d.normal(src, sample, d.loc, d.scale)).mul(d.scale).add(d.loc).exp().t
}

// Mean is exp(loc + scale²/2).
func (d LogNormalDist) Mean() *ts.Tensor {
	return d.spread(d.scale.square().mul(num(0.5)).add(d.loc).exp())
}

// Variance is (exp(scale²) − 1) exp(2 loc + scale²).
func (d LogNormalDist) Variance() *ts.Tensor {
	v := d.scale.square()
	return d.spread(v.expm1().mul(v.add(d.loc.mul(num(2))).exp()))
}

// CDF is Φ((log x − loc)/scale).
func (d LogNormalDist) CDF(value *ts.Tensor) *ts.Tensor {
	return d.positivePart(value, 0, func(x *ts.Tensor) val { return ten(x).log().sub(d.loc).div(d.scale).ndtr() })
}

// ICDF is exp(loc + scale·Φ⁻¹(p)).
func (d LogNormalDist) ICDF(p *ts.Tensor) *ts.Tensor {
	return d.full(ten(p.MustSpecialNdtri(false)).mul(d.scale).add(d.loc).exp().t)
}

// Expand broadcasts the batch shape.
func (d LogNormalDist) Expand(batch ...int64) Distribution {
	d.base = d.expand(batch)
	return d
}

// Validate checks loc and scale.
func (d LogNormalDist) Validate() error {
	return first(d.validate("loc", d.loc, finite), d.validate("scale", d.scale, positive))
}

// Params are the parameters by name.
func (d LogNormalDist) Params() map[string]any {
	return map[string]any{"loc": d.loc.any(), "scale": d.scale.any()}
}
