package dist

import (
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/sugarme/gotch/ts"
)

// UniformDist is the uniform distribution on an interval; see [Uniform].
type UniformDist struct {
	base
	low, high val
}

// Uniform is the uniform distribution on low ≤ x ≤ high:
//
//	log p(x) = −log(high − low)
func Uniform(low, high any) UniformDist {
	lo, hi := param("Uniform", "low", low), param("Uniform", "high", high)
	d := UniformDist{base: newBase("Uniform", lo, hi), low: lo, high: hi}
	d.checkNumber("low", lo, finite)
	d.checkNumber("high", hi, finite)
	d.checkAbove("high", lo, hi)
	return d
}

// Support is low ≤ x ≤ high.
func (d UniformDist) Support() support.Support { return support.Interval(d.low.any(), d.high.any()) }

// LogProb is the log density.
func (d UniformDist) LogProb(value *ts.Tensor) *ts.Tensor {
	outside := below(value, d.low).MustLogicalOr(above(value, d.high), false)
	return d.inside(value, outside, num(0), func(x *ts.Tensor) val {
		// 0·x gives the result the value's shape, and NaN where it is.
		return ten(x).mul(num(0)).sub(d.high.sub(d.low).log())
	})
}

// Sample draws low + (high − low)·u, reparameterised.
func (d UniformDist) Sample(src *Source, sample ...int64) *ts.Tensor {
	return d.ICDF(d.uniform(src, sample, d.low, d.high))
}

// Mean is the middle.
func (d UniformDist) Mean() *ts.Tensor { return d.spread(d.low.add(d.high).mul(num(0.5))) }

// Variance is (high − low)²/12.
func (d UniformDist) Variance() *ts.Tensor {
	return d.spread(d.high.sub(d.low).square().mul(num(1. / 12)))
}

// CDF is (x − low)/(high − low), from 0 to 1.
func (d UniformDist) CDF(value *ts.Tensor) *ts.Tensor {
	p := floated(value).sub(d.low).div(d.high.sub(d.low))
	return d.full(p.t.MustClamp(ts.FloatScalar(0), ts.FloatScalar(1), false))
}

// ICDF is low + (high − low) p.
func (d UniformDist) ICDF(p *ts.Tensor) *ts.Tensor {
	return d.full(ten(p).mul(d.high.sub(d.low)).add(d.low).t)
}

// Expand broadcasts the batch shape.
func (d UniformDist) Expand(batch ...int64) Distribution {
	d.base = d.expand(batch)
	return d
}

// Validate checks low and high.
func (d UniformDist) Validate() error {
	return first(d.validate("low", d.low, finite), d.validate("high", d.high, finite), d.validateAbove("high", d.low, d.high))
}

// Params are the parameters by name.
func (d UniformDist) Params() map[string]any {
	return map[string]any{"low": d.low.any(), "high": d.high.any()}
}
