package dist

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"

	"github.com/sugarme/gotch"

	"github.com/kelvin-ppl/kelvin/dist/internal/operand"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/internal/foreign"
	"github.com/kelvin-ppl/kelvin/torch"
)

// truncatedDist is a distribution on an interval; see [Truncated].
type truncatedDist struct {
	base
	of        Distribution
	low, high torch.Tensor
}

// Truncated is the distribution of single numbers d on condition that low ≤ x ≤ high. Real numbers must have a CDF F.
// The ends are numbers or tensors, and may be infinite:
//
//	log p(x) = log p_d(x) − log(F(high) − F(low))
//
// The last term is computed from logarithms of the nearer tail, so that the interval may be far out in it. A CDF that
// this package does not know is lost where it rounds to 1: there the log density is minus infinity, and Validate
// returns an error. With T the nearer tail at either end, and the mass of the interval, the relative error of the
// density is some roundings of (T(low) + T(high))/mass, and so is the error of derivatives by the logarithm of a
// parameter. For [LogNormal], and for [InverseGaussian] and [Weibull] where their density changes little in the
// interval, it is some roundings.
//
// [Normal], [HalfNormal] and [TruncatedNormal] become a [TruncatedNormal], [Uniform] becomes a [Uniform], and an
// interval around the support changes nothing.
//
// For whole numbers the mass of the interval is a sum over its values. Its ends are finite Go numbers, with at most 2²⁰
// values between them. That makes a Poisson variable one that [ppl.Enumerate] sums out. Such a distribution has a
// method LeftOut() torch.Tensor, the probability of d outside the interval: the truncation changes no probability by
// more.
//
// [ppl.Enumerate]: https://pkg.go.dev/github.com/kelvin-ppl/kelvin/ppl#Enumerate
func Truncated(d Distribution, low, high any) (made Distribution) {
	defer orMisfit(&made)
	const family = "Truncated"
	lo, hi := param(family, "low", low), param(family, "high", high)
	if d == nil {
		panic(&Error{family, "base", "nil", "a distribution with a CDF is required"})
	}
	if d.Support().Discrete() {
		return newTruncatedCounts(d, lo, hi)
	}
	if len(d.EventShape()) != 0 {
		panic(&Error{family, "base", fmt.Sprintf("%s over %v", d.Name(), d.Support()),
			"a distribution of single real numbers is required"})
	}
	if missing := noCDF(d); missing != "" {
		panic(&Error{family, "base", d.Name(), missing +
			" has no CDF here, and a truncated density is divided by a difference of CDFs: " +
			"truncate a family with a CDF, or give the density by a Factor on a site with the interval as its support"})
	}
	b := base{family: family, batch: broadcast(family, d.BatchShape(), lo.Shape(), hi.Shape())}
	b.checkNumber("low", lo, notNaN)
	b.checkNumber("high", hi, notNaN)
	b.checkAbove("high", lo, hi)
	from, to := bounds(d)
	a, c := lo.AtLeast(from), hi.AtMost(to)
	if operand.IsNumber(a) && operand.IsNumber(c) && !(operand.Number(a) < operand.Number(c)) {
		panic(&Error{family, "the interval", fmt.Sprintf("[%v, %v]", operand.Number(lo), operand.Number(hi)),
			fmt.Sprintf("it must have a part in the support of %s, %v", d.Name(), d.Support())})
	}
	if operand.IsNumber(from) && operand.IsNumber(to) && a == from && c == to {
		return d
	}
	switch t := d.(type) {
	case normalDist:
		return TruncatedNormal(t.loc, t.scale, lo, hi).Expand(b.batch...)
	case halfNormalDist:
		return TruncatedNormal(0, t.scale, lo.AtLeast(0), hi).Expand(b.batch...)
	case truncatedNormalDist:
		return TruncatedNormal(t.loc, t.scale, lo.AtLeast(t.low), hi.AtMost(t.high)).Expand(b.batch...)
	case uniformDist:
		return Uniform(lo.AtLeast(t.low), hi.AtMost(t.high)).Expand(b.batch...)
	case paretoDist: // above an end it has none of the scale
		d = Pareto(t.scale.AtLeast(lo), t.alpha)
	case truncatedDist:
		return truncatedDist{b, t.of.Expand(b.batch...), lo.AtLeast(t.low), hi.AtMost(t.high)}
	}
	return truncatedDist{b, d.Expand(b.batch...), lo, hi}
}

// Base is the distribution d.
func (d truncatedDist) Base() Distribution { return d.of }

// Name says what is truncated.
func (d truncatedDist) Name() string { return fmt.Sprintf("Truncated(%s)", d.of.Name()) }

