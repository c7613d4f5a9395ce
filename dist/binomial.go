package dist

import (
	"github.com/kelvin-ppl/kelvin/dist/internal/operand"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// binomialDist is the binomial distribution; see [Binomial] and [BinomialLogits].
type binomialDist struct {
	base
	total         torch.Tensor
	probs, logits torch.Tensor
	fromLogits    bool
}

var binomialLogitsFamily = &family{"BinomialLogits", itsOwn,
	func(b base) Distribution { return binomialDist{b, b.at(0), torch.Tensor{}, b.at(1), true} },
	[]parameter{{"total", wholeCount}, {"logits", logitDomain}}}

var binomialFamily = &family{"Binomial", itsOwn,
	func(b base) Distribution { return binomialDist{base: b, total: b.at(0), probs: b.at(1)} },
	[]parameter{{"total", wholeCount}, {"probs", probability}}}

// Binomial counts the successes among total trials, a whole number ≥ 0, each with probability probs, from 0 to 1:
//
//	log p(x) = log(total choose x) + x log p + (total − x) log(1 − p),  with 0 log 0 = 0
//
// It is computed by Loader's saddle-point expansion (2000) and loses no digits at large totals.
func Binomial(total, probs any) Distribution { return binomialFamily.with(total, probs) }

// BinomialLogits is the binomial distribution from the log-odds l = log(p/(1 − p)).
func BinomialLogits(total, logits any) Distribution { return binomialLogitsFamily.with(total, logits) }

// Support is 0, 1, …, total.
func (d binomialDist) Support() support.Support { return support.IntegerInterval(0, d.total) }

// LogProb is the log mass: Binomial(x) = Poisson(x; np) Poisson(n − x; n(1−p)) / Poisson(n; n).
func (d binomialDist) LogProb(value torch.Tensor) torch.Tensor {
	x, n := floating(value, d.probs, d.logits), d.total
	if !operand.IsNumber(n) {
		n = torch.Of(n.T().MustTotype(x.T().DType(), false))
	}
	in, outside := whole(x, n)
	x = in
	shape := broadcast(d.family, x.Shape(), d.batch)
	at := stack(shape, x, x, n.Sub(x), n)
	if d.fromLogits {
		l := n.Log()
		logMean := stack(shape, x, d.logits.LogSigmoid().Add(l), d.logits.Neg().LogSigmoid().Add(l), l)
		return d.masked(logPoissonLog(at, logMean).quotient(2), outside)
	}
	mean := stack(shape, x, d.probs.Mul(n), torch.Of(1).Sub(d.probs).Mul(n), n)
	return d.masked(logPoisson(at, mean).quotient(2), outside)
}

// prob is the probability of a success, and that of a failure.
func (d binomialDist) prob() (success, failure torch.Tensor) {
	if d.fromLogits {
		return d.logits.Sigmoid(), d.logits.Neg().Sigmoid()
	}
	return d.probs, torch.Of(1).Sub(d.probs)
}

// Sample draws counts, in the parameter's type.
func (d binomialDist) Sample(src *Source, sample ...int) torch.Tensor {
	shape := join(sample, d.batch)
	p, _ := d.prob()
	prob := filled(p, shape, d.probs, d.logits)
	return binomialCounts(src, d.total, prob, shape)
}

// binomialCounts draws counts of total trials of probability prob, of a shape, in the type of prob.
func binomialCounts(src *Source, total, prob torch.Tensor, shape []int) torch.Tensor {
	n := torch.Of(alike(total, prob).T().MustTotype(prob.T().DType(), false))
	return torch.Must(src.Binomial(expandTo(n, shape), prob))
}

// EnumerateSupport lists 0, …, total, which must be a number.
func (d binomialDist) EnumerateSupport() torch.Tensor {
	return d.upTo(d.total, d.probs, d.logits)
}

// upTo lists 0, …, total, a number, in the type of the other parameters.
func (b base) upTo(total torch.Tensor, others ...torch.Tensor) torch.Tensor {
	if !operand.IsNumber(total) {
		panic(&Error{b.family, "total", "a tensor", "the support can be enumerated where it is a number"})
	}
	dtype, device := like(others...)
	return enumerate(int(operand.Number(total))+1, len(b.batch), dtype, device)
}

// Mean is np.
func (d binomialDist) Mean() torch.Tensor {
	p, _ := d.prob()
	return d.spread(p.Mul(d.total))
}

// Variance is np(1 − p).
func (d binomialDist) Variance() torch.Tensor {
	p, q := d.prob()
	return d.spread(p.Mul(q).Mul(d.total))
}
