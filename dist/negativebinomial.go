package dist

import (
	"math"

	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// negativeBinomialDist is the negative binomial distribution; see
// [NegativeBinomial], [NegativeBinomialProbs] and [NegativeBinomialLogits].
type negativeBinomialDist struct {
	base
	// the dispersion, or total count: the shape of the gamma distribution that mixes Poisson distributions
	size   torch.Tensor
	kind   string // which of the others the second parameter is: "mean", "probs", "logits"
	second torch.Tensor
}

// Below 1 only: at 1 the mean is infinite.
var failureProbs = check{"it must be at least 0 and less than 1", func(v float64) bool { return v >= 0 && v < 1 }}

var (
	negativeBinomialFamily       = negativeBinomials("NegativeBinomial", "dispersion", "mean", nonNegative)
	negativeBinomialProbsFamily  = negativeBinomials("NegativeBinomialProbs", "total", "probs", failureProbs)
	negativeBinomialLogitsFamily = negativeBinomials("NegativeBinomialLogits", "total", "logits", belowInfinity)
)

// negativeBinomials are those with such names of the size and of the second parameter.
func negativeBinomials(name, size, second string, allowed check) *family {
	return &family{name, support.NonnegativeInteger,
		func(b base) Distribution { return negativeBinomialDist{b, b.at(0), second, b.at(1)} },
		[]parameter{{size, positive}, {second, allowed}}}
}

// NegativeBinomial is the negative binomial distribution with mean ≥ 0 and dispersion > 0, a Poisson distribution whose
// rate is gamma distributed with that shape and mean (Stan's neg_binomial_2). Its variance is mean + mean²/dispersion:
//
//	log p(x) = log Γ(x + φ) − log Γ(φ) − log x! + φ log(φ/(φ + μ)) + x log(μ/(φ + μ))
//
// for mean μ and dispersion φ. It is computed by Loader's saddle-point expansion (2000), and tends to the Poisson
// distribution without losing digits as the dispersion grows.
func NegativeBinomial(mean, dispersion any) Distribution {
	return negativeBinomialFamily.with(dispersion, mean)
}

// NegativeBinomialProbs counts successes of probability 0 ≤ probs < 1 until there are total failures, total > 0 being
// any real number:
//
//	log p(x) = log Γ(x + total) − log Γ(total) − log x! + total log(1 − probs) + x log probs
func NegativeBinomialProbs(total, probs any) Distribution {
	return negativeBinomialProbsFamily.with(total, probs)
}

// NegativeBinomialLogits is [NegativeBinomialProbs] from the log-odds of a success; its mean is total exp(logits).
func NegativeBinomialLogits(total, logits any) Distribution {
	return negativeBinomialLogitsFamily.with(total, logits)
}

// LogProb is the log mass. With the probability p of a success, q = 1 − p and s = x + r,
//
//	NB(x; r, p) = r/s Poisson(x; s p) Poisson(r; s q) / Poisson(s; s)
func (d negativeBinomialDist) LogProb(value torch.Tensor) torch.Tensor {
	in, outside := whole(floating(value, d.second, d.size), torch.Of(math.Inf(1)))
	x, r := in, d.size
	s := x.Add(r)
	shape := broadcast(d.family, x.Shape(), d.batch)
	at := stack(shape, x, x, r, s)
	var terms poissonParts
	switch d.kind {
	case "mean":
		t := d.second.Add(r)
		terms = logPoisson(at, stack(shape, x, s.Mul(d.second.Div(t)), r.Mul(s.Div(t)), s))
	case "probs":
		terms = logPoisson(at, stack(shape, x, s.Mul(d.second), s.Mul(torch.Of(1).Sub(d.second)), s))
	default:
		l := s.Log()
		terms = logPoissonLog(at, stack(shape, x, l.Add(d.second.LogSigmoid()), l.Add(d.second.Neg().LogSigmoid()), l))
	}
	logp := terms.quotient(2).Add(r.Div(s).Log())
	return d.masked(torch.Choose(expandTo(x.Eq(0), shape), d.none(), logp), outside)
}

// none is the log mass at 0, r log q, beside which the terms of the quotient are large where r or p is small.
func (d negativeBinomialDist) none() torch.Tensor {
	switch d.kind {
	case "mean":
		return d.second.Div(d.size).Log1p().Mul(d.size).Neg()
	case "probs":
		return d.second.Neg().Log1p().Mul(d.size)
	}
	return d.second.Softplus().Mul(d.size).Neg()
}

// relative is without the failures where the probability of a success has become 1 by rounding. It is taken from that
// at 1/2, where the logarithm has log ½ for each success too much.
func (d negativeBinomialDist) relative(value torch.Tensor) torch.Tensor {
	if d.kind != "probs" {
		return d.LogProb(value)
	}
	certain := dense(d.second).Eq(1)
	d.second = fill(d.second, certain, 0.5)
	return d.LogProb(value).Add(torch.Choose(certain, value.Mul(math.Ln2), 0))
}

// mean is the mean.
func (d negativeBinomialDist) mean() torch.Tensor {
	switch d.kind {
	case "mean":
		return d.second
	case "probs":
		return d.size.Mul(d.second).Div(torch.Of(1).Sub(d.second))
	}
	return d.size.Mul(d.second.Exp())
}

// Sample draws a gamma-distributed rate, and then a count with that rate.
func (d negativeBinomialDist) Sample(src *Source, sample ...int) torch.Tensor {
	size := filled(d.size, join(sample, d.batch), d.second, d.size)
	rate := torch.Must(src.Gamma(size)).Mul(d.mean().Div(d.size))
	return torch.Must(src.Poisson(torch.Of(rate.T().MustDetach(false))))
}

// Mean is the mean.
func (d negativeBinomialDist) Mean() torch.Tensor { return d.spread(d.mean()) }

// Variance is mean + mean²/dispersion.
func (d negativeBinomialDist) Variance() torch.Tensor {
	m := d.mean()
	return d.spread(m.Add(m.Square().Div(d.size)))
}
