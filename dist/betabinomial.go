package dist

import (
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// BetaBinomialDist is the beta-binomial distribution; see [BetaBinomial].
type BetaBinomialDist struct {
	base
	total, a, b val
}

// BetaBinomial is the binomial distribution of total trials, a whole number ≥ 0, whose probability is itself
// Beta(concentration1, concentration0), both > 0 (concentration1 goes with the successes):
//
//	log p(x) = log(total choose x) + log B(x + a, total − x + b) − log B(a, b)
//
// for concentrations a and b, with the beta function B(u, v) = Γ(u)Γ(v)/Γ(u + v).
func BetaBinomial(total, concentration1, concentration0 any) BetaBinomialDist {
	const family = "BetaBinomial"
	n, a, b := param(family, "total", total), param(family, "concentration1", concentration1), param(family, "concentration0", concentration0)
	d := BetaBinomialDist{base: newBase(family, n, a, b), total: n, a: a, b: b}
	d.checkNumber("total", n, wholeCount)
	d.checkNumber("concentration1", a, positive)
	d.checkNumber("concentration0", b, positive)
	return d
}

// Support is 0, 1, …, total.
func (d BetaBinomialDist) Support() support.Support {
	return support.IntegerInterval(0, d.total.any())
}

// LogProb is the log mass, as a quotient of negative binomials with any common probability p of a success:
//
//	BetaBinomial(x) = NB(x; a, p) NB(n − x; b, p) / NB(n; a + b, p)
//
// With p = n/(n + a + b) the last is at its mean, and no deviances cancel. Each is a product of Poisson probabilities as
// in [NegativeBinomialDist.LogProb]. What remains is the rounding of logarithms, 1e-14 in absolute terms; an
// outcome that is certain but for a large concentration has a formula without it.
func (d BetaBinomialDist) LogProb(value *ts.Tensor) *ts.Tensor {
	x, n := ten(floating(value, d.a, d.b)), d.total
	if n.t != nil {
		n = ten(n.t.MustTotype(x.t.DType(), false))
	}
	in, outside := whole(x.t, n)
	x = ten(in)
	y, c := n.sub(x), d.a.add(d.b)
	sx, sy, sn := x.add(d.a), y.add(d.b), c.add(n)
	p, q := n.div(sn), c.div(sn)
	shape := broadcast(d.family, x.shape(), d.batch)
	at := stack(shape, x.t, x, d.a, y, d.b, sn, sx, sy, n, c)
	mean := stack(shape, x.t, sx.mul(p), sx.mul(q), sy.mul(p), sy.mul(q), sn, sx, sy, n, c)
	ratio := d.a.div(sx).mul(d.b.div(sy)).div(q)
	general := logPoisson(at, ten(mean)).quotient(5).add(ratio.log())
	return d.masked(d.nearlyCertain(shape, x, y, n, general), outside)
}

// certainFrom is from which concentration on an outcome of only successes, or failures, has a formula of its own.
const certainFrom = 1000

// nearlyCertain replaces log p(n) where a is large, which may be as good as 0, by
//
//	−[(a − ½) log(1 − w) + n log(1 + b/(a + n)) + b log(1 + n/(a + b)) + Δ],  w = nb/((a + n)(a + b))
//
// and log p(0) where b is large by the same with a and b exchanged. Δ = δ(a + b + n) − δ(a + n) − δ(a + b) + δ(a) is of Stirling's
// remainders; what 1/(12 s) adds to it is written out.
func (d BetaBinomialDist) nearlyCertain(shape []int64, x, y, n, general val) val {
	wide := func(v val) val { return ten(filled(v, shape, x)) }
	is := func(v, left val) *ts.Tensor {
		return atLeast(wide(v).t, num(certainFrom)).MustLogicalAnd(wide(left).t.MustEq(ts.FloatScalar(0), false), false)
	}
	successes, failures := is(d.a, y), is(d.b, x)
	all := successes.MustLogicalOr(failures, false)
	a := choose(successes, wide(d.a), wide(d.b)).fill(not(all), certainFrom)
	b := choose(successes, wide(d.b), wide(d.a))
	n = wide(n)
	an, ab, s := a.add(n), a.add(b), a.add(b).add(n)
	rest := func(v val) val { // of the remainder, beyond 1/(12 v)
		i := v.recip()
		return i.square().mul(num(1. / 1260)).sub(num(1. / 360)).mul(i.square()).mul(i)
	}
	first := n.div(an).mul(b.div(ab))
	delta := first.mul(a.add(s)).div(a).div(s).mul(num(1. / 12)).add(rest(s)).sub(rest(an)).sub(rest(ab)).add(rest(a))
	log := a.sub(num(0.5)).mul(first.neg().log1p()).add(n.mul(b.div(an).log1p())).add(b.mul(n.div(ab).log1p()))
	return choose(all, log.add(delta).neg(), ten(expandTo(general.t, shape)))
}

// Sample draws a probability, by two gamma numbers, and then a count.
func (d BetaBinomialDist) Sample(src *Source, sample ...int64) *ts.Tensor {
	shape := join(sample, d.batch)
	// The logarithms do not underflow at small concentrations.
	a := torch.Must(src.LogGamma(filled(d.a, shape, d.a, d.b)))
	b := torch.Must(src.LogGamma(filled(d.b, shape, d.a, d.b)))
	prob := a.MustSub(b, false).MustSigmoid(false).MustDetach(false)
	n := ten(d.total.tensorOf(like(ten(prob))))
	return torch.Must(src.Binomial(expandTo(n.t.MustTotype(prob.DType(), false), shape), prob))
}

// EnumerateSupport lists 0, …, total, which must be a number.
func (d BetaBinomialDist) EnumerateSupport() *ts.Tensor {
	if !d.total.isNum() {
		panic(&Error{d.family, "total", "a tensor", "the support can be enumerated where it is a number"})
	}
	dtype, device := like(d.a, d.b)
	return enumerate(int(d.total.c)+1, len(d.batch), dtype, device)
}

// Mean is n a/(a + b).
func (d BetaBinomialDist) Mean() *ts.Tensor { return d.spread(d.a.div(d.a.add(d.b)).mul(d.total)) }

// Variance is n a b (a + b + n)/((a + b)² (a + b + 1)).
func (d BetaBinomialDist) Variance() *ts.Tensor {
	c := d.a.add(d.b)
	return d.spread(d.a.div(c).mul(d.b.div(c)).mul(c.add(d.total)).div(c.add(num(1))).mul(d.total))
}

// Expand broadcasts the batch shape.
func (d BetaBinomialDist) Expand(batch ...int64) Distribution {
	d.base = d.expand(batch)
	return d
}

// Validate checks the parameters.
func (d BetaBinomialDist) Validate() error {
	return first(d.validate("total", d.total, wholeCount), d.validate("concentration1", d.a, positive),
		d.validate("concentration0", d.b, positive))
}

// Params are the parameters by name.
func (d BetaBinomialDist) Params() map[string]any {
	return map[string]any{"total": d.total.any(), "concentration1": d.a.any(), "concentration0": d.b.any()}
}
