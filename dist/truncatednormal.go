package dist

import (
	"math"

	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/sugarme/gotch/ts"
)

// TruncatedNormalDist is the normal distribution on an interval; see [TruncatedNormal].
type TruncatedNormalDist struct {
	base
	loc, scale, low, high val
}

// TruncatedNormal is the normal distribution with the given loc and scale > 0 on condition that low ≤ x ≤ high; either end
// may be infinite. With z = (x − loc)/scale, and a and b the same of the ends,
//
//	log p(x) = −z²/2 − log √(2π) − log scale − log(Φ(b) − Φ(a))
//
// The last term is computed from logarithms of Φ, so that the interval may be far out in a tail.
func TruncatedNormal(loc, scale, low, high any) TruncatedNormalDist {
	l, s := param("TruncatedNormal", "loc", loc), param("TruncatedNormal", "scale", scale)
	lo, hi := param("TruncatedNormal", "low", low), param("TruncatedNormal", "high", high)
	d := TruncatedNormalDist{base: newBase("TruncatedNormal", l, s, lo, hi), loc: l, scale: s, low: lo, high: hi}
	d.checkNumber("loc", l, finite)
	d.checkNumber("scale", s, positive)
	d.checkNumber("low", lo, notNaN)
	d.checkNumber("high", hi, notNaN)
	d.checkAbove("high", lo, hi)
	return d
}

// Support is low ≤ x ≤ high.
func (d TruncatedNormalDist) Support() support.Support {
	return support.Interval(d.low.any(), d.high.any())
}

// farOut is beyond any end that matters: Φ is 0 or 1 there, and its square is finite even as a float32.
const farOut = 1e15

// end is (x − loc)/scale of an end, made finite. The bounds before the division keep the gradient of an infinite end finite.
func (d TruncatedNormalDist) end(x val) val {
	x = x.max(num(-farOut)).min(num(farOut))
	return x.sub(d.loc).div(d.scale).max(num(-farOut)).min(num(farOut))
}

// interval is an interval turned, where it lies in the upper tail, into the lower one.
type interval struct {
	low, high val
	flipped   *ts.Tensor // where it was turned
}

func turn(a, b val) interval {
	if a.isNum() && b.isNum() {
		a, b = ten(a.tensor()), ten(b.tensor())
	}
	flipped := a
	if flipped.isNum() {
		flipped = b.mul(num(0)).add(a)
	}
	mask := flipped.t.MustGt(ts.FloatScalar(0), false)
	return interval{choose(mask, b.neg(), a), choose(mask, a.neg(), b), mask}
}

// logMass is log(Φ(high) − Φ(low)). In the tail it is log Φ(high) + log(1 − exp(−d)), d = log Φ(high) − log Φ(low); with an
// end beyond −1 the difference of error functions does not cancel.
func (i interval) logMass() val {
	tail := i.high.t.MustLt(ts.FloatScalar(-1), false)
	high, low := i.high.fill(not(tail), -1), i.low.fill(not(tail), -2)
	h := high.logNdtr()
	far := h.add(h.sub(low.logNdtr()).neg().expm1().neg().log())
	high, low = i.high.fill(tail, 1), i.low.fill(tail, -1)
	root := num(math.Sqrt2 / 2)
	near := ten(high.mul(root).t.MustErf(false)).sub(ten(low.mul(root).t.MustErf(false))).mul(num(0.5)).log()
	return choose(tail, far, near)
}

// LogProb is the log density.
func (d TruncatedNormalDist) LogProb(value *ts.Tensor) *ts.Tensor {
	outside := below(value, d.low).MustLogicalOr(above(value, d.high), false)
	mass := turn(d.end(d.low), d.end(d.high)).logMass()
	return d.inside(value, outside, d.someInside(), func(x *ts.Tensor) val {
		z := ten(x).sub(d.loc).div(d.scale)
		return z.square().mul(num(-0.5)).sub(mass.add(d.scale.log()).add(num(halfLog2Pi)))
	})
}

// someInside is a finite number of the interval.
func (d TruncatedNormalDist) someInside() val {
	return d.low.max(num(-farOut)).min(d.high)
}

// Sample inverts the distribution function, in logarithms, and is reparameterised: gradients are those of the quantile at
// fixed probability.
func (d TruncatedNormalDist) Sample(src *Source, sample ...int64) *ts.Tensor {
	x, _ := d.quantile(ten(d.uniform(src, sample, d.loc, d.scale, d.low, d.high)))
	return x.t
}

// ICDF is the quantile function.
func (d TruncatedNormalDist) ICDF(p *ts.Tensor) *ts.Tensor {
	at := constant(ten(p))
	x, z := d.quantile(at)
	// dx/dp = scale (Φ(b) − Φ(a))/φ(z).
	mass := turn(constant(d.end(d.low)), constant(d.end(d.high))).logMass()
	slope := z.square().mul(num(0.5)).add(mass).add(num(halfLog2Pi)).exp().mul(constant(d.scale))
	return x.add(ten(p).sub(at).mul(slope)).t
}