// Support is what of the interval is in the support of d, its ends included.
func (d truncatedDist) Support() support.Support {
	low, high := d.ends()
	return support.Support{Kind: support.KindInterval, Low: low, High: high, Closed: true}
}

// ends are those of the interval or, where they are further inside, of the support of d.
func (d truncatedDist) ends() (low, high torch.Tensor) {
	low, high = bounds(d.of)
	if !is(low, math.Inf(-1)) {
		low = d.low.AtLeast(low)
	} else {
		low = d.low
	}
	if !is(high, math.Inf(1)) {
		return low, d.high.AtMost(high)
	}
	return low, d.high
}

// tailPair are log P(X ≤ x) and log P(X > x), of d.
type tailPair struct{ lower, upper torch.Tensor }

// at are the tails at any x.
func (d truncatedDist) at(x torch.Tensor) tailPair {
	dtype, device := typeOf(d.of)
	number := func(c float64) torch.Tensor { return tensorOf(torch.Of(c), dtype, device) }
	from, to := bounds(d.of)
	switch {
	case operand.IsNumber(x) && operand.IsNumber(from) && operand.Number(x) <= operand.Number(from):
		return tailPair{number(math.Inf(-1)), number(0)}
	case operand.IsNumber(x) && operand.IsNumber(to) && operand.Number(x) >= operand.Number(to):
		return tailPair{number(0), number(math.Inf(-1))}
	}
	lower, upper := tailsAnywhere(d.of, tensorOf(x, dtype, device))
	return tailPair{lower, upper}
}

// between is the log probability of an interval with the given tails at its ends.
func (d truncatedDist) between(low, high tailPair) (mass torch.Tensor, lost torch.Tensor) {
	return massBetween(d.family, low, high)
}

// massBetween is the log probability of an interval with the given tails at its ends, computed in the tail in which it
// has the larger share. Where it underflows it is 0 in place of minus infinity, and lost says so.
func massBetween(family string, low, high tailPair) (mass torch.Tensor, lost torch.Tensor) {
	shape := broadcast(family, low.lower.Shape(), low.upper.Shape(), high.lower.Shape(), high.upper.Shape())
	wide := func(v torch.Tensor) torch.Tensor { return expandTo(v, shape) }
	up := wide(low.lower).Gt(-math.Ln2)
	near := torch.Choose(up, wide(low.upper), wide(high.lower))
	share := torch.Choose(up, wide(high.upper), wide(low.lower)).Sub(near)
	lost = torch.Of(isInfinite(near).T().MustLogicalOr(not(share.Lt(0)).T(), false))
	return fill(near.Add(logOneMinusExp(fill(share, lost, -1))), lost, 0), lost
}

// mass is the log probability of the interval.
func (d truncatedDist) mass() (mass torch.Tensor, lost torch.Tensor) {
	return d.between(d.at(d.low), d.at(d.high))
}

// LogProb is the log density.
func (d truncatedDist) LogProb(value torch.Tensor) torch.Tensor {
	outside := torch.Of(below(value, d.low).T().MustLogicalOr(above(value, d.high).T(), false))
	if of, ok := d.of.(logNormalDist); ok {
		return d.logNormal(of, value, outside)
	}
	mass, lost := d.mass()
	logp := d.inside(value, outside, innerOf(d.of), func(x torch.Tensor) torch.Tensor {
		return d.of.LogProb(x).Sub(mass)
	})
	logp = fill(logp, lost, math.Inf(-1))
	if of, ok := d.of.(ratio); ok {
		return d.flat(of, value, outside, logp)
	}
	return logp
}

// Sample inverts the distribution function, and is reparameterised: gradients are those of the quantile at fixed
// probability.
func (d truncatedDist) Sample(src *Source, sample ...int) torch.Tensor {
	dtype, device := typeOf(d.of)
	return d.ICDF(torch.Must(src.Uniform(join(sample, d.batch), dtype, device)))
}

// ICDF is the quantile function. Where d has none, it is by Newton's method on the logarithm of the nearer tail.
func (d truncatedDist) ICDF(p torch.Tensor) torch.Tensor {
	return inPieces(d, func(d truncatedDist, p ...torch.Tensor) torch.Tensor {
		low, high := d.ends()
		return atEnds(p[0], low, high, func(p torch.Tensor) torch.Tensor { return d.quantile(p.Log(), p.Neg().Log1p()) })
	}, p)
}

