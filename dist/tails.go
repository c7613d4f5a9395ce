package dist

import (
	"maps"
	"math"
	"slices"

	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// Both tails of the families that have a CDF, as logarithms: what is left of a distribution far out is then exact where the
// CDF itself is 1, or 0, to rounding.

// tailed tells log P(X ≤ x) and log P(X > x) at x inside the support.
type tailed interface {
	logTails(x *ts.Tensor) (lower, upper val)
}

// tailInverse tells the x with given logarithms of P(X ≤ x) and P(X > x), of which the smaller is exact.
type tailInverse interface {
	fromTails(lower, upper val) val
}

// tailsOf are the tails of any distribution with a CDF. Without ones of its own its upper tail is 1 − CDF, which is lost
// where the CDF rounds to 1.
func tailsOf(d Distribution, x *ts.Tensor) (lower, upper val) {
	if t, ok := d.(tailed); ok {
		return t.logTails(x)
	}
	p := ten(d.(CDFer).CDF(x))
	return p.log(), p.neg().log1p()
}

// log1mexp is log(1 − eᵛ) for v ≤ 0.
func (v val) log1mexp() val { return ten(log1mexp(v.neg().t)) }

// logAddExp is log(eᵃ + eᵇ). (libtorch's loses digits.)
func logAddExp(a, b val) val {
	high, low := a.max(b), a.min(b)
	// Two of minus infinity have no difference.
	gap := low.sub(high)
	return high.add(gap.fill(gap.t.MustIsnan(false), 0).exp().log1p())
}

func (v val) atan2(w val) val { return ten(v.t.MustAtan2(w.t, false)) }

func (d NormalDist) logTails(x *ts.Tensor) (lower, upper val) {
	z := ten(x).sub(d.loc).div(d.scale)
	return z.logNdtr(), z.neg().logNdtr()
}

func (d LogNormalDist) logTails(x *ts.Tensor) (lower, upper val) {
	return Normal(d.loc, d.scale).logTails(ten(x).log().t)
}

func (d LogNormalDist) fromTails(lower, upper val) val {
	z := normalQuantileLog(lower.min(upper))
	return choose(lower.t.MustLtTensor(upper.t, false), z, z.neg()).mul(d.scale).add(d.loc).exp()
}

func (d LaplaceDist) logTails(x *ts.Tensor) (lower, upper val) {
	z := ten(x).sub(d.loc).div(d.scale)
	small := z.abs().neg().sub(num(math.Ln2))
	large := small.log1mexp()
	negative := z.t.MustLt(ts.FloatScalar(0), false)
	return choose(negative, small, large), choose(negative, large, small)
}

func (d LaplaceDist) fromTails(lower, upper val) val {
	z := lower.min(upper).add(num(math.Ln2))
	return choose(lower.t.MustLtTensor(upper.t, false), z, z.neg()).mul(d.scale).add(d.loc)
}

func (d LogisticDist) logTails(x *ts.Tensor) (lower, upper val) {
	z := ten(x).sub(d.loc).div(d.scale)
	return z.logSigmoid(), z.neg().logSigmoid()
}

func (d LogisticDist) fromTails(lower, upper val) val {
	return lower.sub(upper).mul(d.scale).add(d.loc)
}

func (d CauchyDist) logTails(x *ts.Tensor) (lower, upper val) {
	z := ten(x).sub(d.loc).div(d.scale)
	one := ten(z.t.MustOnesLike(false))
	return one.atan2(z.neg()).mul(num(1 / math.Pi)).log(), one.atan2(z).mul(num(1 / math.Pi)).log()
}

func (d CauchyDist) fromTails(lower, upper val) val {
	z := ten(lower.min(upper).exp().mul(num(math.Pi)).t.MustTan(false)).recip()
	return choose(lower.t.MustLtTensor(upper.t, false), z.neg(), z).mul(d.scale).add(d.loc)
}

func (d HalfCauchyDist) logTails(x *ts.Tensor) (lower, upper val) {
	z := ten(x).div(d.scale)
	one := ten(z.t.MustOnesLike(false))
	return z.atan2(one).mul(num(2 / math.Pi)).log(), one.atan2(z).mul(num(2 / math.Pi)).log()
}

func (d HalfCauchyDist) fromTails(lower, upper val) val {
	z := ten(lower.min(upper).exp().mul(num(math.Pi / 2)).t.MustTan(false))
	return choose(lower.t.MustLtTensor(upper.t, false), z, z.recip()).mul(d.scale)
}

func (d ExponentialDist) logTails(x *ts.Tensor) (lower, upper val) {
	upper = ten(x).mul(d.rate).neg()
	return upper.log1mexp(), upper
}

func (d ExponentialDist) fromTails(_, upper val) val { return upper.neg().div(d.rate) }

func (d WeibullDist) logTails(x *ts.Tensor) (lower, upper val) {
	upper = ten(x).div(d.scale).log().mul(d.concentration).exp().neg()
	return upper.log1mexp(), upper
}

func (d WeibullDist) fromTails(_, upper val) val {
	return upper.neg().log().div(d.concentration).exp().mul(d.scale)
}

func (d ParetoDist) logTails(x *ts.Tensor) (lower, upper val) {
	upper = ten(x).div(d.scale).log().mul(d.alpha).neg()
	return upper.log1mexp(), upper
}

func (d ParetoDist) fromTails(_, upper val) val {
	return upper.div(d.alpha).neg().exp().mul(d.scale)
}

func (d GumbelDist) logTails(x *ts.Tensor) (lower, upper val) {
	z := ten(x).sub(d.loc).div(d.scale).neg()
	lower = z.exp().neg()
	// Beyond 20 log(1 − exp(−w)), w = exp(−z), is log w − w/2 to rounding, which does not underflow.
	far := z.t.MustLt(ts.FloatScalar(-20), false)
	return lower, choose(far, z.add(lower.mul(num(0.5))), lower.fill(far, -1).log1mexp())
}

func (d GumbelDist) fromTails(lower, upper val) val {
	far := upper.t.MustLt(ts.FloatScalar(-20), false)
	z := choose(far, upper.add(upper.exp().mul(num(0.5))), lower.fill(far, -1).neg().log())
	return z.neg().mul(d.scale).add(d.loc)
}

func (d GammaDist) logTails(x *ts.Tensor) (lower, upper val) {
	return gammaTails(d.concentration, ten(x).mul(d.rate).t)
}

func (d Chi2Dist) logTails(x *ts.Tensor) (lower, upper val) {
	return gammaTails(d.df.mul(num(0.5)), ten(x).mul(num(0.5)).t)
}

func (d InverseGammaDist) logTails(x *ts.Tensor) (lower, upper val) {
	upper, lower = gammaTails(d.concentration, d.scale.div(ten(x)).t)
	return lower, upper
}

// gammaTails are logarithms of incomplete gamma functions, which underflow below e⁻⁷⁴⁵.
func gammaTails(a val, t *ts.Tensor) (lower, upper val) {
	return incompleteGamma(a, t).log(), incompleteGammaC(a, t).log()
}

func (d MixtureDist) logTails(x *ts.Tensor) (lower, upper val) {
	var lows, highs []*ts.Tensor
	for _, c := range d.components {
		low, high := tailsAnywhere(c, x)
		lows, highs = append(lows, d.full(low.t)), append(highs, d.full(high.t))
	}
	return ten(d.mixing.mix(ts.MustStack(lows, -1))), ten(d.mixing.mix(ts.MustStack(highs, -1)))
}

func (d MixtureSameFamilyDist) logTails(x *ts.Tensor) (lower, upper val) {
	low, high := tailsAnywhere(d.components, d.spreadValue(x))
	return ten(d.full(d.mixing.mix(low.t))), ten(d.full(d.mixing.mix(high.t)))
}

// tailsAnywhere are the tails at any x, also an infinite one: outside the support they are all or nothing.
func tailsAnywhere(d Distribution, x *ts.Tensor) (lower, upper val) {
	low, high := bounds(d)
	under, over := atMost(x, low), atLeast(x, high)
	lower, upper = tailsOf(d, choose(under.MustLogicalOr(over, false), innerOf(d), ten(x)).t)
	lower = lower.fill(under, math.Inf(-1)).fill(over, 0)
	return lower, upper.fill(under, 0).fill(over, math.Inf(-1))
}

func atMost(x *ts.Tensor, v val) *ts.Tensor  { return not(above(x, v)) }
func atLeast(x *ts.Tensor, v val) *ts.Tensor { return not(below(x, v)) }

// bounds are the ends of a support of single numbers.
func bounds(d Distribution) (low, high val) {
	s, _ := span(d.Support())
	return edge(s.Low, s.LowT), edge(s.High, s.HighT)
}

// innerOf is a number inside the support, without a graph, at which tails are neither 0 nor 1.
func innerOf(d Distribution) val {
	if q, ok := d.(ICDFer); ok {
		return constant(ten(q.ICDF(num(0.5).tensorOf(typeOf(d)))))
	}
	low, high := bounds(d)
	low, high = constant(low), constant(high)
	switch {
	case low.is(math.Inf(-1)) && high.is(math.Inf(1)):
		return num(0)
	case high.is(math.Inf(1)):
		return low.add(num(1))
	case low.is(math.Inf(-1)):
		return high.sub(num(1))
	}
	return low.add(high).mul(num(0.5))
}

// typeOf is the type and device of the first tensor among a distribution's parameters, as [like] has them.
func typeOf(d Distribution) (gotch.DType, gotch.Device) {
	params := paramsOf(d)
	for _, name := range slices.Sorted(maps.Keys(params)) {
		switch p := params[name].(type) {
		case *ts.Tensor:
			return like(ten(p))
		case Distribution:
			return typeOf(p)
		case []Distribution:
			return typeOf(p[0])
		}
	}
	return like()
}
