package dist

import (
	"github.com/sugarme/gotch"

	"github.com/kelvin-ppl/kelvin/dist/internal/operand"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// categoricalDist is the categorical distribution; see [Categorical] and [CategoricalLogits].
type categoricalDist struct {
	base
	categories    int
	probs, logits torch.Tensor
	fromLogits    bool
}

// Categorical is one of the categories 0, …, C − 1. probs is a tensor of shape batch + [C] of numbers ≥ 0, which are
// divided by their sum:
//
//	log p(x) = log probs[x] − log Σᵢ probs[i]
//
// A value is an index, as an integer or a floating-point number.
func Categorical(probs any) (made Distribution) {
	defer orMisfit(&made)
	return newCategorical("Categorical", "probs", probs)
}

// CategoricalLogits is the categorical distribution from logarithms of numbers proportional to the probabilities:
//
//	log p(x) = logits[x] − log Σᵢ exp(logits[i])
func CategoricalLogits(logits any) (made Distribution) {
	defer orMisfit(&made)
	return newCategorical("CategoricalLogits", "logits", logits)
}

func newCategorical(family, name string, weights any) categoricalDist {
	w := param(family, name, weights)
	batch, c := lastDim(family, name, w)
	d := categoricalDist{base: base{family: family, batch: batch}, categories: c}
	if name == "logits" {
		d.logits, d.fromLogits = w, true
	} else {
		d.probs = w
	}
	return d
}

// Support is 0, …, C − 1.
func (d categoricalDist) Support() support.Support {
	return support.IntegerInterval(0, d.categories-1)
}

// LogProb is the log mass.
func (d categoricalDist) LogProb(value torch.Tensor) torch.Tensor {
	value, outside := whole(floating(value, d.logits, d.probs), torch.Of(float64(d.categories-1)))
	if d.fromLogits {
		return d.masked(pick(d.family, logSoftmax(d.logits), value), outside)
	}
	return d.masked(pick(d.family, logNormalised(d.probs), value), outside)
}

// EnumerateLogProb is the log mass of all categories, of shape [C] + batch: LogProb of EnumerateSupport without the
// look-up, and without what gives a logarithm next to 0 its digits: masses that are summed do not need them.
func (d categoricalDist) EnumerateLogProb() torch.Tensor {
	var all torch.Tensor
	if d.fromLogits {
		all = torch.Of(d.logits.T().MustLogSoftmax(-1, d.logits.T().DType(), false))
	} else {
		all = logProbs(normalised(d.probs))
	}
	return torch.Of(all.T().MustMovedimInt(-1, 0, false))
}

// prob is the probabilities.
func (d categoricalDist) prob() torch.Tensor {
	if d.fromLogits {
		return torch.Of(d.logits.T().MustSoftmax(-1, d.logits.T().DType(), false))
	}
	return normalised(d.probs)
}

// Sample draws indices, as int64: the largest of log p + Gumbel noise.
func (d categoricalDist) Sample(src *Source, sample ...int) torch.Tensor {
	_, device := like(d.probs, d.logits)
	logits := d.logits
	if !d.fromLogits {
		logits = d.probs.Log()
	}
	return inRows(sample, d.batch, d.categories, func(sample []int) torch.Tensor {
		u := torch.Must(src.Uniform(join(sample, d.batch, []int{d.categories}), gotch.Double, device))
		return torch.Of(logits.Sub(u.Log().Neg().Log()).T().MustArgmax([]int64{-1}, false, false))
	})
}

// EnumerateSupport lists the indices, as int64.
func (d categoricalDist) EnumerateSupport() torch.Tensor {
	_, device := like(d.probs, d.logits)
	return enumerate(d.categories, len(d.batch), gotch.Int64, device)
}

// Mean is the mean of the index.
func (d categoricalDist) Mean() torch.Tensor {
	mean, _ := indexMoments(d.prob())
	return d.spread(mean)
}

// Variance is the variance of the index.
func (d categoricalDist) Variance() torch.Tensor {
	_, variance := indexMoments(d.prob())
	return d.spread(variance)
}

// indexMoments are the mean and variance of an index with the given probabilities, along the last dimension.
func indexMoments(probs torch.Tensor) (mean, variance torch.Tensor) {
	shape := probs.Shape()
	dtype, device := like(probs)
	index := enumerate(shape[len(shape)-1], 0, dtype, device)
	m := operand.SumLast(probs.Mul(index), 1)
	off := index.Sub(m.Unsqueeze(-1))
	return m, operand.SumLast(off.Square().Mul(probs), 1)
}

// Expand broadcasts the batch shape.
func (d categoricalDist) Expand(batch ...int) Distribution {
	d.base = d.expand(batch)
	return d
}

// Validate checks the parameter.
func (d categoricalDist) Validate() error {
	if d.fromLogits {
		return validateLogits(d.base, d.logits)
	}
	return validateWeights(d.base, d.probs)
}

// Params is the parameter by name.
func (d categoricalDist) Params() map[string]any {
	if d.fromLogits {
		return map[string]any{"logits": d.logits}
	}
	return map[string]any{"probs": d.probs}
}