// quantile is the quantile at p, given as log p and log(1 − p). With the tail T of d in which it lies, it is x where
// log T(x) = t, a mean of the tails at the ends; its derivatives are those of [t − log T(x)]/(d log T/dx) at fixed x.
func (d truncatedDist) quantile(p, not1p torch.Tensor) torch.Tensor {
	low, high := d.at(d.low), d.at(d.high)
	lower := logAddExp(low.lower.Add(not1p), high.lower.Add(p))
	upper := logAddExp(low.upper.Add(not1p), high.upper.Add(p))
	down := lower.Lt(upper)
	near := torch.Choose(down, lower, upper)
	graph := hasGraph(near) || hasGraph(slices.Collect(maps.Values(paramsOf(d.of)))...)

	var x, slope torch.Tensor
	var stuck torch.Tensor // at an end, or where a tail underflows
	torch.Must(0, torch.NoGrad(func() error {
		far := logOneMinusExp(constant(near))
		lower, upper := torch.Choose(down, constant(near), far), torch.Choose(down, far, constant(near))
		x = inPieces(d, func(d truncatedDist, t ...torch.Tensor) torch.Tensor {
			from, to := d.ends()
			return d.full(quantileOf(d.of, t[0], t[1]).AtLeast(from).AtMost(to))
		}, lower, upper)
		if !graph {
			return nil
		}
		tail := nearTail(d.of, x, down)
		slope = d.of.LogProb(x).Sub(tail).Exp()
		slope = torch.Choose(down, slope, slope.Neg())
		stuck = torch.Of(isInfinite(tail).T().
			MustLogicalOr(isInfinite(near).T(), false).
			MustLogicalOr(not(slope.Abs().Gt(0)).T(), false).
			MustLogicalOr(isInfinite(slope).T(), false))
		return nil
	}))
	if !graph {
		return d.full(x)
	}
	tail := nearTail(d.of, torch.Choose(stuck, innerOf(d.of), x), down)
	change := fill(near.Sub(constant(near)).Sub(tail.Sub(constant(tail))).Div(fill(slope, stuck, 1)), stuck, 0)
	return d.full(x.Add(change))
}

// hasGraph says whether gradients flow to any of what may be parameters.
func hasGraph(params ...any) bool {
	for _, v := range params {
		switch v := v.(type) {
		case torch.Tensor:
			if !operand.IsNumber(v) && torch.Must(foreign.RequiresGrad(v.T())) {
				return true
			}
		case Distribution:
			if hasGraph(slices.Collect(maps.Values(paramsOf(v)))...) {
				return true
			}
		case []Distribution:
			for _, of := range v {
				if hasGraph(of) {
					return true
				}
			}
		}
	}
	return false
}

// CDF is (F(x) − F(low))/(F(high) − F(low)).
func (d truncatedDist) CDF(value torch.Tensor) torch.Tensor {
	return inPieces(d, func(d truncatedDist, x ...torch.Tensor) torch.Tensor { return d.cdf(x[0]) }, floated(value))
}

func (d truncatedDist) cdf(value torch.Tensor) torch.Tensor {
	from, to := d.ends()
	under, over := atMost(value, from), atLeast(value, to)
	low := d.at(d.low)
	all, _ := d.between(low, d.at(d.high))
	part, none := d.between(
		low,
		d.at(torch.Choose(torch.Of(under.T().MustLogicalOr(over.T(), false)), innerOf(d.of), floated(value))),
	)
	p := d.full(fill(part.Sub(all).Exp(), none, 0))
	return fill(fill(fill(p, torch.Of(value.T().MustIsnan(false)), math.NaN()), under, 0), over, 1)
}

// Mean is the integral of the quantile function, by the double-exponential rule; it is good to about ten
// digits, less for mixtures with modes far apart. Where the interval is not bounded and the mean of d is not
// finite, nor is this one.
func (d truncatedDist) Mean() torch.Tensor {
	mean, _ := d.moments()
	return mean
}

// Variance is by the same rule as Mean.
func (d truncatedDist) Variance() torch.Tensor {
	mean, x := d.moments()
	v := d.integrate(x.Sub(mean).Square())
	of := expandTo(d.of.Variance(), d.batch)
	unbounded, _, _ := d.open()
	infinite := torch.Of(not(torch.Of(of.T().MustIsfinite(false))).T().MustLogicalAnd(unbounded.T(), false))
	return fill(fill(v, infinite, math.Inf(1)), not(torch.Of(mean.T().MustIsfinite(false))), math.NaN())
}

// open says where the interval has no end, and where it has none on a side.
func (d truncatedDist) open() (either, low, high torch.Tensor) {
	l, h := d.ends()
	low, high = torch.Of(d.spread(l).T().MustIsinf(false)), torch.Of(d.spread(h).T().MustIsinf(false))
	return torch.Of(low.T().MustLogicalOr(high.T(), false)), low, high
}

