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
// in [NegativeBinomialDist.LogProb]. What remains is the rounding of logarithms: 1e-14 in absolute terms.
func (d BetaBinomialDist) LogProb(value *ts.Tensor) *ts.Tensor {
	x, n := ten(floating(value, d.a, d.b)), d.total
	if n.t != nil {
		n = ten(floating(n.t, x))
	}
	y, c := n.sub(x), d.a.add(d.b)
	sx, sy, sn := x.add(d.a), y.add(d.b), c.add(n)
	p, q := n.div(sn), c.div(sn)
	shape := broadcast(d.family, x.shape(), d.batch)
	at := stack(shape, x.t, x, d.a, y, d.b, sn, sx, sy, n, c)
	mean := stack(shape, x.t, sx.mul(p), sx.mul(q), sy.mul(p), sy.mul(q), sn, sx, sy, n, c)
	ratio := d.a.div(sx).mul(d.b.div(sy)).div(q)
	return d.full(logPoisson(at, ten(mean)).quotient(5).add(ratio.log()).t)
}

// Sample draws a probability, by two gamma numbers, and then a count.
func (d BetaBinomialDist) Sample(src *Source, sample ...int64) *ts.Tensor {
	shape := join(sample, d.batch)
	// The logarithms do not underflow at small concentrations.
	a := torch.Must(src.LogGamma(filled(d.a, shape, d.a, d.b)))
	b := torch.Must(src.LogGamma(filled(d.b, shape, d.a, d.b)))
	prob := a.MustSub(b, false).MustSigmoid(false).MustDetach(false)
	n := ten(d.total.tensorOf(like(ten(prob))))
	return torch.Must(src.Binomial(expandTo(floating(n.t, ten(prob)), shape), prob))
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