// quantile is the quantile at p, which has no graph, and the standardised one, without its graph.
func (d TruncatedNormalDist) quantile(p val) (x, standard val) {
	a, b := d.end(d.low), d.end(d.high)
	ac, bc := constant(a), constant(b)
	i := turn(ac, bc)
	// In the turned interval the probability counts from the other end.
	u := choose(i.flipped, num(1).sub(p), p)
	logP := ten(u.neg().log1p().add(i.low.logNdtr()).t.MustLogaddexp(u.log().add(i.high.logNdtr()).t, false))
	z := normalQuantileLog(logP)
	z = choose(i.flipped, z.neg(), z).max(ac).min(bc)
	// dz/da = (1 − p) φ(a)/φ(z) and dz/db = p φ(b)/φ(z), by differentiating Φ(z) = (1 − p) Φ(a) + p Φ(b).
	half := z.square().mul(num(0.5))
	wa := num(1).sub(p).mul(half.sub(ac.square().mul(num(0.5))).exp())
	wb := p.mul(half.sub(bc.square().mul(num(0.5))).exp())
	x = z.add(a.sub(ac).mul(wa)).add(b.sub(bc).mul(wb)).mul(d.scale).add(d.loc)
	// Rounding may have left the interval.
	return ten(d.full(x.max(d.low).min(d.high).t)), z
}

// constant is a val without its graph.
func constant(v val) val {
	if v.isNum() {
		return v
	}
	return ten(v.t.MustDetach(false))
}

// normalQuantileLog is the z with log Φ(z) = l. From a start that is good to a few percent, Newton's method on the logarithm
// converges in four steps.
func normalQuantileLog(l val) val {
	deep := l.t.MustLt(ts.FloatScalar(-5), false)
	near := ten(l.fill(deep, -1).exp().t.MustSpecialNdtri(false))
	t := l.fill(not(deep), -10)
	// z² = −2 l − log 2π − 2 log|z|, with |z| ≈ √(−2 l) in the logarithm.
	z := t.mul(num(-2)).sub(num(2 * halfLog2Pi)).sub(t.mul(num(-2)).log()).sqrt().neg()
	for range 4 {
		f := z.logNdtr()
		slope := z.square().mul(num(-0.5)).sub(num(halfLog2Pi)).sub(f).exp()
		z = z.sub(f.sub(t).div(slope))
	}
	return choose(deep, z, near)
}

// Mean is loc + scale (φ(a) − φ(b))/(Φ(b) − Φ(a)).
func (d TruncatedNormalDist) Mean() *ts.Tensor {
	a, b := d.end(d.low), d.end(d.high)
	pa, pb := d.hazards(a, b)
	return d.spread(pa.sub(pb).mul(d.scale).add(d.loc))
}

// Variance is scale² [1 + (a φ(a) − b φ(b))/(Φ(b) − Φ(a)) − ((φ(a) − φ(b))/(Φ(b) − Φ(a)))²].
func (d TruncatedNormalDist) Variance() *ts.Tensor {
	a, b := d.end(d.low), d.end(d.high)
	pa, pb := d.hazards(a, b)
	v := a.mul(pa).sub(b.mul(pb)).add(num(1)).sub(pa.sub(pb).square())
	return d.spread(v.mul(d.scale.square()))
}

// hazards are φ(a) and φ(b) over Φ(b) − Φ(a).
func (d TruncatedNormalDist) hazards(a, b val) (val, val) {
	mass := turn(a, b).logMass().add(num(halfLog2Pi))
	return a.square().mul(num(-0.5)).sub(mass).exp(), b.square().mul(num(-0.5)).sub(mass).exp()
}

// CDF is (Φ(z) − Φ(a))/(Φ(b) − Φ(a)).
func (d TruncatedNormalDist) CDF(value *ts.Tensor) *ts.Tensor {
	a, b := d.end(d.low), d.end(d.high)
	under, over := below(value, d.low), above(value, d.high)
	middle := d.low.max(num(-farOut)).add(d.high.min(num(farOut))).mul(num(0.5))
	z := d.end(choose(under.MustLogicalOr(over, false), middle, ten(value)))
	p := turn(a, z).logMass().sub(turn(a, b).logMass()).exp()
	return d.full(p.fill(under, 0).fill(over, 1).t)
}

// Expand broadcasts the batch shape.
func (d TruncatedNormalDist) Expand(batch ...int64) Distribution {
	d.base = d.expand(batch)
	return d
}

// Validate checks loc, scale, low and high.
func (d TruncatedNormalDist) Validate() error {
	return first(d.validate("loc", d.loc, finite), d.validate("scale", d.scale, positive), d.validate("low", d.low, notNaN),
		d.validate("high", d.high, notNaN), d.validateAbove("high", d.low, d.high))
}

// Params are the parameters by name.
func (d TruncatedNormalDist) Params() map[string]any {
	return map[string]any{"loc": d.loc.any(), "scale": d.scale.any(), "low": d.low.any(), "high": d.high.any()}
}
