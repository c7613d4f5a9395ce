package dist

import (
	"fmt"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// MixtureDist is a mixture of distributions of any families; see [Mixture].
type MixtureDist struct {
	base
	mixing     CategoricalDist
	components []Distribution
	support    support.Support
}

// Mixture is a finite mixture, the component summed out:
//
//	log p(x) = log Σᵢ exp(log wᵢ + log pᵢ(x))
//
// The weights w are a tensor of shape batch + [K] or a []float64, of numbers ≥ 0, which are divided by their sum, as
// [Categorical] takes them; or a CategoricalDist, as of [CategoricalLogits]. The K components have one event shape, and batch
// shapes that broadcast. A component of weight 0 changes nothing, whatever its density is.
//
// The components are all continuous or all discrete. Where their supports differ, that of the mixture is the smallest
// interval around them all, and the density is 0 in its gaps; supports that are not intervals must be the same. For
// counts with more zeros see [ZeroInflated].
func Mixture(probs any, components ...Distribution) MixtureDist {
	const family = "Mixture"
	if len(components) == 0 {
		panic(&Error{family, "components", "empty", "at least one distribution is required"})
	}
	d := MixtureDist{mixing: mixing(family, probs)}
	if int(d.mixing.categories) != len(components) {
		panic(&Error{family, "probs", fmt.Sprintf("of %d weights", d.mixing.categories), fmt.Sprintf("there are %d components", len(components))})
	}
	shapes := [][]int64{d.mixing.batch}
	supports := make([]support.Support, len(components))
	for i, c := range components {
		name := fmt.Sprintf("component %d", i)
		if c == nil {
			panic(&Error{family, name, "nil", "a distribution is required"})
		}
		if got, want := c.EventShape(), components[0].EventShape(); !slices.Equal(got, want) {
			panic(&Error{family, name, fmt.Sprintf("%s, with event shape %v", c.Name(), got), fmt.Sprintf("that of component 0, %s, is %v", components[0].Name(), want)})
		}
		shapes, supports[i] = append(shapes, c.BatchShape()), c.Support()
	}
	d.base = base{family: family, batch: broadcast(family, shapes...), event: components[0].EventShape()}
	d.support = hull(family, components, supports)
	for _, c := range components {
		d.components = append(d.components, c.Expand(d.batch...))
	}
	return d
}

// mixing is the distribution of the component.
func mixing(family string, probs any) CategoricalDist {
	switch w := probs.(type) {
	case CategoricalDist:
		return w
	case []float64:
		if len(w) == 0 {
			panic(&Error{family, "probs", "empty", "a weight for each component is required"})
		}
		d := newCategorical(family, "probs", torch.Must(torch.FromSlice(w)))
		if err := d.Validate(); err != nil {
			panic(err)
		}
		return d
	}
	return newCategorical(family, "probs", probs)
}

// hull is the common support of components, or the smallest interval around theirs.
func hull(family string, components []Distribution, all []support.Support) support.Support {
	out := all[0]
	for i, s := range all[1:] {
		if out == s {
			continue
		}
		a, aok := span(out)
		b, bok := span(s)
		if !aok || !bok || a.Discrete() != b.Discrete() || a.Extra != b.Extra {
			panic(&Error{family, fmt.Sprintf("component %d", i+1), fmt.Sprintf("%s over %v", components[i+1].Name(), s),
				fmt.Sprintf("it cannot be mixed with %s over %v", components[0].Name(), all[0])})
		}
		low, high := edge(a.Low, a.LowT).min(edge(b.Low, b.LowT)), edge(a.High, a.HighT).max(edge(b.High, b.HighT))
		out = support.Support{Kind: a.Kind, Low: low.c, High: high.c, LowT: low.t, HighT: high.t, Closed: a.Closed || b.Closed, Extra: a.Extra}
		if out.Kind == support.KindInterval && low.is(math.Inf(-1)) && high.is(math.Inf(1)) {
			out = support.Real.Independent(out.Extra)
		}
	}
	return out
}

// span is a support of single numbers as an interval.
func span(s support.Support) (support.Support, bool) {
	switch s.Kind {
	case support.KindReal:
		return support.Support{Kind: support.KindInterval, Low: math.Inf(-1), High: math.Inf(1), Extra: s.Extra}, true
	case support.KindBoolean:
		return support.Support{Kind: support.KindInteger, High: 1, Extra: s.Extra}, true
	case support.KindInterval, support.KindInteger:
		return s, true
	}
	return s, false
}

// edge is an end of a support.
func edge(c float64, t *ts.Tensor) val {
	if t != nil {
		return ten(t)
	}
	return num(c)
}

// Support is that of the components, or the smallest interval around theirs.
func (d MixtureDist) Support() support.Support { return d.support }

// LogProb is the log density.
func (d MixtureDist) LogProb(value *ts.Tensor) *ts.Tensor {
	return d.full(d.mixing.mix(d.each(func(c Distribution) *ts.Tensor { return c.LogProb(value) }, -1)))
}

// each stacks something of every component along a new dimension.
func (d MixtureDist) each(f func(c Distribution) *ts.Tensor, dim int64) *ts.Tensor {
	all := make([]*ts.Tensor, len(d.components))
	for i, c := range d.components {
		all[i] = f(c)
	}
	return ts.MustStack(all, dim)
}

// mix is log Σ w exp(l) over the last dimension. From weights it is m + log Σ w exp(l − m), where m is the largest log w + l: the derivative
// in a weight, also in one of 0, is then exp(l)/Σ w exp(l) without further ado. Only of components of weight 0 the exponent can be large: it is cut
// off where it would overflow.
func (d CategoricalDist) mix(l *ts.Tensor) *ts.Tensor {
	if d.fromLogits {
		return logSumExp(ten(logSoftmax(d.logits.t)).add(ten(l)))
	}
	w := normalised(d.probs.t)
	limit := 700.
	if l.DType() == gotch.Float {
		limit = 80
	}
	zero := w.MustEq(ts.FloatScalar(0), false) // its component may be infinite
	m := ten(l.MustDetach(false)).add(ten(w.MustDetach(false)).log()).fill(zero, math.Inf(-1)).t.MustAmax([]int64{-1}, true, false)
	m = ten(m).fill(isInfinite(m), 0).t
	e := ten(l).sub(ten(m)).min(num(limit)).exp()
	var sum *ts.Tensor
	if len(ten(w).shape()) == 1 && w.DType() == l.DType() {
		sum = e.t.MustMatmul(w, false)
	} else {
		sum = sumLast(e.mul(ten(w)).t, 1)
	}
	none := sum.MustEq(ts.FloatScalar(0), false)
	return ten(sum).fill(none, 1).log().add(ten(m.MustSqueezeDim(-1, false))).fill(none, math.Inf(-1)).t
}

// logSumExp is over the last dimension. Terms of minus infinity have no gradient; of them only, so has the sum.
// (libtorch's has NaN there.)
func logSumExp(a val) *ts.Tensor {
	m := ten(a.t.MustDetach(false).MustAmax([]int64{-1}, true, false))
	m = m.fill(isInfinite(m.t), 0)
	sum := ten(sumLast(a.sub(m).exp().t, 1))
	none := sum.t.MustEq(ts.FloatScalar(0), false)
	return sum.fill(none, 1).log().add(ten(m.t.MustSqueezeDim(-1, false))).fill(none, math.Inf(-1)).t
}

// Sample draws a component for each draw and then of it. Gradients flow to the components, where they are
// reparameterised, but not through the choice to the weights.
func (d MixtureDist) Sample(src *Source, sample ...int64) *ts.Tensor {
	index := d.mixing.Expand(d.batch...).Sample(src, sample...)
	for range d.event {
		index = index.MustUnsqueeze(-1, false)
	}
	out := d.components[0].Sample(src, sample...)
	for i, c := range d.components[1:] {
		x := floating(c.Sample(src, sample...), ten(out))
		out = where(index.MustEq(ts.IntScalar(int64(i+1)), false), ten(x), ten(floating(out, ten(x))))
	}
	return out
}

// Mean is Σ wᵢ mᵢ.
func (d MixtureDist) Mean() *ts.Tensor {
	mean, _ := d.moments(false)
	return d.spread(mean)
}

// Variance is Σ wᵢ (vᵢ + (mᵢ − m)²).
func (d MixtureDist) Variance() *ts.Tensor {
	_, variance := d.moments(true)
	return d.spread(variance)
}

func (d MixtureDist) moments(second bool) (mean, variance val) {
	at := int64(len(d.batch))
	means := d.each(func(c Distribution) *ts.Tensor { return c.Mean() }, at)
	var variances *ts.Tensor
	if second {
		variances = d.each(func(c Distribution) *ts.Tensor { return c.Variance() }, at)
	}
	return d.mixing.moments(means, variances, len(d.event))
}

// moments are those of the mixture, from those of the components in the dimension before the event's. Where a weight is 0
// the moments may be infinite.
func (d CategoricalDist) moments(means, variances *ts.Tensor, event int) (mean, variance val) {
	w := d.prob()
	for range event {
		w = w.MustUnsqueeze(-1, false)
	}
	dim := int64(-1 - event)
	zero := w.MustEq(ts.FloatScalar(0), false)
	sum := func(x val) val {
		x = ten(floating(x.t, ten(w)))
		return ten(choose(zero, num(0), x).mul(ten(w)).t.MustSumDimIntlist([]int64{dim}, false, w.DType(), false))
	}
	mean = sum(ten(means))
	if variances == nil {
		return mean, val{}
	}
	return mean, sum(ten(means).sub(ten(mean.t.MustUnsqueeze(dim, false))).square().add(ten(variances)))
}

// CDF is Σ wᵢ Fᵢ(x); it panics with an [*Error] where a component has none.
func (d MixtureDist) CDF(value *ts.Tensor) *ts.Tensor {
	for i, c := range d.components {
		if !hasCDF(c) {
			panic(&Error{d.family, fmt.Sprintf("component %d", i), c.Name(), "it has no CDF in closed form"})
		}
	}
	all := ten(d.each(func(c Distribution) *ts.Tensor { return c.(CDFer).CDF(value) }, -1))
	return d.full(sumLast(all.mul(ten(d.mixing.prob())).t, 1))
}

// hasCDF says whether a distribution has a CDF; a mixture has that of its components.
func hasCDF(d Distribution) bool {
	switch m := d.(type) {
	case MixtureDist:
		return !slices.ContainsFunc(m.components, func(c Distribution) bool { return !hasCDF(c) })
	case MixtureSameFamilyDist:
		return hasCDF(m.components)
	}
	_, ok := d.(CDFer)
	return ok
}

// Expand broadcasts the batch shape.
func (d MixtureDist) Expand(batch ...int64) Distribution {
	d.base = d.expand(batch)
	all := make([]Distribution, len(d.components))
	for i, c := range d.components {
		all[i] = c.Expand(batch...)
	}
	d.components = all
	return d
}

// Validate checks the weights and the components.
func (d MixtureDist) Validate() error {
	err := d.mixing.Validate()
	for _, c := range d.components {
		err = first(err, c.Validate())
	}
	return err
}

// Params are the weights, as probs or logits, and the components.
func (d MixtureDist) Params() map[string]any {
	out := d.mixing.Params()
	out["components"] = slices.Clone(d.components)
	return out
}
