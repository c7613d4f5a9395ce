package dist

import (
	"math"

	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/sugarme/gotch/ts"
)

// BetaDist is the beta distribution; see [Beta].
type BetaDist struct {
	base
	concentration1, concentration0 val
}

// Beta is the beta distribution with a = concentration1 > 0 and b = concentration0 > 0; for 0 ≤ x ≤ 1
//
//	log p(x) = (a − 1) log x + (b − 1) log(1 − x) − log B(a, b)
//
// Where both are at least 10 it is computed from log(x (a+b)/a) and log((1−x) (a+b)/b), where nothing large cancels.
func Beta(concentration1, concentration0 any) BetaDist {
	a, b := param("Beta", "concentration1", concentration1), param("Beta", "concentration0", concentration0)
	d := BetaDist{base: newBase("Beta", a, b), concentration1: a, concentration0: b}
	d.checkNumber("concentration1", a, positive)
	d.checkNumber("concentration0", b, positive)
	return d
}

// Support is 0 ≤ x ≤ 1.
func (d BetaDist) Support() support.Support { return support.UnitInterval }

// LogProb is the log density.
func (d BetaDist) LogProb(value *ts.Tensor) *ts.Tensor {
	outside := value.MustLt(ts.FloatScalar(0), false).MustLogicalOr(value.MustGt(ts.FloatScalar(1), false), false)
	return d.inside(value, outside, num(0.5), func(x *ts.Tensor) val { return betaKernel(d.concentration1, d.concentration0, x) })
}

// betaKernel is the log density at 0 ≤ x ≤ 1.
func betaKernel(a, b val, x *ts.Tensor) val {
	smaller := a.min(b)
	if smaller.isNum() {
		if smaller.c < stirlingFrom {
			return betaNear(a, b, x)
		}
		return betaFar(a, b, x)
	}
	small := smaller.t.MustLt(ts.FloatScalar(stirlingFrom), false)
	return choose(small, betaNear(a, b, x), betaFar(a.max(num(stirlingFrom)), b.max(num(stirlingFrom)), x))
}

func betaNear(a, b val, x *ts.Tensor) val {
	return xlogy(a.sub(num(1)), ten(x)).add(xlog1py(b.sub(num(1)), ten(x).neg())).sub(logBeta(a, b))
}

// betaFar is (a−1) L + (b−1) M + 3/2 log(a+b) − ½ log ab − log √2π − δ(a) − δ(b) + δ(a+b), where δ is the remainder of
// Stirling's formula, L = log(x (a+b)/a) and M = log((1−x) (a+b)/b).
func betaFar(a, b val, x *ts.Tensor) val {
	// At an end it is minus infinity, without gradients.
	end := x.MustMul(x.MustRsubScalar(ts.FloatScalar(1), false), false).MustEq(ts.FloatScalar(0), false)
	x = ten(x).fill(end, 0.5).t
	s, y := a.add(b), num(1).sub(ten(x))
	over := ten(x).mul(b).sub(y.mul(a)) // x (a+b) − a
	l := logRatio(over.div(a), func() val { return ten(x).log().sub(a.div(s).log()) })
	m := logRatio(over.neg().div(b), func() val { return ten(x).neg().log1p().sub(b.div(s).log()) })
	c := s.log().mul(num(1.5)).sub(a.log().add(b.log()).mul(num(0.5))).sub(num(halfLog2Pi)).
		sub(stirling(a)).sub(stirling(b)).add(stirling(s))
	return a.sub(num(1)).mul(l).add(b.sub(num(1)).mul(m)).add(c).fill(end, math.Inf(-1))
}

// Sample draws g/(g + h) of two gamma numbers, from their logarithms, reparameterised.
func (d BetaDist) Sample(src *Source, sample ...int64) *ts.Tensor {
	g := d.logGamma(src, sample, d.concentration1, d.concentration1, d.concentration0)
	h := d.logGamma(src, sample, d.concentration0, d.concentration1, d.concentration0)
	return g.sub(h).sigmoid().t
}

// Mean is a/(a + b).
func (d BetaDist) Mean() *ts.Tensor {
	return d.spread(d.concentration1.div(d.concentration1.add(d.concentration0)))
}

// Variance is ab/((a + b)² (a + b + 1)).
func (d BetaDist) Variance() *ts.Tensor {
	s := d.concentration1.add(d.concentration0)
	return d.spread(d.concentration1.div(s).mul(d.concentration0.div(s)).div(s.add(num(1))))
}

// Expand broadcasts the batch shape.
func (d BetaDist) Expand(batch ...int64) Distribution {
	d.base = d.expand(batch)
	return d
}

// Validate checks concentration1 and concentration0.
func (d BetaDist) Validate() error {
	return first(d.validate("concentration1", d.concentration1, positive), d.validate("concentration0", d.concentration0, positive))
}

// Params are the parameters by name.
func (d BetaDist) Params() map[string]any {
	return map[string]any{"concentration1": d.concentration1.any(), "concentration0": d.concentration0.any()}
}
