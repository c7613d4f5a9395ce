package dist

import (
	"maps"
	"math"
	"slices"

	"github.com/sugarme/gotch"

	"github.com/kelvin-ppl/kelvin/dist/internal/operand"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Both tails of the families that have a CDF, as logarithms: what is left of a distribution far out is then exact where
// the CDF itself is 1, or 0, to rounding.

// tailed tells log P(X ≤ x) and log P(X > x) at x inside the support.
type tailed interface {
	logTails(x torch.Tensor) (lower, upper torch.Tensor)
}

// tailInverse tells the x with given logarithms of P(X ≤ x) and P(X > x). The smaller of the two is exact.
type tailInverse interface {
	fromTails(lower, upper torch.Tensor) torch.Tensor
}

// tailsOf are the tails of any distribution with a CDF. Without ones of its own its upper tail is 1 − CDF, which is
// lost where the CDF rounds to 1.
func tailsOf(d Distribution, x torch.Tensor) (lower, upper torch.Tensor) {
	switch t := d.(type) {
	case tailed:
		return t.logTails(x)
	case CDFer:
		p := t.CDF(x)
		return p.Log(), p.Neg().Log1p()
	}
	return tableTails(d, x)
}

// logOneMinusExp is log(1 − eᵛ) for v ≤ 0.
func logOneMinusExp(v torch.Tensor) torch.Tensor { return log1mexp(v.Neg()) }

// logOneMinusExpOf is log(1 − e⁻ʷ) from log w: below −20 it is log w − w/2 to rounding, which does not underflow.
func logOneMinusExpOf(log, w torch.Tensor) torch.Tensor {
	small := log.Lt(-20)
	return torch.Choose(small, log.Sub(w.Mul(0.5)), logOneMinusExp(fill(w, small, 1).Neg()))
}

// logAddExp is log(eᵃ + eᵇ). (libtorch's loses digits.)
func logAddExp(a, b torch.Tensor) torch.Tensor {
	high, low := a.AtLeast(b), a.AtMost(b)
	// Two of minus infinity have no difference.
	gap := low.Sub(high)
	return high.Add(fill(gap, torch.Of(gap.T().MustIsnan(false)), 0).Exp().Log1p())
}

func atan2(v, w torch.Tensor) torch.Tensor { return torch.Of(v.T().MustAtan2(w.T(), false)) }

func (d normalDist) logTails(x torch.Tensor) (lower, upper torch.Tensor) {
	z := x.Sub(d.loc).Div(d.scale)
	return logNdtr(z), logNdtr(z.Neg())
}

func (d normalDist) fromTails(lower, upper torch.Tensor) torch.Tensor {
	z := normalQuantileLog(lower.AtMost(upper))
	return torch.Choose(lower.Lt(upper), z, z.Neg()).Mul(d.scale).Add(d.loc)
}

func (d logNormalDist) logTails(x torch.Tensor) (lower, upper torch.Tensor) {
	return Normal(d.loc, d.scale).(normalDist).logTails(x.Log())
}

func (d logNormalDist) fromTails(lower, upper torch.Tensor) torch.Tensor {
	return Normal(d.loc, d.scale).(normalDist).fromTails(lower, upper).Exp()
}

func (d halfNormalDist) logTails(x torch.Tensor) (lower, upper torch.Tensor) {
	z := x.Div(d.scale)
	return paired(z.Mul(math.Sqrt2/2).Erf().Log(), logNdtr(z.Neg()).Add(math.Ln2))
}

func (d halfNormalDist) fromTails(lower, upper torch.Tensor) torch.Tensor {
	far := upper.Lt(lower)
	low := torch.Of(fill(lower, far, -1).Exp().T().MustErfinv(false)).Mul(math.Sqrt2)
	return torch.Where(far, normalQuantileLog(fill(upper, not(far), -1).Sub(math.Ln2)).Neg(), low).Mul(d.scale)
}

// The upper tail of an inverse Gaussian is φ(a) of its lower end a = √(λ/x)(x/μ − 1) times the difference of two ratios
// of Mills, which is positive; for an a so small that the CDF is below 1e-5 it is 1 − CDF.
func (d inverseGaussianDist) logTails(x torch.Tensor) (lower, upper torch.Tensor) {
	root, ratio := d.shape.Div(x).Sqrt(), x.Div(d.mean)
	a, b := root.Mul(ratio.Sub(1)).Mul(math.Sqrt2/2), root.Mul(ratio.Add(1)).Mul(math.Sqrt2/2)
	p := d.CDF(x)
	near, left := a.Lt(-5), a.Lt(0) // of a/√2
	// The lower tail is half of exp(−a²) [erfcx(−a) + erfcx(b)].
	z := fill(a, not(left), -1)
	deep := logAddExp(logErfcx(z.Neg()), logErfcx(b)).Sub(z.Square()).Sub(math.Ln2)
	lower = torch.Choose(left, deep, fill(p, left, 0.5).Log())
	a = fill(a, near, 0)
	erfcx := func(t torch.Tensor) torch.Tensor { return torch.Of(t.T().MustSpecialErfcx(false)) }
	// Close arguments: by the derivative between them, 2/√π − 2t erfcx(t).
	gap, mid := b.Sub(a), a.Add(b).Mul(0.5)
	close := gap.Lt(3e-5)
	slope := erfcx(mid).Mul(mid).Mul(-2).Add(2 / math.Sqrt(math.Pi))
	drop := torch.Where(close, gap.Mul(slope), erfcx(a).Sub(erfcx(b)))
	far := drop.Mul(0.5).Log().Sub(a.Square())
	return paired(lower, torch.Where(near, p.Neg().Log1p(), far))
}

func (d truncatedNormalDist) logTails(x torch.Tensor) (lower, upper torch.Tensor) {
	logScale := d.scale.Log()
	all := d.between(d.low, d.high, logScale).mass()
	share := func(low, high torch.Tensor) torch.Tensor {
		part := d.between(low, high, logScale).mass()
		return all.over(part.c).Add(part.rest)
	}
	return paired(share(d.low, x), share(x, d.high))
}

func (d truncatedDist) logTails(x torch.Tensor) (lower, upper torch.Tensor) {
	low, at, high := d.at(d.low), d.at(x), d.at(d.high)
	all, _ := d.between(low, high)
	share := func(low, high tailPair) torch.Tensor {
		part, lost := d.between(low, high)
		return fill(part.Sub(all), lost, math.Inf(-1))
	}
	return paired(share(low, at), share(at, high))
}

func (d uniformDist) logTails(x torch.Tensor) (lower, upper torch.Tensor) {
	width := d.high.Sub(d.low)
	return paired(x.Sub(d.low).Div(width).Log(), d.high.Sub(x).Div(width).Log())
}

func (d laplaceDist) logTails(x torch.Tensor) (lower, upper torch.Tensor) {
	z := x.Sub(d.loc).Div(d.scale)
	negative := z.Lt(0)
	small := torch.Choose(negative, z, z.Neg()).Sub(math.Ln2) // an absolute value has no derivative at 0, these have
	large := logOneMinusExp(small)
	return torch.Choose(negative, small, large), torch.Choose(negative, large, small)
}

func (d laplaceDist) fromTails(lower, upper torch.Tensor) torch.Tensor {
	z := lower.AtMost(upper).Add(math.Ln2)
	return torch.Choose(lower.Lt(upper), z, z.Neg()).Mul(d.scale).Add(d.loc)
}

func (d logisticDist) logTails(x torch.Tensor) (lower, upper torch.Tensor) {
	z := x.Sub(d.loc).Div(d.scale)
	return z.LogSigmoid(), z.Neg().LogSigmoid()
}

func (d logisticDist) fromTails(lower, upper torch.Tensor) torch.Tensor {
	return lower.Sub(upper).Mul(d.scale).Add(d.loc)
}

// acot is the angle atan2(1, z) for z ≥ 0, with derivatives also where z² overflows.
func acot(z torch.Tensor) torch.Tensor {
	far := z.Gt(1)
	t := torch.Choose(far, fill(z, not(far), 1).Log().Neg().Exp(), z) // 1/z, whose derivative may underflow
	a := atan2(t, torch.Of(z.T().MustOnesLike(false)))
	return torch.Choose(far, a, a.Neg().Add(math.Pi/2))
}

func (d cauchyDist) logTails(x torch.Tensor) (lower, upper torch.Tensor) {
	z := x.Sub(d.loc).Div(d.scale)
	left := z.Lt(0)
	near := acot(torch.Choose(left, z.Neg(), z)).Mul(1 / math.Pi).Log()
	far := logOneMinusExp(near)
	return torch.Choose(left, near, far), torch.Choose(left, far, near)
}

func (d cauchyDist) fromTails(lower, upper torch.Tensor) torch.Tensor {
	z := torch.Of(lower.AtMost(upper).Exp().Mul(math.Pi).T().MustTan(false)).Reciprocal()
	return torch.Choose(lower.Lt(upper), z.Neg(), z).Mul(d.scale).Add(d.loc)
}

func (d halfCauchyDist) logTails(x torch.Tensor) (lower, upper torch.Tensor) {
	z := x.Div(d.scale)
	one := torch.Of(z.T().MustOnesLike(false))
	return paired(atan2(z.AtMost(1e100), one).Mul(2/math.Pi).Log(), acot(z).Mul(2/math.Pi).Log())
}

func (d halfCauchyDist) fromTails(lower, upper torch.Tensor) torch.Tensor {
	z := torch.Of(lower.AtMost(upper).Exp().Mul(math.Pi / 2).T().MustTan(false))
	return torch.Choose(lower.Lt(upper), z, z.Reciprocal()).Mul(d.scale)
}

func (d exponentialDist) logTails(x torch.Tensor) (lower, upper torch.Tensor) {
	upper = x.Mul(d.rate).Neg()
	return logOneMinusExp(upper), upper
}

func (d exponentialDist) fromTails(_, upper torch.Tensor) torch.Tensor {
	return upper.Neg().Div(d.rate)
}

func (d weibullDist) logTails(x torch.Tensor) (lower, upper torch.Tensor) {
	log := x.Div(d.scale).Log().Mul(d.concentration)
	w := log.Exp()
	return logOneMinusExpOf(log, w), w.Neg()
}

func (d weibullDist) fromTails(_, upper torch.Tensor) torch.Tensor {
	return upper.Neg().Log().Div(d.concentration).Exp().Mul(d.scale)
}

func (d paretoDist) logTails(x torch.Tensor) (lower, upper torch.Tensor) {
	over := x.Sub(d.scale).Div(d.scale)
	upper = logRatio(over, func() torch.Tensor { return x.Div(d.scale).Log() }).Mul(d.alpha).Neg()
	return logOneMinusExp(upper), upper
}

func (d paretoDist) fromTails(_, upper torch.Tensor) torch.Tensor {
	return upper.Div(d.alpha).Neg().Exp().Mul(d.scale)
}

func (d gumbelDist) logTails(x torch.Tensor) (lower, upper torch.Tensor) {
	z := x.Sub(d.loc).Div(d.scale).Neg()
	w := z.Exp()
	return w.Neg(), logOneMinusExpOf(z, w)
}

func (d gumbelDist) fromTails(lower, upper torch.Tensor) torch.Tensor {
	far := upper.Lt(-20)
	z := torch.Choose(far, upper.Add(upper.Exp().Mul(0.5)), fill(lower, far, -1).Neg().Log())
	return z.Neg().Mul(d.scale).Add(d.loc)
}

func (d gammaDist) logTails(x torch.Tensor) (lower, upper torch.Tensor) {
	return gammaTails(d.concentration, x.Mul(d.rate))
}

func (d chi2Dist) logTails(x torch.Tensor) (lower, upper torch.Tensor) {
	return gammaTails(d.df.Mul(0.5), x.Mul(0.5))
}

func (d inverseGammaDist) logTails(x torch.Tensor) (lower, upper torch.Tensor) {
	upper, lower = gammaTails(d.concentration, d.scale.Div(x))
	return lower, upper
}

// Half of the upper tail of |z|^β, which has a gamma distribution.
func (d generalizedNormalDist) logTails(x torch.Tensor) (lower, upper torch.Tensor) {
	z := x.Sub(d.loc).Div(d.scale)
	left := z.Lt(0)
	z = torch.Choose(left, z.Neg(), z)
	zero := z.Eq(0)
	t := fill(fill(z, zero, 1).Log().Mul(d.shape).Exp(), zero, 0)
	_, tail := gammaTails(d.shape.Reciprocal(), dense(t))
	near := tail.Sub(math.Ln2)
	far := logOneMinusExp(near)
	return torch.Choose(left, near, far), torch.Choose(left, far, near)
}

// skewLeft is the lower tail of standardised skew normal numbers at z ≤ 0, for a skew α ≥ 0: with φ = π/2 − t in Owen's
// integral (1956)
//
//	P(Z ≤ z) = 1/π ∫ exp(−z²/(2 sin² φ)) dφ,  0 < φ < atan(1/α)
//
// and for z² (1 + α²) < 1 its value at 0, atan(1/α)/π, less the integral of the density, both by Gauss and Legendre's
// rule. With φ = atan(1/α) − δ and t = tan δ, 1/sin² φ is 1 + α² + e (2α + e), e = t (1 + α²)/(1 − αt).
func skewLeft(z, skew torch.Tensor) torch.Tensor {
	rule := gaussLegendre()
	zz, aa := z.Square(), skew.Square().Add(1)
	close := zz.Mul(aa).Lt(1)
	// The width of what is above exp(−40) of the largest.
	w := fill(zz, close, 1)
	drop := constant(w).Reciprocal().Mul(80)
	alpha := constant(skew)
	last := drop.Add(alpha.Square()).Sqrt()
	width := atan2(drop.Div(last.Add(alpha)), last.Mul(alpha).Add(1))
	t := torch.Of(wide(width).Mul(along(rule.nodes, z)).T().MustTan(false))
	e := t.Mul(wide(aa)).Div(t.Mul(wide(skew)).Neg().Add(1))
	fall := wide(skew).Mul(2).Add(e).Mul(e).Mul(wide(w)).Mul(-0.5).Exp()
	far := width.Mul(operand.SumLast(fall.Mul(along(rule.weights, z)), 1)).Log().Sub(w.Mul(aa).Mul(0.5))

	small := fill(z, not(close), 0)
	at := wide(small).Mul(along(rule.nodes, z))
	density := logNdtr(at.Mul(wide(skew))).Sub(at.Square().Mul(0.5)).Exp().Mul(along(rule.weights, z))
	part := small.Mul(operand.SumLast(density, 1)).Mul(2 * math.Exp(-halfLog2Pi))
	angle := atan2(torch.Of(z.T().MustOnesLike(false)), skew).Mul(1 / math.Pi)
	return torch.Choose(close, fill(angle.Add(part), not(close), 1).Log(), far.Sub(math.Log(math.Pi)))
}

// By mirror images it is at a skew α ≥ 0, and above 0 it is P(Z > z) = 2 Φ(−z) − P(Z ≤ −z), at least half of the first.
func (d skewNormalDist) logTails(x torch.Tensor) (lower, upper torch.Tensor) {
	z := x.Sub(d.loc).Div(d.scale)
	skew := z.Mul(0).Add(d.skew)
	z = d.full(z)
	skew = d.full(skew)
	mirrored := skew.Lt(0)
	z, skew = torch.Choose(mirrored, z.Neg(), z), torch.Choose(mirrored, skew.Neg(), skew)
	at := constant(z)
	right := at.Gt(0)
	left := skewLeft(torch.Choose(right, at.Neg(), at), skew)
	all := logNdtr(at.Neg()).Add(math.Ln2)
	gap := fill(left.Sub(all), not(right), -1)
	near := torch.Choose(right, all.Add(logOneMinusExp(gap)), left)
	if hasGraph(z) {
		// As in gammaTailsPart, by the density half-way.
		of := z.Add(at).Mul(0.5)
		p := logNdtr(of.Mul(skew)).Sub(of.Square().Mul(0.5)).Add(math.Ln2 - halfLog2Pi)
		step := torch.Choose(right, at.Sub(z), z.Sub(at))
		near = near.Add(step.Mul(p.Sub(near).AtMost(700).Exp()).Log1p())
	}
	far := logOneMinusExp(near)
	under := torch.Of(right.T().MustLogicalXor(mirrored.T(), false)) // the lower tail is the far one
	return torch.Choose(under, far, near), torch.Choose(under, near, far)
}

func (d mixtureDist) logTails(x torch.Tensor) (lower, upper torch.Tensor) {
	var lows, highs []torch.Tensor
	for _, c := range d.components {
		low, high := tailsAnywhere(c, x)
		lows, highs = append(lows, d.full(low)), append(highs, d.full(high))
	}
	return paired(d.mixing.mix(torch.Stack(-1, lows)), d.mixing.mix(torch.Stack(-1, highs)))
}

func (d mixtureSameFamilyDist) logTails(x torch.Tensor) (lower, upper torch.Tensor) {
	low, high := tailsAnywhere(d.components, d.spreadValue(x))
	return paired(d.full(d.mixing.mix(low)), d.full(d.mixing.mix(high)))
}

// nearTail is the lower tail where down says so, and the upper one elsewhere.
func nearTail(d Distribution, x, down torch.Tensor) torch.Tensor {
	switch d := d.(type) {
	case mixtureDist:
		return d.full(d.mixing.mix(d.each(func(c Distribution) torch.Tensor { return d.full(nearTail(c, x, down)) }, -1)))
	case mixtureSameFamilyDist:
		return d.full(d.mixing.mix(nearTail(d.components, d.spreadValue(x), d.spreadValue(down))))
	}
	lower, upper := tailsAnywhere(d, x)
	return torch.Choose(down, lower, upper)
}

// tailsAnywhere are the tails at any x, also an infinite one: outside the support they are all or nothing.
func tailsAnywhere(d Distribution, x torch.Tensor) (lower, upper torch.Tensor) {
	if point, ok := d.(deltaDist); ok {
		reached := dense(x).Sub(point.value).Ge(0)
		zero := dense(x).Add(point.value).Mul(0)
		return fill(zero, not(reached), math.Inf(-1)), fill(zero, reached, math.Inf(-1))
	}
	low, high := bounds(d)
	inner := innerOf(d)
	under, over := atMost(x, low), atLeast(x, high)
	if d.Support().Discrete() {
		inner = torch.Of(inner.T().MustFloor(false))
		x = torch.Of(dense(x).T().MustFloor(false))
		under, over = below(x, low), atLeast(x, high)
	}
	lower, upper = tailsOf(d, torch.Choose(torch.Of(under.T().MustLogicalOr(over.T(), false)), inner, x))
	lower = fill(fill(lower, under, math.Inf(-1)), over, 0)
	return lower, fill(fill(upper, under, 0), over, math.Inf(-1))
}

func atMost(x torch.Tensor, v torch.Tensor) torch.Tensor  { return dense(x).Le(v) }
func atLeast(x torch.Tensor, v torch.Tensor) torch.Tensor { return dense(x).Ge(v) }

// atEnds is the quantile function f at p from 0 to 1: f is asked inside, and gives the derivatives, where the quantile
// is an end.
func atEnds(p, low, high torch.Tensor, f func(p torch.Tensor) torch.Tensor) torch.Tensor {
	p = dense(p)
	least, last := 1e-300, 0x1p-53
	if p.T().DType() == gotch.Float {
		least, last = 1e-37, 0x1p-24
	}
	zero, one := p.Eq(0), p.Eq(1)
	x := f(torch.Choose(zero, p.Add(least), torch.Choose(one, p.Sub(last), p)))
	off := constant(torch.Choose(zero, low, torch.Choose(one, high, x)).Sub(x))
	return x.Add(fill(off, torch.Of(off.T().MustIsnan(false)), 0)) // x may be infinite
}

// bounds are the ends of a support of single numbers.
func bounds(d Distribution) (low, high torch.Tensor) {
	s, _ := span(d.Support())
	return s.Low, s.High
}

// innerOf is a number inside the support, without a graph, at which tails are neither 0 nor 1.
func innerOf(d Distribution) torch.Tensor {
	switch t := d.(type) {
	case studentTDist: // its quantiles are by iteration
		return constant(t.loc)
	case inverseGaussianDist:
		return constant(t.mean)
	}
	low, high := bounds(d)
	low, high = constant(low), constant(high)
	other := within(low, high)
	if q, ok := d.(ICDFer); ok {
		dtype, device := typeOf(d)
		x := constant(q.ICDF(tensorOf(torch.Of(0.5), dtype, device)))
		// It may have overflowed, or be an end by rounding.
		lost := either(either(atMost(x, low), atLeast(x, high)), isInfinite(x))
		return torch.Choose(lost, other, x)
	}
	return other
}

// within is a number between the ends of a support.
func within(low, high torch.Tensor) torch.Tensor {
	switch {
	case is(low, math.Inf(-1)) && is(high, math.Inf(1)):
		return torch.Of(0)
	case is(high, math.Inf(1)):
		return low.Add(1)
	case is(low, math.Inf(-1)):
		return high.Sub(1)
	}
	return low.Add(high).Mul(0.5)
}

// typeOf is the type and device of the first tensor among a distribution's parameters, as [like] has them.
func typeOf(d Distribution) (gotch.DType, gotch.Device) {
	params := paramsOf(d)
	for _, name := range slices.Sorted(maps.Keys(params)) {
		switch p := params[name].(type) {
		case torch.Tensor:
			if !operand.IsNumber(p) {
				return like(p)
			}
		case Distribution:
			return typeOf(p)
		case []Distribution:
			return typeOf(p[0])
		}
	}
	return like()
}