// moments are the mean, and the quantiles at the nodes of the integral on either side of a number in the middle of d,
// where its density may have a kink.
func (d truncatedDist) moments() (mean, x torch.Tensor) {
	nodes := quantileNodes()
	p, not1p := d.column(nodes.p), d.column(nodes.not1p)
	l, l1 := d.split()
	first := d.quantile(l.Add(p), logAddExp(l1, l.Add(not1p)))
	second := d.quantile(logAddExp(l, l1.Add(p)), l1.Add(not1p))
	x = torch.Stack(0, []torch.Tensor{first, second})
	mean = d.integrate(x)
	of := expandTo(d.of.Mean(), d.batch)
	unbounded, low, high := d.open()
	infinite := torch.Of(not(torch.Of(of.T().MustIsfinite(false))).T().MustLogicalAnd(unbounded.T(), false))
	mean = fill(
		fill(mean, torch.Of(infinite.T().MustLogicalAnd(high.T(), false)), math.Inf(1)),
		torch.Of(infinite.T().MustLogicalAnd(low.T(), false)),
		math.Inf(-1),
	)
	return fill(mean, torch.Of(infinite.T().MustLogicalAnd(low.T(), false).MustLogicalAnd(high.T(), false)), math.NaN()), x
}

// split are the logarithms of the distribution function at a number in the middle of d, and of 1 minus it.
func (d truncatedDist) split() (p, not1p torch.Tensor) {
	dtype, device := typeOf(d.of)
	at := expandTo(tensorOf(innerOf(d.of), dtype, device), d.batch)
	low, high := d.ends()
	p = constant(d.CDF(at.AtLeast(low).AtMost(high)))
	return p.Log(), p.Neg().Log1p()
}

// integrate sums over the nodes of both parts.
func (d truncatedDist) integrate(x torch.Tensor) torch.Tensor {
	l, l1 := d.split()
	w := d.column(quantileNodes().weight)
	sum := func(i int) torch.Tensor {
		return torch.Of(torch.Of(x.T().MustSelect(0, int64(i), false)).Mul(w).T().MustSumDimIntlist([]int64{0},
			false, x.T().DType(),
			false))
	}
	return sum(0).Mul(l.Exp()).Add(sum(1).Mul(l1.Exp()))
}

// column is numbers along a new first dimension before the batch's.
func (d truncatedDist) column(x []float64) torch.Tensor {
	shape := make([]int, len(d.batch)+1)
	for i := range shape {
		shape[i] = 1
	}
	shape[0] = len(x)
	dtype, device := typeOf(d.of)
	return torch.Must(torch.FromSliceOn(device, dtype, x, shape...))
}

// nodesOf is a rule for integrals over (0, 1): logarithms of the nodes and of 1 minus them, and weights.
type nodesOf struct{ p, not1p, weight []float64 }

// quantileNodes is the double-exponential rule (Takahasi and Mori 1974), u = 1/(1 + exp(−π sinh t)). It bears
// logarithmic and algebraic singularities at the ends.
var quantileNodes = sync.OnceValue(func() (n nodesOf) {
	const step, last = 1. / 16, 5.5
	for t := -last; t <= last; t += step {
		y := math.Pi * math.Sinh(t)
		p, q := operand.Number(torch.Of(y).LogSigmoid()), operand.Number(torch.Of(-y).LogSigmoid())
		n.p, n.not1p = append(n.p, p), append(n.not1p, q)
		n.weight = append(n.weight, step*math.Pi*math.Cosh(t)*math.Exp(p+q))
	}
	return n
})

// Expand broadcasts the batch shape.
func (d truncatedDist) Expand(batch ...int) Distribution {
	d.base = d.expand(batch)
	d.of = d.of.Expand(batch...)
	return d
}

// Validate checks d, low and high, and that the interval has a probability that does not underflow.
func (d truncatedDist) Validate() error {
	err := cmp.Or(
		d.of.Validate(),
		d.validate("low", d.low, notNaN),
		d.validate("high", d.high, notNaN),
		d.validateAbove("high", d.low, d.high),
	)
	if err != nil {
		return err
	}
	_, lost := d.mass()
	dead, err := torch.ToSlice[float64](torch.Of(lost.T().MustTotype(gotch.Double, false)))
	if err != nil {
		return err
	}
	for i, v := range dead {
		if v != 0 {
			return &Error{d.family, "the interval", fmt.Sprintf("element %d of shape %v", i, lost.Shape()),
				"its probability is 0 to the accuracy of " + d.of.Name()}
		}
	}
	return nil
}

// Params are the base and the ends by name.
func (d truncatedDist) Params() map[string]any {
	return map[string]any{"base": d.of, "low": d.low, "high": d.high}
}
