package dist

import (
	"github.com/kelvin-ppl/kelvin/dist/internal/operand"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// betaBinomialDist is the beta-binomial distribution; see [BetaBinomial].
type betaBinomialDist struct {
	base
	total, a, b torch.Tensor
}

var betaBinomialFamily = &family{"BetaBinomial", itsOwn,
	func(b base) Distribution { return betaBinomialDist{b, b.at(0), b.at(1), b.at(2)} },
	[]parameter{{"total", wholeCount}, {"concentration1", positive}, {"concentration0", positive}}}

// BetaBinomial is the binomial distribution of total trials, a whole number ≥ 0, whose probability is itself
// Beta(concentration1, concentration0), both > 0 (concentration1 goes with the successes):
//
//	log p(x) = log(total choose x) + log B(x + a, total − x + b) − log B(a, b)
//
// for concentrations a and b, with the beta function B(u, v) = Γ(u)Γ(v)/Γ(u + v).
func BetaBinomial(total, concentration1, concentration0 any) Distribution {
	return betaBinomialFamily.with(total, concentration1, concentration0)
}

// Support is 0, 1, …, total.
func (d betaBinomialDist) Support() support.Support {
	return support.IntegerInterval(0, d.total)
}

// LogProb is the log mass, as a quotient of negative binomials with any common probability p of a success:
//
//	BetaBinomial(x) = NB(x; a, p) NB(n − x; b, p) / NB(n; a + b, p)
//
// With p = n/(n + a + b) the last is at its mean, and no deviances cancel. Each is a product of Poisson probabilities
// as in [negativeBinomialDist.LogProb]. What remains is the rounding of logarithms, 1e-14 in absolute terms; an outcome
// that is certain but for a large concentration has a formula without it.
func (d betaBinomialDist) LogProb(value torch.Tensor) torch.Tensor {
	x, n := floating(value, d.a, d.b), d.total
	if !operand.IsNumber(n) {
		n = torch.Of(n.T().MustTotype(x.T().DType(), false))
	}
	in, outside := whole(x, n)
	x = in
	y, c := n.Sub(x), d.a.Add(d.b)
	sx, sy, sn := x.Add(d.a), y.Add(d.b), c.Add(n)
	p, q := n.Div(sn), c.Div(sn)
	shape := broadcast(d.family, x.Shape(), d.batch)
	at := stack(shape, x, x, d.a, y, d.b, sn, sx, sy, n, c)
	mean := stack(shape, x, sx.Mul(p), sx.Mul(q), sy.Mul(p), sy.Mul(q), sn, sx, sy, n, c)
	ratio := share(d.a, x).Mul(share(d.b, y)).Div(q)
	general := logPoisson(at, mean).quotient(5).Add(logProbs(ratio))
	return d.masked(d.nearlyCertain(shape, x, y, n, general), outside)
}

// share is a/(a + x), and 1 at x = 0, where a may have become 0 by rounding.
func share(a, x torch.Tensor) torch.Tensor {
	none := x.Eq(0)
	return fill(a.Div(torch.Choose(none, 1, x.Add(a))), none, 1)
}

// certainFrom is from which concentration on an outcome of only successes, or failures, has a formula of its own.
const certainFrom = 1000

// nearlyCertain replaces log p(n) where a is large, which may be as good as 0, by
//
//	−[(a − ½) log(1 − w) + n log(1 + b/(a + n)) + b log(1 + n/(a + b)) + Δ],  w = nb/((a + n)(a + b))
//
// and log p(0) where b is large by the same with a and b exchanged. Δ = δ(a + b + n) − δ(a + n) − δ(a + b) + δ(a) is of
// Stirling's remainders; what 1/(12 s) adds to it is written out.
func (d betaBinomialDist) nearlyCertain(shape []int, x, y, n, general torch.Tensor) torch.Tensor {
	wide := func(v torch.Tensor) torch.Tensor { return filled(v, shape, x) }
	is := func(v, left torch.Tensor) torch.Tensor {
		return torch.Of(atLeast(wide(v), torch.Of(certainFrom)).T().MustLogicalAnd(wide(left).Eq(0).T(), false))
	}
	successes, failures := is(d.a, y), is(d.b, x)
	all := torch.Of(successes.T().MustLogicalOr(failures.T(), false))
	a := fill(torch.Choose(successes, wide(d.a), wide(d.b)), not(all), certainFrom)
	b := torch.Choose(successes, wide(d.b), wide(d.a))
	n = wide(n)
	an, ab, s := a.Add(n), a.Add(b), a.Add(b).Add(n)
	rest := func(v torch.Tensor) torch.Tensor { // of the remainder, beyond 1/(12 v)
		i := v.Reciprocal()
		return i.Square().Mul(1. / 1260).Sub(1. / 360).Mul(i.Square()).Mul(i)
	}
	first := n.Div(an).Mul(b.Div(ab))
	delta := first.Mul(a.Add(s)).Div(a).Div(s).Mul(1. / 12).Add(rest(s)).Sub(rest(an)).Sub(rest(ab)).Add(rest(a))
	log := a.Sub(0.5).Mul(first.Neg().Log1p()).Add(n.Mul(b.Div(an).Log1p())).Add(b.Mul(n.Div(ab).Log1p()))
	return torch.Choose(all, log.Add(delta).Neg(), expandTo(general, shape))
}

// Sample draws a probability, by two gamma numbers, and then a count.
func (d betaBinomialDist) Sample(src *Source, sample ...int) torch.Tensor {
	shape := join(sample, d.batch)
	// The logarithms do not underflow at small concentrations.
	a := torch.Must(src.LogGamma(filled(d.a, shape, d.a, d.b)))
	b := torch.Must(src.LogGamma(filled(d.b, shape, d.a, d.b)))
	prob := torch.Of(a.Sub(b).Sigmoid().T().MustDetach(false))
	return binomialCounts(src, d.total, prob, shape)
}

// EnumerateSupport lists 0, …, total, which must be a number.
func (d betaBinomialDist) EnumerateSupport() torch.Tensor {
	return d.upTo(d.total, d.a, d.b)
}

// Mean is n a/(a + b).
func (d betaBinomialDist) Mean() torch.Tensor { return d.spread(d.a.Div(d.a.Add(d.b)).Mul(d.total)) }

// Variance is n a b (a + b + n)/((a + b)² (a + b + 1)).
func (d betaBinomialDist) Variance() torch.Tensor {
	c := d.a.Add(d.b)
	return d.spread(d.a.Div(c).Mul(d.b.Div(c)).Mul(c.Add(d.total)).Div(c.Add(1)).Mul(d.total))
}
