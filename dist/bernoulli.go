package dist

import (
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/dist/internal/operand"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// bernoulliDist is the Bernoulli distribution; see [Bernoulli] and [BernoulliLogits].
type bernoulliDist struct {
	base
	probs, logits torch.Tensor
	fromLogits    bool
}

var bernoulliLogitsFamily = &family{"BernoulliLogits", support.Boolean,
	func(b base) Distribution { return bernoulliDist{b, torch.Tensor{}, b.at(0), true} },
	[]parameter{{"logits", logitDomain}}}

var bernoulliFamily = &family{"Bernoulli", support.Boolean,
	func(b base) Distribution { return bernoulliDist{base: b, probs: b.at(0)} },
	[]parameter{{"probs", probability}}}

// Bernoulli is 1 with probability probs, from 0 to 1, else 0:
//
//	log p(x) = x log p + (1 − x) log(1 − p),  with 0 log 0 = 0
func Bernoulli(probs any) Distribution { return bernoulliFamily.with(probs) }

// BernoulliLogits is the Bernoulli distribution from its log-odds l = log(p/(1 − p)), any real number:
//
//	log p(x) = −log(1 + exp(−l)) for x = 1,  −log(1 + exp(l)) for x = 0
//
// It is exact to rounding at any l.
func BernoulliLogits(logits any) (made Distribution) {
	defer orMisfit(&made)
	return bernoulliLogits("BernoulliLogits", logits)
}

func bernoulliLogits(name string, logits any) bernoulliDist {
	return bernoulliLogitsFamily.of(bernoulliLogitsFamily.base(name, logits)).(bernoulliDist)
}

// LogProb is the log mass.
func (d bernoulliDist) LogProb(value torch.Tensor) torch.Tensor {
	if d.fromLogits {
		x, outside := whole(floating(value, d.logits), torch.Of(1))
		return d.masked(x.Mul(2).Sub(1).Mul(d.logits).LogSigmoid(), outside)
	}
	// One of the two logarithms is log 1, whatever p is: neither it nor its gradient is ever 0 times infinity.
	in, outside := whole(floating(value, d.probs), torch.Of(1))
	x := in
	not := torch.Of(x.T().MustRsubScalar(ts.FloatScalar(1), false))
	none := dense(d.probs).Eq(not) // what has probability 0
	p := fill(d.probs, none, 0.5)
	one, zero := p.Mul(x).Add(not).Log(), p.Mul(not).Neg().Log1p()
	return d.masked(one.Add(zero), either(outside, none))
}

// prob is the probability of 1.
func (d bernoulliDist) prob() torch.Tensor {
	if d.fromLogits {
		return d.logits.Sigmoid()
	}
	return d.probs
}

// Sample draws 0 or 1, in the parameter's type.
func (d bernoulliDist) Sample(src *Source, sample ...int) torch.Tensor {
	dtype, device := like(d.probs, d.logits)
	// float32 would not resolve small probabilities
	u := torch.Must(src.Uniform(join(sample, d.batch), gotch.Double, device))
	p := d.prob()
	if operand.IsNumber(p) {
		return torch.Of(u.Lt(operand.Number(p)).T().MustTotype(dtype, false))
	}
	return torch.Of(u.Lt(p).T().MustTotype(dtype, false))
}

// EnumerateSupport lists 0 and 1.
func (d bernoulliDist) EnumerateSupport() torch.Tensor {
	dtype, device := like(d.probs, d.logits)
	return enumerate(2, len(d.batch), dtype, device)
}

// Mean is p.
func (d bernoulliDist) Mean() torch.Tensor { return d.spread(d.prob()) }

// Variance is p(1 − p).
func (d bernoulliDist) Variance() torch.Tensor {
	if d.fromLogits {
		return d.spread(d.logits.Sigmoid().Mul(d.logits.Neg().Sigmoid()))
	}
	return d.spread(d.probs.Mul(torch.Of(1).Sub(d.probs)))
}
