package dist

import (
	"cmp"
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/dist/internal/operand"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// multinomialDist is the multinomial distribution; see [Multinomial] and [MultinomialLogits].
type multinomialDist struct {
	base
	total         torch.Tensor
	probs, logits torch.Tensor
	fromLogits    bool
}

// Multinomial counts how often each of the categories comes up in total trials. probs is a tensor of shape batch + [C]
// of numbers ≥ 0, which are divided by their sum; total is a whole number ≥ 0, or a tensor of them that broadcasts
// against the batch. Values are vectors of C counts with sum total:
//
//	log p(x) = log total! + Σᵢ (xᵢ log pᵢ − log xᵢ!),  with 0 log 0 = 0
func Multinomial(total, probs any) (made Distribution) {
	defer orMisfit(&made)
	return newMultinomial("Multinomial", total, "probs", probs)
}

// MultinomialLogits is the multinomial distribution from logarithms of numbers proportional to the probabilities.
func MultinomialLogits(total, logits any) (made Distribution) {
	defer orMisfit(&made)
	return newMultinomial("MultinomialLogits", total, "logits", logits)
}

func newMultinomial(family string, total any, name string, weights any) multinomialDist {
	n, w := param(family, "total", total), param(family, name, weights)
	batch, c := lastDim(family, name, w)
	d := multinomialDist{
		base:  base{family: family, batch: broadcast(family, n.Shape(), batch), event: []int{c}},
		total: n,
	}
	if name == "logits" {
		d.logits, d.fromLogits = w, true
	} else {
		d.probs = w
	}
	d.checkNumber("total", n, wholeCount)
	return d
}

// Support is the vectors of counts with sum total.
func (d multinomialDist) Support() support.Support { return support.Counts(d.total) }

// trials is the total, with a dimension for the categories, in the type of x.
func (d multinomialDist) trials(x torch.Tensor) torch.Tensor {
	if operand.IsNumber(d.total) {
		return d.total
	}
	return torch.Of(d.total.T().MustTotype(x.T().DType(), false)).Unsqueeze(-1)
}

// LogProb is the log mass: the product of Poisson(xᵢ; n pᵢ), over Poisson(n; n).
func (d multinomialDist) LogProb(value torch.Tensor) torch.Tensor {
	value = floating(value, d.probs, d.logits)
	n := d.trials(value)
	x, not := whole(value, torch.Of(math.Inf(1)))
	some := operand.SumLast(torch.Of(not.T().MustTotype(x.T().DType(), false)), 1).Gt(0)
	wrong := torch.Of(operand.SumLast(value, 1).T().MustNeTensor(alike(d.total, x).T(), false))
	outside := torch.Of(some.T().MustLogicalOr(wrong.T(), false))
	var terms poissonParts
	if d.fromLogits {
		terms = logPoissonLog(x, logSoftmax(d.logits).Add(n.Log()))
	} else {
		terms = logPoisson(x, normalised(d.probs).Mul(n))
	}
	// As a tensor also where it is a number: the same function then rounds in the same way as that of a count equal to it.
	all := torch.Of(alike(d.total, x).T().MustTotype(x.T().DType(), false))
	peaks, deviances := operand.SumLast(terms.peak, 1), operand.SumLast(terms.deviance, 1)
	return d.masked(d.full(peaks.Sub(peakTensor(all)).Sub(deviances)), outside)
}

// prob is the probabilities.
func (d multinomialDist) prob() torch.Tensor {
	if d.fromLogits {
		return torch.Of(d.logits.T().MustSoftmax(-1, d.logits.T().DType(), false))
	}
	return normalised(d.probs)
}

// Sample draws vectors of counts, in the parameter's type.
func (d multinomialDist) Sample(src *Source, sample ...int) torch.Tensor {
	p := d.prob()
	n := torch.Of(alike(d.total, p).T().MustTotype(p.T().DType(), false))
	shape := join(sample, d.batch)
	return torch.Must(src.Multinomial(expandTo(n, shape), expandTo(p, join(shape, d.event))))
}

// Mean is n p.
func (d multinomialDist) Mean() torch.Tensor {
	p := d.prob()
	return d.spread(p.Mul(d.trials(p)))
}

// Variance is n p(1 − p), for each category by itself.
func (d multinomialDist) Variance() torch.Tensor {
	p := d.prob()
	return d.spread(p.Mul(torch.Of(1).Sub(p)).Mul(d.trials(p)))
}

// Expand broadcasts the batch shape.
func (d multinomialDist) Expand(batch ...int) Distribution {
	d.base = d.expand(batch)
	return d
}

// Validate checks the parameters.
func (d multinomialDist) Validate() error {
	total := d.validate("total", d.total, wholeCount)
	if d.fromLogits {
		return cmp.Or(total, validateLogits(d.base, d.logits))
	}
	return cmp.Or(total, validateWeights(d.base, d.probs))
}

// Params are the parameters by name.
func (d multinomialDist) Params() map[string]any {
	if d.fromLogits {
		return map[string]any{"total": d.total, "logits": d.logits}
	}
	return map[string]any{"total": d.total, "probs": d.probs}
}

// normalised divides the vectors along the last dimension by their sums.
func normalised(w torch.Tensor) torch.Tensor {
	return w.Div(torch.Of(w.T().MustSumDimIntlist([]int64{-1}, true, w.T().DType(), false)))
}

// others are, for each of positive numbers along the last dimension, the sum of the others.
func others(w torch.Tensor) torch.Tensor { return before(w).Add(after(w)) }

// before and after are, for each of positive numbers along the last dimension, the sum of those before and after it.
func before(w torch.Tensor) torch.Tensor {
	shape := w.Shape()
	sum := torch.Of(w.T().MustCumsum(-1, w.T().DType(), false))
	return torch.Cat(-1, w.Slice(-1, 0, 1).Mul(0), sum.Slice(-1, 0, shape[len(shape)-1]-1))
}

func after(w torch.Tensor) torch.Tensor {
	flip := func(w torch.Tensor) torch.Tensor { return torch.Of(w.T().MustFlip([]int64{-1}, false)) }
	return flip(before(flip(w)))
}

// logSoftmax normalises logarithms of weights along the last dimension.
func logSoftmax(l torch.Tensor) torch.Tensor {
	log := torch.Of(l.T().MustLogSoftmax(-1, l.T().DType(), false))
	return sure(log, log.Exp())
}

// logNormalised are the logarithms of weights that are divided by their sum.
func logNormalised(w torch.Tensor) torch.Tensor {
	p := normalised(w)
	return sure(logProbs(p), p)
}

// sure is the logarithm of probabilities p along the last dimension. That of one near 1 is by the sum of the others.
func sure(log, p torch.Tensor) torch.Tensor {
	top := p.Gt(0.9)
	rest := operand.SumLast(fill(p, top, 0), 1).Unsqueeze(-1)
	return torch.Choose(top, rest.AtMost(0.5).Neg().Log1p(), log)
}

// validateWeights checks that vectors of weights are not negative and have a positive sum.
func validateWeights(b base, probs torch.Tensor) error {
	if err := b.validate("probs", probs, nonNegative); err != nil {
		return err
	}
	return eachVector(probs, func(v []float64) error {
		for _, x := range v {
			if x > 0 {
				return nil
			}
		}
		return &Error{b.family, "probs", fmt.Sprint(v), "one of the categories must have a probability greater than 0"}
	})
}

// validateLogits checks that vectors of logarithms of weights are below infinity, and not all minus infinity.
func validateLogits(b base, logits torch.Tensor) error {
	if err := b.validate("logits", logits, belowInfinity); err != nil {
		return err
	}
	return eachVector(logits, func(v []float64) error {
		for _, x := range v {
			if !math.IsInf(x, -1) {
				return nil
			}
		}
		return &Error{b.family, "logits", fmt.Sprint(v),
			"one of the categories must have a logit greater than minus infinity"}
	})
}

// eachVector reads the vectors along the last dimension.
func eachVector(v torch.Tensor, f func([]float64) error) error {
	values, err := torch.ToSlice[float64](v)
	if err != nil {
		return err
	}
	shape := v.Shape()
	n := shape[len(shape)-1]
	for i := 0; i+n <= len(values); i += n {
		if err := f(values[i : i+n]); err != nil {
			return err
		}
	}
	return nil
}
