package dist

import (
	"fmt"
	"math"
	"sync"

	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// TruncatedDist is a distribution on an interval; see [Truncated].
type TruncatedDist struct {
	base
	of        Distribution
	low, high val
}

// Truncated is the distribution of single real numbers d, which must have a CDF F, on condition that low ≤ x ≤ high. The
// ends are numbers or tensors, and may be infinite:
//
//	log p(x) = log p_d(x) − log(F(high) − F(low))
//
// The last term is computed from logarithms of the nearer tail, so that the interval may be far out in it. Those of
// [Gamma], [Chi2] and [InverseGamma] underflow below 1e-308, and a CDF that this package does not know is lost where it
// rounds to 1: there the log density is minus infinity, and Validate returns an error. Its relative error is about 1e-16
// over the share of the tail that is in the interval.
//
// [Normal], [HalfNormal] and [TruncatedNormal] become a [TruncatedNormal], [Uniform] becomes a [Uniform], and an interval
// around the support changes nothing. A gradient in the concentration of a gamma family is an error of libtorch. Discrete
// distributions have no CDF.
func Truncated(d Distribution, low, high any) Distribution {
	const family = "Truncated"
	lo, hi := param(family, "low", low), param(family, "high", high)
	if d == nil {
		panic(&Error{family, "base", "nil", "a distribution with a CDF is required"})
	}
	if !hasCDF(d) || len(d.EventShape()) != 0 || d.Support().Discrete() {
		panic(&Error{family, "base", fmt.Sprintf("%s over %v", d.Name(), d.Support()), "a distribution of single real numbers with a CDF is required"})
	}
	b := base{family: family, batch: broadcast(family, d.BatchShape(), lo.shape(), hi.shape())}
	b.checkNumber("low", lo, notNaN)
	b.checkNumber("high", hi, notNaN)
	b.checkAbove("high", lo, hi)
	from, to := bounds(d)
	if a, c := lo.max(from), hi.min(to); a.isNum() && c.isNum() && !(a.c < c.c) {
		panic(&Error{family, "the interval", fmt.Sprintf("[%v, %v]", lo.c, hi.c), fmt.Sprintf("it must have a part in the support of %s, %v", d.Name(), d.Support())})
	} else if from.isNum() && to.isNum() && a == from && c == to {
		return d
	}
	switch t := d.(type) {
	case NormalDist:
		return TruncatedNormal(t.loc, t.scale, lo, hi).Expand(b.batch...)
	case HalfNormalDist:
		return TruncatedNormal(0, t.scale, lo.max(num(0)), hi).Expand(b.batch...)
	case TruncatedNormalDist:
		return TruncatedNormal(t.loc, t.scale, lo.max(t.low), hi.min(t.high)).Expand(b.batch...)
	case UniformDist:
		return Uniform(lo.max(t.low), hi.min(t.high)).Expand(b.batch...)
	case TruncatedDist:
		return TruncatedDist{b, t.of.Expand(b.batch...), lo.max(t.low), hi.min(t.high)}
	}
	return TruncatedDist{b, d.Expand(b.batch...), lo, hi}
}

// Base is the distribution d.
func (d TruncatedDist) Base() Distribution { return d.of }

// Name says what is truncated.
func (d TruncatedDist) Name() string { return fmt.Sprintf("Truncated(%s)", d.of.Name()) }

// Support is what of the interval is in the support of d, its ends included.
func (d TruncatedDist) Support() support.Support {
	low, high := d.ends()
	return support.Support{Kind: support.KindInterval, Low: low.c, High: high.c, LowT: low.t, HighT: high.t, Closed: true}
}

// ends are those of the interval or, where they are further inside, of the support of d.
func (d TruncatedDist) ends() (low, high val) {
	low, high = bounds(d.of)
	if !low.is(math.Inf(-1)) {
		low = d.low.max(low)
	} else {
		low = d.low
	}
	if !high.is(math.Inf(1)) {
		return low, d.high.min(high)
	}
	return low, d.high
}

// tailPair are log P(X ≤ x) and log P(X > x), of d.
type tailPair struct{ lower, upper val }

// at are the tails at any x.
func (d TruncatedDist) at(x val) tailPair {
	dtype, device := typeOf(d.of)
	number := func(c float64) val { return ten(num(c).tensorOf(dtype, device)) }
	from, to := bounds(d.of)
	switch {
	case x.isNum() && from.isNum() && x.c <= from.c:
		return tailPair{number(math.Inf(-1)), number(0)}
	case x.isNum() && to.isNum() && x.c >= to.c:
		return tailPair{number(0), number(math.Inf(-1))}
	}
	lower, upper := tailsAnywhere(d.of, x.tensorOf(dtype, device))
	return tailPair{lower, upper}
}

// between is the log probability of an interval with the given tails at its ends, computed in the tail in which it has
// the larger share. Where it underflows it is 0 in place of minus infinity, and lost says so.
func (d TruncatedDist) between(low, high tailPair) (mass val, lost *ts.Tensor) {
	shape := broadcast(d.family, low.lower.shape(), low.upper.shape(), high.lower.shape(), high.upper.shape())
	wide := func(v val) val { return ten(expandTo(v.t, shape)) }
	up := wide(low.lower).t.MustGt(ts.FloatScalar(-math.Ln2), false)
	near := choose(up, wide(low.upper), wide(high.lower))
	share := choose(up, wide(high.upper), wide(low.lower)).sub(near)
	lost = isInfinite(near.t).MustLogicalOr(not(share.t.MustLt(ts.FloatScalar(0), false)), false)
	return near.add(share.fill(lost, -1).log1mexp()).fill(lost, 0), lost
}

// mass is the log probability of the interval.
func (d TruncatedDist) mass() (mass val, lost *ts.Tensor) {
	return d.between(d.at(d.low), d.at(d.high))
}

// LogProb is the log density.
func (d TruncatedDist) LogProb(value *ts.Tensor) *ts.Tensor {
	outside := below(value, d.low).MustLogicalOr(above(value, d.high), false)
	mass, lost := d.mass()
	logp := d.inside(value, outside, innerOf(d.of), func(x *ts.Tensor) val {
		return ten(d.of.LogProb(x)).sub(mass)
	})
	return ten(logp).fill(lost, math.Inf(-1)).t
}

// Sample inverts the distribution function, and is reparameterised: gradients are those of the quantile at fixed
// probability. Where d has no quantile function the inverse is found by bisection.
func (d TruncatedDist) Sample(src *Source, sample ...int64) *ts.Tensor {
	dtype, device := typeOf(d.of)
	u := ten(torch.Must(src.Uniform(join(sample, d.batch), dtype, device)))
	return d.quantile(u.log(), u.neg().log1p())
}

// ICDF is the quantile function.
func (d TruncatedDist) ICDF(p *ts.Tensor) *ts.Tensor {
	return d.quantile(ten(p).log(), ten(p).neg().log1p())
}

// quantile is the quantile at p, given as log p and log(1 − p). With the tail T of d in which it lies, it is x where
// log T(x) = t, a mean of the tails at the ends; its derivatives are those of [t − log T(x)]/(d log T/dx) at fixed x.
func (d TruncatedDist) quantile(p, not1p val) *ts.Tensor {
	low, high := d.at(d.low), d.at(d.high)
	lower := logAddExp(low.lower.add(not1p), high.lower.add(p))
	upper := logAddExp(low.upper.add(not1p), high.upper.add(p))
	down := lower.t.MustLtTensor(upper.t, false)
	near := choose(down, lower, upper)

	var x, slope val
	var stuck *ts.Tensor // at an end, or where a tail underflows
	torch.Must(0, torch.NoGrad(func() error {
		far := constant(near).log1mexp()
		x = d.invert(choose(down, constant(near), far), choose(down, far, constant(near)))
		from, to := d.ends()
		x = x.max(from).min(to)
		tail := d.nearTail(x.t, down)
		slope = ten(d.of.LogProb(x.t)).sub(tail).exp()
		slope = choose(down, slope, slope.neg())
		stuck = isInfinite(tail.t).MustLogicalOr(isInfinite(near.t), false).MustLogicalOr(not(slope.abs().t.MustGt(ts.FloatScalar(0), false)), false).
			MustLogicalOr(isInfinite(slope.t), false)
		return nil
	}))
	tail := d.nearTail(choose(stuck, innerOf(d.of), x).t, down)
	change := near.sub(constant(near)).sub(tail.sub(constant(tail))).div(slope.fill(stuck, 1)).fill(stuck, 0)
	return d.full(x.add(change).t)
}

// nearTail is one of the tails of d for each element.
func (d TruncatedDist) nearTail(x, down *ts.Tensor) val {
	lower, upper := tailsAnywhere(d.of, x)
	return choose(down, lower, upper)
}

// invert is the x at which d has the given tails.
func (d TruncatedDist) invert(lower, upper val) val {
	if f, ok := d.of.(tailInverse); ok {
		return f.fromTails(lower, upper)
	}
	if f, ok := d.of.(ICDFer); ok {
		return ten(f.ICDF(lower.exp().t))
	}
	// By bisection in s, where x = a + sinh s: it has the same relative resolution at all distances from a.
	const most, steps = 700, 64
	from, to := bounds(d.of)
	a := num(0)
	if !from.is(math.Inf(-1)) {
		a = from
	} else if !to.is(math.Inf(1)) {
		a = to
	}
	low, high := ten(lower.t.MustFullLike(ts.FloatScalar(-most), false)), ten(lower.t.MustFullLike(ts.FloatScalar(most), false))
	down := lower.t.MustLtTensor(upper.t, false)
	target := choose(down, lower, upper.neg())
	var x val
	for range steps {
		s := low.add(high).mul(num(0.5))
		x = ten(s.t.MustSinh(false)).add(a)
		l, u := tailsAnywhere(d.of, x.t)
		short := choose(down, l, u.neg()).t.MustLtTensor(target.t, false)
		low, high = choose(short, s, low), choose(short, high, s)
	}
	return x
}

// CDF is (F(x) − F(low))/(F(high) − F(low)).
func (d TruncatedDist) CDF(value *ts.Tensor) *ts.Tensor {
	from, to := d.ends()
	under, over := atMost(value, from), atLeast(value, to)
	low := d.at(d.low)
	all, _ := d.between(low, d.at(d.high))
	part, none := d.between(low, d.at(choose(under.MustLogicalOr(over, false), innerOf(d.of), floated(value))))
	p := ten(d.full(part.sub(all).exp().fill(none, 0).t))
	return p.fill(under, 0).fill(over, 1).t
}

// Mean is the integral of the quantile function, by the double-exponential rule; it is good to about ten digits, less for
// mixtures with modes far apart. Where the interval is not bounded and the mean of d is not finite, nor is this one.
func (d TruncatedDist) Mean() *ts.Tensor {
	mean, _ := d.moments()
	return mean.t
}

// Variance is by the same rule as Mean.
func (d TruncatedDist) Variance() *ts.Tensor {
	mean, x := d.moments()
	v := d.integrate(x.sub(mean).square())
	of := ten(expandTo(d.of.Variance(), d.batch))
	unbounded, _, _ := d.open()
	infinite := not(of.t.MustIsfinite(false)).MustLogicalAnd(unbounded, false)
	return v.fill(infinite, math.Inf(1)).fill(not(mean.t.MustIsfinite(false)), math.NaN()).t
}

// open says where the interval has no end, and where it has none on a side.
func (d TruncatedDist) open() (either, low, high *ts.Tensor) {
	l, h := d.ends()
	low, high = d.spread(l).MustIsinf(false), d.spread(h).MustIsinf(false)
	return low.MustLogicalOr(high, false), low, high
}

// moments are the mean, and the quantiles at the nodes of the integral on either side of a number in the middle of d, where
// its density may have a kink.
func (d TruncatedDist) moments() (mean, x val) {
	nodes := quantileNodes()
	p, not1p := d.column(nodes.p), d.column(nodes.not1p)
	l, l1 := d.split()
	first := d.quantile(l.add(p), logAddExp(l1, l.add(not1p)))
	second := d.quantile(logAddExp(l, l1.add(p)), l1.add(not1p))
	x = ten(ts.MustStack([]*ts.Tensor{first, second}, 0))
	mean = d.integrate(x)
	of := ten(expandTo(d.of.Mean(), d.batch))
	unbounded, low, high := d.open()
	infinite := not(of.t.MustIsfinite(false)).MustLogicalAnd(unbounded, false)
	mean = mean.fill(infinite.MustLogicalAnd(high, false), math.Inf(1)).fill(infinite.MustLogicalAnd(low, false), math.Inf(-1))
	return mean.fill(infinite.MustLogicalAnd(low, false).MustLogicalAnd(high, false), math.NaN()), x
}

// split are the logarithms of the distribution function at a number in the middle of d, and of 1 minus it.
func (d TruncatedDist) split() (p, not1p val) {
	dtype, device := typeOf(d.of)
	at := ten(expandTo(innerOf(d.of).tensorOf(dtype, device), d.batch))
	low, high := d.ends()
	p = constant(ten(d.CDF(at.max(low).min(high).t)))
	return p.log(), p.neg().log1p()
}

// integrate sums over the nodes of both parts.
func (d TruncatedDist) integrate(x val) val {
	l, l1 := d.split()
	w := d.column(quantileNodes().weight)
	sum := func(i int64) val {
		return ten(ten(x.t.MustSelect(0, i, false)).mul(w).t.MustSumDimIntlist([]int64{0}, false, x.t.DType(), false))
	}
	return sum(0).mul(l.exp()).add(sum(1).mul(l1.exp()))
}

// column is numbers along a new first dimension before the batch's.
func (d TruncatedDist) column(x []float64) val {
	shape := make([]int64, len(d.batch)+1)
	for i := range shape {
		shape[i] = 1
	}
	shape[0] = int64(len(x))
	dtype, device := typeOf(d.of)
	return ten(torch.Must(torch.FromSliceOn(device, dtype, x, shape...)))
}

// nodesOf is a rule for integrals over (0, 1): logarithms of the nodes and of 1 minus them, and weights.
type nodesOf struct{ p, not1p, weight []float64 }

// quantileNodes is the double-exponential rule (Takahasi and Mori 1974), u = 1/(1 + exp(−π sinh t)). It bears
// logarithmic and algebraic singularities at the ends.
var quantileNodes = sync.OnceValue(func() (n nodesOf) {
	const step, last = 1. / 16, 5.5
	for t := -last; t <= last; t += step {
		y := math.Pi * math.Sinh(t)
		p, q := logSigmoid(y), logSigmoid(-y)
		n.p, n.not1p = append(n.p, p), append(n.not1p, q)
		n.weight = append(n.weight, step*math.Pi*math.Cosh(t)*math.Exp(p+q))
	}
	return n
})

// Expand broadcasts the batch shape.
func (d TruncatedDist) Expand(batch ...int64) Distribution {
	d.base = d.expand(batch)
	d.of = d.of.Expand(batch...)
	return d
}

// Validate checks d, low and high, and that the interval has a probability that does not underflow.
func (d TruncatedDist) Validate() error {
	err := first(d.of.Validate(), d.validate("low", d.low, notNaN), d.validate("high", d.high, notNaN), d.validateAbove("high", d.low, d.high))
	if err != nil {
		return err
	}
	_, lost := d.mass()
	dead, err := torch.ToSlice[float64](lost.MustTotype(gotch.Double, false))
	if err != nil {
		return err
	}
	for i, v := range dead {
		if v != 0 {
			return &Error{d.family, "the interval", fmt.Sprintf("element %d of shape %v", i, ten(lost).shape()), "its probability is 0 to the accuracy of " + d.of.Name()}
		}
	}
	return nil
}

// Params are the base and the ends by name.
func (d TruncatedDist) Params() map[string]any {
	return map[string]any{"base": d.of, "low": d.low.any(), "high": d.high.any()}
}
