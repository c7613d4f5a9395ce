package dist

import (
	"cmp"

	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// uniformDist is the uniform distribution on an interval; see [Uniform].
type uniformDist struct {
	base
	low, high torch.Tensor
}

var uniformFamily = &family{"Uniform", itsOwn, func(b base) Distribution { return uniformDist{b, b.at(0), b.at(1)} },
	[]parameter{{"low", finite}, {"high", finite}}}

// Uniform is the uniform distribution on low ≤ x ≤ high:
//
//	log p(x) = −log(high − low)
func Uniform(low, high any) (made Distribution) {
	defer orMisfit(&made)
	d := uniformFamily.build(low, high).(uniformDist)
	d.checkAbove("high", d.low, d.high)
	return d
}

// Support is low ≤ x ≤ high.
func (d uniformDist) Support() support.Support { return support.Interval(d.low, d.high) }

// LogProb is the log density.
func (d uniformDist) LogProb(value torch.Tensor) torch.Tensor {
	outside := torch.Of(below(value, d.low).T().MustLogicalOr(above(value, d.high).T(), false))
	return d.inside(value, outside, torch.Of(0), func(x torch.Tensor) torch.Tensor {
		// 0·x gives the result the value's shape, and NaN where it is.
		return x.Mul(0).Sub(d.high.Sub(d.low).Log())
	})
}

// Sample draws low + (high − low)·u, reparameterised.
func (d uniformDist) Sample(src *Source, sample ...int) torch.Tensor {
	return d.ICDF(d.uniform(src, sample, d.low, d.high))
}

// Mean is the middle.
func (d uniformDist) Mean() torch.Tensor { return d.spread(d.low.Add(d.high).Mul(0.5)) }

// Variance is (high − low)²/12.
func (d uniformDist) Variance() torch.Tensor {
	return d.spread(d.high.Sub(d.low).Square().Mul(1. / 12))
}

// CDF is (x − low)/(high − low), from 0 to 1.
func (d uniformDist) CDF(value torch.Tensor) torch.Tensor {
	p := floated(value).Sub(d.low).Div(d.high.Sub(d.low))
	return d.full(fill(fill(p, p.Lt(0), 0), p.Gt(1), 1)) // at the ends the derivatives are those inside
}

// ICDF is low + (high − low) p.
func (d uniformDist) ICDF(p torch.Tensor) torch.Tensor {
	return d.full(p.Mul(d.high.Sub(d.low)).Add(d.low))
}

// Validate checks low and high.
func (d uniformDist) Validate() error {
	return cmp.Or(d.base.Validate(), d.validateAbove("high", d.low, d.high))
}
