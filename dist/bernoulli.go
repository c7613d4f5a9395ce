package dist

import (
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// BernoulliDist is the Bernoulli distribution; see [Bernoulli] and [BernoulliLogits].
type BernoulliDist struct {
	base
	probs, logits val
	fromLogits    bool
}

// Bernoulli is 1 with probability probs, from 0 to 1, else 0:
//
//	log p(x) = x log p + (1 − x) log(1 − p),  with 0 log 0 = 0
func Bernoulli(probs any) BernoulliDist {
	p := param("Bernoulli", "probs", probs)
	d := BernoulliDist{base: newBase("Bernoulli", p), probs: p}
	d.checkNumber("probs", p, probability)
	return d
}

// BernoulliLogits is the Bernoulli distribution from its log-odds l = log(p/(1 − p)), any real number:
//
//	log p(x) = −log(1 + exp(−l)) for x = 1,  −log(1 + exp(l)) for x = 0
//
// It is exact to rounding at any l.
func BernoulliLogits(logits any) BernoulliDist { return bernoulliLogits("BernoulliLogits", logits) }

func bernoulliLogits(family string, logits any) BernoulliDist {
	l := param(family, "logits", logits)
	d := BernoulliDist{base: newBase(family, l), logits: l, fromLogits: true}
	d.checkNumber("logits", l, logitDomain)
	return d
}

// Support is 0 and 1.
func (d BernoulliDist) Support() support.Support { return support.Boolean }

// LogProb is the log mass.
func (d BernoulliDist) LogProb(value *ts.Tensor) *ts.Tensor {
	if d.fromLogits {
		x, outside := whole(floating(value, d.logits), num(1))
		return d.masked(ten(x).mul(num(2)).sub(num(1)).mul(d.logits).logSigmoid(), outside)
	}
	// One of the two logarithms is log 1, whatever p is: neither it nor its gradient is ever 0 times infinity.
	in, outside := whole(floating(value, d.probs), num(1))
	x := ten(in)
	not := ten(x.t.MustRsubScalar(ts.FloatScalar(1), false))
	one, zero := d.probs.mul(x).add(not).log(), d.probs.mul(not).neg().log1p()
	return d.masked(one.add(zero), outside)
}

// prob is the probability of 1.
func (d BernoulliDist) prob() val {
	if d.fromLogits {
		return d.logits.sigmoid()
	}
	return d.probs
}

// Sample draws 0 or 1, in the parameter's type.
func (d BernoulliDist) Sample(src *Source, sample ...int64) *ts.Tensor {
	dtype, device := like(d.probs, d.logits)
	u := torch.Must(src.Uniform(join(sample, d.batch), gotch.Double, device)) // float32 would not resolve small probabilities
	p := d.prob()
	if p.isNum() {
		return u.MustLt(ts.FloatScalar(p.c), false).MustTotype(dtype, false)
	}
	return u.MustLtTensor(p.t, false).MustTotype(dtype, false)
}

// EnumerateSupport lists 0 and 1.
func (d BernoulliDist) EnumerateSupport() *ts.Tensor {
	dtype, device := like(d.probs, d.logits)
	return enumerate(2, len(d.batch), dtype, device)
}

// Mean is p.
func (d BernoulliDist) Mean() *ts.Tensor { return d.spread(d.prob()) }

// Variance is p(1 − p).
func (d BernoulliDist) Variance() *ts.Tensor {
	if d.fromLogits {
		return d.spread(d.logits.sigmoid().mul(d.logits.neg().sigmoid()))
	}
	return d.spread(d.probs.mul(num(1).sub(d.probs)))
}

// Expand broadcasts the batch shape.
func (d BernoulliDist) Expand(batch ...int64) Distribution {
	d.base = d.expand(batch)
	return d
}

// Validate checks the parameter.
func (d BernoulliDist) Validate() error {
	if d.fromLogits {
		return d.validate("logits", d.logits, logitDomain)
	}
	return d.validate("probs", d.probs, probability)
}

// Params is the parameter by name.
func (d BernoulliDist) Params() map[string]any {
	if d.fromLogits {
		return map[string]any{"logits": d.logits.any()}
	}
	return map[string]any{"probs": d.probs.any()}
}
