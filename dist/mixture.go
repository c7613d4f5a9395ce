package dist

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/dist/internal/operand"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// mixtureDist is a mixture of distributions of any families; see [Mixture].
type mixtureDist struct {
	base
	mixing     categoricalDist
	components []Distribution
	support    support.Support
}

// Mixture is a finite mixture, the component summed out:
//
//	log p(x) = log Σᵢ exp(log wᵢ + log pᵢ(x))
//
// The weights w are a tensor of shape batch + [K] or a []float64, of numbers ≥ 0, which are divided by their sum, as
// [Categorical] takes them; or a distribution of [Categorical] or [CategoricalLogits]. The K components have one event
// shape, and batch shapes that broadcast. A component of weight 0 changes nothing, whatever its density is.
//
// The components are all continuous or all discrete. Where their supports differ, that of the mixture is the smallest
// interval around them all, and the density is 0 in its gaps; a component is 0 at an end that its own support leaves
// out, as that of [Gamma] leaves out 0. Supports that are not intervals must be the same. For counts with more zeros
// see [ZeroInflated].
func Mixture(probs any, components ...Distribution) (made Distribution) {
	defer orMisfit(&made)
	const family = "Mixture"
	if len(components) == 0 {
		panic(&Error{family, "components", "empty", "at least one distribution is required"})
	}
	d := mixtureDist{mixing: mixing(family, probs)}
	if d.mixing.categories != len(components) {
		panic(&Error{family, "probs", fmt.Sprintf("of %d weights", d.mixing.categories),
			fmt.Sprintf("there are %d components", len(components))})
	}
	shapes := [][]int{d.mixing.batch}
	supports := make([]support.Support, len(components))
	for i, c := range components {
		name := fmt.Sprintf("component %d", i)
		if c == nil {
			panic(&Error{family, name, "nil", "a distribution is required"})
		}
		if got, want := c.EventShape(), components[0].EventShape(); !slices.Equal(got, want) {
			panic(&Error{family, name, fmt.Sprintf("%s, with event shape %v", c.Name(), got),
				fmt.Sprintf("that of component 0, %s, is %v", components[0].Name(), want)})
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
func mixing(family string, probs any) categoricalDist {
	switch w := probs.(type) {
	case categoricalDist:
		return w
	case Distribution:
		panic(&Error{family, "probs", "a " + w.Name(), "weights or a Categorical distribution are required"})
	case []float64:
		if len(w) == 0 {
			panic(&Error{family, "probs", "empty", "a weight for each component is required"})
		}
		d := newCategorical(family, "probs", torch.New(w))
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
		low, high := a.Low.AtMost(b.Low), a.High.AtLeast(b.High)
		out = support.Support{Kind: a.Kind, Low: low, High: high, Closed: a.Closed || b.Closed, Extra: a.Extra}
		if out.Kind == support.KindInterval && is(low, math.Inf(-1)) && is(high, math.Inf(1)) {
			out = support.Real.Independent(out.Extra)
		}
	}
	return out
}

// span is a support of single numbers as an interval.
func span(s support.Support) (support.Support, bool) {
	switch s.Kind {
	case support.KindReal:
		return support.Support{
			Kind:  support.KindInterval,
			Low:   torch.Of(math.Inf(-1)),
			High:  torch.Of(math.Inf(1)),
			Extra: s.Extra,
		}, true
	case support.KindBoolean:
		return support.Support{Kind: support.KindInteger, Low: torch.Of(0), High: torch.Of(1), Extra: s.Extra}, true
	case support.KindInterval, support.KindInteger:
		return s, true
	}
	return s, false
}

// Support is that of the components, or the smallest interval around theirs.
func (d mixtureDist) Support() support.Support { return d.support }

// LogProb is the log density.
func (d mixtureDist) LogProb(value torch.Tensor) torch.Tensor {
	return d.full(d.mixing.mix(d.each(func(c Distribution) torch.Tensor { return d.component(c, value) }, -1)))
}

// component is the log density of a component: minus infinity at an end that its support leaves out and the mixture's
// has. The formula of a Gamma distribution is infinite there.
func (d mixtureDist) component(c Distribution, value torch.Tensor) torch.Tensor {
	s := c.Support()
	if s.Kind != support.KindInterval || s.Closed || s == d.support {
		return c.LogProb(value)
	}
	x := floated(value)
	at := either(x.Eq(s.Low), x.Eq(s.High))
	var safe torch.Tensor
	switch low, high, known := s.Bounds(); {
	case known && math.IsInf(high, 1):
		safe = torch.Of(low + 1)
	case known && math.IsInf(low, -1):
		safe = torch.Of(high - 1)
	default:
		safe = s.Low.Add(s.High).Mul(0.5)
	}
	logp := c.LogProb(torch.Choose(at, safe, x))
	for range s.Extra {
		at = torch.Of(at.T().MustAnyDim(-1, false, false))
	}
	return fill(logp, at, math.Inf(-1))
}

// each stacks something of every component along a new dimension.
func (d mixtureDist) each(f func(c Distribution) torch.Tensor, dim int) torch.Tensor {
	all := make([]torch.Tensor, len(d.components))
	for i, c := range d.components {
		all[i] = f(c)
	}
	return torch.Stack(dim, all)
}

// mix is log Σ w exp(l) over the last dimension. From weights it is m + log Σ w exp(l − m), where m is the largest log
// w + l: the derivative in a weight, also in one of 0, is then exp(l)/Σ w exp(l) without further ado. Only of
// components of weight 0 the exponent can be large: it is cut off where it would overflow.
func (d categoricalDist) mix(l torch.Tensor) torch.Tensor {
	if d.fromLogits {
		return logSumExp(logSoftmax(d.logits).Add(l))
	}
	w := normalised(d.probs)
	limit := 700.
	if l.T().DType() == gotch.Float {
		limit = 80
	}
	zero := w.Eq(0) // its component may be infinite
	terms := torch.Of(l.T().MustDetach(false)).Add(torch.Of(w.T().MustDetach(false)).Log())
	m := torch.Of(fill(terms, zero, math.Inf(-1)).T().MustAmax([]int64{-1}, true, false))
	infinite := m.Eq(math.Inf(1)).Squeeze(-1)
	m = fill(m, isInfinite(m), 0)
	// Where the largest has most of the weight too, the shift is its l, and from the mean of what is left 1 is taken away.
	top := torch.Of(terms.Eq(m).T().MustLogicalAnd(w.Gt(0.5).T(), false))
	most := operand.SumLast(torch.Of(top.T().MustTotype(l.T().DType(), false)), 1).Gt(0)
	m = torch.Choose(most.Unsqueeze(-1), operand.SumLast(fill(constant(l), not(top), 0), 1).Unsqueeze(-1), m)
	e := l.Sub(m).AtMost(limit)
	few := torch.Of(most.Unsqueeze(-1).T().MustLogicalAnd(e.Gt(-1).T(), false))
	direct := torch.Choose(most.Unsqueeze(-1), e.Exp().Sub(1), e.Exp())
	e = torch.Choose(few, fill(e, not(few), 0).Expm1(), direct)
	var sum torch.Tensor
	if len(w.Shape()) == 1 && w.T().DType() == l.T().DType() {
		sum = e.MatMul(w)
	} else {
		sum = operand.SumLast(e.Mul(w), 1)
	}
	none := torch.Of(sum.Eq(0).T().MustLogicalAnd(not(most).T(), false))
	sum = fill(sum, either(none, infinite), 1)
	log := torch.Choose(most, sum.Log1p(), fill(sum, most, 1).Log())
	return fill(fill(log.Add(m.Squeeze(-1)), none, math.Inf(-1)), infinite, math.Inf(1))
}

// logSumExp is over the last dimension. Terms of minus infinity have no gradient; of them only, so has the sum.
// (libtorch's has NaN there.)
func logSumExp(a torch.Tensor) torch.Tensor {
	m := torch.Of(a.T().MustDetach(false).MustAmax([]int64{-1}, true, false))
	m = fill(m, isInfinite(m), 0)
	sum := operand.SumLast(a.Sub(m).Exp(), 1)
	none := sum.Eq(0)
	return fill(fill(sum, none, 1).Log().Add(m.Squeeze(-1)), none, math.Inf(-1))
}

// Sample draws a component for each draw and then of it. Gradients flow to the components, where they are
// reparameterised, but not through the choice to the weights.
func (d mixtureDist) Sample(src *Source, sample ...int) torch.Tensor {
	index := d.mixing.Expand(d.batch...).Sample(src, sample...)
	for range d.event {
		index = index.Unsqueeze(-1)
	}
	out := d.components[0].Sample(src, sample...)
	for i, c := range d.components[1:] {
		x := floating(c.Sample(src, sample...), out)
		out = torch.Choose(torch.Of(index.T().MustEq(ts.IntScalar(int64(i+1)), false)), x, floating(out, x))
	}
	return out
}

// Mean is Σ wᵢ mᵢ.
func (d mixtureDist) Mean() torch.Tensor {
	mean, _ := d.moments(false)
	return d.spread(mean)
}

// Variance is Σ wᵢ (vᵢ + (mᵢ − m)²).
func (d mixtureDist) Variance() torch.Tensor {
	_, variance := d.moments(true)
	return d.spread(variance)
}

func (d mixtureDist) moments(second bool) (mean, variance torch.Tensor) {
	at := len(d.batch)
	means := d.each(func(c Distribution) torch.Tensor { return c.Mean() }, at)
	if !second {
		return d.mixing.moments(means, nil, len(d.event))
	}
	variances := d.each(func(c Distribution) torch.Tensor { return c.Variance() }, at)
	return d.mixing.moments(means, &variances, len(d.event))
}

// moments are those of the mixture, from those of the components in the dimension before the event's. Where a weight is
// 0 the moments may be infinite.
func (d categoricalDist) moments(means torch.Tensor, variances *torch.Tensor, event int) (mean, variance torch.Tensor) {
	w := d.prob()
	for range event {
		w = w.Unsqueeze(-1)
	}
	dim := -1 - event
	zero := w.Eq(0)
	sum := func(x torch.Tensor) torch.Tensor {
		x = floating(x, w)
		return torch.Of(torch.Choose(zero, 0, x).Mul(w).T().MustSumDimIntlist([]int64{int64(dim)}, false,
			w.T().DType(), false))
	}
	mean = sum(means)
	if variances == nil {
		return mean, torch.Tensor{}
	}
	return mean, sum(means.Sub(mean.Unsqueeze(dim)).Square().Add(*variances))
}

// CDF is Σ wᵢ Fᵢ(x); it panics with an [*Error] where a component has none.
func (d mixtureDist) CDF(value torch.Tensor) torch.Tensor {
	for i, c := range d.components {
		if !hasCDF(c) {
			panic(&Error{d.family, fmt.Sprintf("component %d", i), c.Name(), "it has no CDF in closed form"})
		}
	}
	all := d.each(func(c Distribution) torch.Tensor { return c.(CDFer).CDF(value) }, -1)
	return d.full(operand.SumLast(all.Mul(d.mixing.prob()), 1))
}

// hasCDF says whether a distribution has a CDF; a mixture has that of its components.
func hasCDF(d Distribution) bool { return noCDF(d) == "" }

// lacking is what a function says of a distribution, or of those that a mixture is of: the first that is not empty.
func lacking(d Distribution, what func(d Distribution) string) string {
	switch m := d.(type) {
	case mixtureDist:
		for _, c := range m.components {
			if missing := lacking(c, what); missing != "" {
				return missing
			}
		}
		return ""
	case mixtureSameFamilyDist:
		return lacking(m.components, what)
	}
	return what(d)
}

// noCDF names the family that lacks a CDF; empty where none does.
func noCDF(d Distribution) string {
	return lacking(d, func(d Distribution) string {
		if _, ok := d.(CDFer); !ok {
			return d.Name()
		}
		return ""
	})
}

// Expand broadcasts the batch shape.
func (d mixtureDist) Expand(batch ...int) Distribution {
	d.base = d.expand(batch)
	all := make([]Distribution, len(d.components))
	for i, c := range d.components {
		all[i] = c.Expand(batch...)
	}
	d.components = all
	return d
}

// Validate checks the weights and the components.
func (d mixtureDist) Validate() error {
	err := d.mixing.Validate()
	for _, c := range d.components {
		err = cmp.Or(err, c.Validate())
	}
	return err
}

// Params are the weights, as probs or logits, and the components.
func (d mixtureDist) Params() map[string]any {
	out := d.mixing.Params()
	out["components"] = slices.Clone(d.components)
	return out
}
