package dist

import (
	"math"

	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// CategoricalDist is the categorical distribution; see [Categorical] and [CategoricalLogits].
type CategoricalDist struct {
	base
	categories    int64
	probs, logits val
	fromLogits    bool
}

// Categorical is one of the categories 0, …, C − 1. probs is a tensor of shape batch + [C] of numbers ≥ 0, which are
// divided by their sum:
//
//	log p(x) = log probs[x] − log Σᵢ probs[i]
//
// A value is an index, as an integer or a floating-point number.
func Categorical(probs any) CategoricalDist {
	return newCategorical("Categorical", "probs", probs)
}

// CategoricalLogits is the categorical distribution from logarithms of numbers proportional to the probabilities:
//
//	log p(x) = logits[x] − log Σᵢ exp(logits[i])
func CategoricalLogits(logits any) CategoricalDist {
	return newCategorical("CategoricalLogits", "logits", logits)
}

func newCategorical(family, name string, weights any) CategoricalDist {
	w := param(family, name, weights)
	batch, c := lastDim(family, name, w)
	d := CategoricalDist{base: base{family: family, batch: batch}, categories: c}
	if name == "logits" {
		d.logits, d.fromLogits = w, true
	} else {
		d.probs = w
	}
	return d
}

// Support is 0, …, C − 1.
func (d CategoricalDist) Support() support.Support {
	return support.IntegerInterval(0, d.categories-1)
}

// LogProb is the log mass.
func (d CategoricalDist) LogProb(value *ts.Tensor) *ts.Tensor {
	value, outside := whole(value, num(float64(d.categories-1)))
	if d.fromLogits {
		return d.masked(ten(pick(d.family, logSoftmax(d.logits.t), value)), outside)
	}
	// The look-up comes before the logarithm: probabilities of 0 elsewhere have no gradient, nor has one that is looked up.
	p := ten(pick(d.family, normalised(d.probs.t), value))
	zero := p.t.MustEq(ts.FloatScalar(0), false)
	return d.masked(p.fill(zero, 1).log().fill(zero, math.Inf(-1)), outside)
}

// prob is the probabilities.
func (d CategoricalDist) prob() *ts.Tensor {
	if d.fromLogits {
		return d.logits.t.MustSoftmax(-1, d.logits.t.DType(), false)
	}
	return normalised(d.probs.t)
}

// Sample draws indices, as int64: the largest of log p + Gumbel noise.
func (d CategoricalDist) Sample(src *Source, sample ...int64) *ts.Tensor {
	_, device := like(d.probs, d.logits)
	logits := d.logits
	if !d.fromLogits {
		logits = d.probs.log()
	}
	u := torch.Must(src.Uniform(join(sample, d.batch, []int64{d.categories}), gotch.Double, device))
	return logits.sub(ten(u).log().neg().log()).t.MustArgmax([]int64{-1}, false, false)
}

// EnumerateSupport lists the indices, as int64.
func (d CategoricalDist) EnumerateSupport() *ts.Tensor {
	_, device := like(d.probs, d.logits)
	return enumerate(int(d.categories), len(d.batch), gotch.Int64, device)
}

// Mean is the mean of the index.
func (d CategoricalDist) Mean() *ts.Tensor {
	mean, _ := indexMoments(d.prob())
	return d.spread(mean)
}

// Variance is the variance of the index.
func (d CategoricalDist) Variance() *ts.Tensor {
	_, variance := indexMoments(d.prob())
	return d.spread(variance)
}

// indexMoments are the mean and variance of an index with the given probabilities, along the last dimension.
func indexMoments(probs *ts.Tensor) (mean, variance val) {
	shape := ten(probs).shape()
	dtype, device := like(ten(probs))
	index := enumerate(int(shape[len(shape)-1]), 0, dtype, device)
	m := ten(sumLast(probs.MustMul(index, false), 1))
	off := ten(index).sub(ten(m.t.MustUnsqueeze(-1, false)))
	return m, ten(sumLast(off.square().mul(ten(probs)).t, 1))
}

// Expand broadcasts the batch shape.
func (d CategoricalDist) Expand(batch ...int64) Distribution {
	d.base = d.expand(batch)
	return d
}

// Validate checks the parameter.
func (d CategoricalDist) Validate() error {
	if d.fromLogits {
		return validateLogits(d.base, d.logits)
	}
	return validateWeights(d.base, d.probs)
}

// Params is the parameter by name.
func (d CategoricalDist) Params() map[string]any {
	if d.fromLogits {
		return map[string]any{"logits": d.logits.any()}
	}
	return map[string]any{"probs": d.probs.any()}
}
