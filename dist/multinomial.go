package dist

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// MultinomialDist is the multinomial distribution; see [Multinomial] and [MultinomialLogits].
type MultinomialDist struct {
	base
	total         val
	probs, logits val
	fromLogits    bool
}

// Multinomial counts how often each of the categories comes up in total trials. probs is a tensor of shape batch + [C] of
// numbers ≥ 0, which are divided by their sum; total is a whole number ≥ 0, or a tensor of them that broadcasts against
// the batch. Values are vectors of C counts with sum total:
//
//	log p(x) = log total! + Σᵢ (xᵢ log pᵢ − log xᵢ!),  with 0 log 0 = 0
func Multinomial(total, probs any) MultinomialDist {
	return newMultinomial("Multinomial", total, "probs", probs)
}

// MultinomialLogits is the multinomial distribution from logarithms of numbers proportional to the probabilities.
func MultinomialLogits(total, logits any) MultinomialDist {
	return newMultinomial("MultinomialLogits", total, "logits", logits)
}

func newMultinomial(family string, total any, name string, weights any) MultinomialDist {
	n, w := param(family, "total", total), param(family, name, weights)
	batch, c := lastDim(family, name, w)
	d := MultinomialDist{base: base{family: family, batch: broadcast(family, n.shape(), batch), event: []int64{c}}, total: n}
	if name == "logits" {
		d.logits, d.fromLogits = w, true
	} else {
		d.probs = w
	}
	d.checkNumber("total", n, wholeCount)
	return d
}

// Support is the vectors of counts with sum total.
func (d MultinomialDist) Support() support.Support { return support.Counts(d.total.any()) }

// trials is the total, with a dimension for the categories, in the type of x.
func (d MultinomialDist) trials(x *ts.Tensor) val {
	if d.total.isNum() {
		return d.total
	}
	return ten(d.total.t.MustTotype(x.DType(), false).MustUnsqueeze(-1, false))
}

// LogProb is the log mass: the product of Poisson(xᵢ; n pᵢ), over Poisson(n; n).
func (d MultinomialDist) LogProb(value *ts.Tensor) *ts.Tensor {
	value = floating(value, d.probs, d.logits)
	n := d.trials(value)
	x, not := whole(value, num(math.Inf(1)))
	some := sumLast(not.MustTotype(x.DType(), false), 1).MustGt(ts.FloatScalar(0), false)
	wrong := sumLast(value, 1).MustNeTensor(d.total.tensorOf(like(ten(x))), false)
	outside := some.MustLogicalOr(wrong, false)
	var terms poissonParts
	if d.fromLogits {
		terms = logPoissonLog(x, ten(logSoftmax(d.logits.t)).add(n.log()))
	} else {
		terms = logPoisson(x, ten(normalised(d.probs.t)).mul(n))
	}
	// As a tensor also where it is a number: the same function then rounds in the same way as that of a count equal to it.
	all := d.total.tensorOf(like(ten(x))).MustTotype(x.DType(), false)
	return d.masked(ten(d.full(ten(sumLast(terms.peak, 1)).sub(ten(peakTensor(all))).sub(ten(sumLast(terms.deviance, 1))).t)), outside)
}

// prob is the probabilities.
func (d MultinomialDist) prob() *ts.Tensor {
	if d.fromLogits {
		return d.logits.t.MustSoftmax(-1, d.logits.t.DType(), false)
	}
	return normalised(d.probs.t)
}

// Sample draws vectors of counts, in the parameter's type.
func (d MultinomialDist) Sample(src *Source, sample ...int64) *ts.Tensor {
	p := d.prob()
	n := d.total.tensorOf(like(ten(p))).MustTotype(p.DType(), false)
	shape := join(sample, d.batch)
	return torch.Must(src.Multinomial(expandTo(n, shape), expandTo(p, join(shape, d.event))))
}

// Mean is n p.
func (d MultinomialDist) Mean() *ts.Tensor {
	p := d.prob()
	return d.spread(ten(p).mul(d.trials(p)))
}

// Variance is n p(1 − p), for each category by itself.
func (d MultinomialDist) Variance() *ts.Tensor {
	p := d.prob()
	return d.spread(ten(p).mul(num(1).sub(ten(p))).mul(d.trials(p)))
}

// Expand broadcasts the batch shape.
func (d MultinomialDist) Expand(batch ...int64) Distribution {
	d.base = d.expand(batch)
	return d
}

// Validate checks the parameters.
func (d MultinomialDist) Validate() error {
	total := d.validate("total", d.total, wholeCount)
	if d.fromLogits {
		return first(total, validateLogits(d.base, d.logits))
	}
	return first(total, validateWeights(d.base, d.probs))
}

// Params are the parameters by name.
func (d MultinomialDist) Params() map[string]any {
	if d.fromLogits {
		return map[string]any{"total": d.total.any(), "logits": d.logits.any()}
	}
	return map[string]any{"total": d.total.any(), "probs": d.probs.any()}
}

// normalised divides the vectors along the last dimension by their sums.
func normalised(w *ts.Tensor) *ts.Tensor {
	return w.MustDiv(w.MustSumDimIntlist([]int64{-1}, true, w.DType(), false), false)
}

// logSoftmax normalises logarithms of weights along the last dimension.
func logSoftmax(l *ts.Tensor) *ts.Tensor { return l.MustLogSoftmax(-1, l.DType(), false) }

// validateWeights checks that vectors of weights are not negative and have a positive sum.
func validateWeights(b base, probs val) error {
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
func validateLogits(b base, logits val) error {
	if err := b.validate("logits", logits, belowInfinity); err != nil {
		return err
	}
	return eachVector(logits, func(v []float64) error {
		for _, x := range v {
			if !math.IsInf(x, -1) {
				return nil
			}
		}
		return &Error{b.family, "logits", fmt.Sprint(v), "one of the categories must have a logit greater than minus infinity"}
	})
}

// eachVector reads the vectors along the last dimension.
func eachVector(v val, f func([]float64) error) error {
	values, err := torch.ToSlice[float64](v.t)
	if err != nil {
		return err
	}
	shape := v.shape()
	n := int(shape[len(shape)-1])
	for i := 0; i+n <= len(values); i += n {
		if err := f(values[i : i+n]); err != nil {
			return err
		}
	}
	return nil
}
