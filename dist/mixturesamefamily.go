package dist

import (
	"cmp"
	"fmt"

	"github.com/kelvin-ppl/kelvin/dist/internal/operand"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// mixtureSameFamilyDist is a mixture over the last dimension of one distribution's batch; see [MixtureSameFamily].
type mixtureSameFamilyDist struct {
	base
	mixing     categoricalDist
	components Distribution
	support    support.Support
}

// MixtureSameFamily is a finite mixture whose K components are the last dimension of one distribution's batch, of shape
// batch + [K] (Pyro's and PyTorch's). The weights are a [Categorical] distribution of K categories or what [Mixture]
// takes, and their batch shape broadcasts against batch. See [Mixture] for the density and the support; ends of the
// support that are tensors widen to the outermost.
func MixtureSameFamily(probs any, components Distribution) (made Distribution) {
	defer orMisfit(&made)
	const family = "MixtureSameFamily"
	mixing := mixing(family, probs)
	if components == nil {
		panic(&Error{family, "components", "nil", "a distribution is required"})
	}
	batch := components.BatchShape()
	k := len(batch) - 1
	if k < 0 || batch[k] != mixing.categories {
		panic(&Error{family, "components", fmt.Sprintf("%s, with batch shape %v", components.Name(), batch),
			fmt.Sprintf(
				"the last dimension of the batch must have size %d, that of the mixing distribution",
				mixing.categories,
			)})
	}
	d := mixtureSameFamilyDist{mixing: mixing, support: outermost(family, components)}
	d.base = base{family: family, batch: broadcast(family, mixing.batch, batch[:k]), event: components.EventShape()}
	d.components = components.Expand(join(d.batch, batch[k:])...)
	return d
}

// outermost is the support of a distribution without the last dimension of its batch.
func outermost(family string, components Distribution) support.Support {
	s := components.Support()
	dim := -1 - s.Extra
	reduce := func(t torch.Tensor, f func(t torch.Tensor) torch.Tensor) torch.Tensor {
		if len(t.Shape()) < -dim {
			return t
		}
		if s.Kind != support.KindInterval && s.Kind != support.KindInteger {
			panic(&Error{family, "components", fmt.Sprintf("%s over %v", components.Name(), s),
				"they must all have one support"})
		}
		return f(t)
	}
	s.Low = reduce(
		s.Low,
		func(t torch.Tensor) torch.Tensor { return torch.Of(t.T().MustAmin([]int64{int64(dim)}, false, false)) },
	)
	s.High = reduce(
		s.High,
		func(t torch.Tensor) torch.Tensor { return torch.Of(t.T().MustAmax([]int64{int64(dim)}, false, false)) },
	)
	return s
}

// Support is that of the components.
func (d mixtureSameFamilyDist) Support() support.Support { return d.support }

// spreadValue gives a value a dimension for the components.
func (d mixtureSameFamilyDist) spreadValue(value torch.Tensor) torch.Tensor {
	return value.Unsqueeze(-1 - len(d.event))
}

// LogProb is the log density.
func (d mixtureSameFamilyDist) LogProb(value torch.Tensor) torch.Tensor {
	return d.full(d.mixing.mix(d.components.LogProb(d.spreadValue(value))))
}

// Sample draws a component for each draw, and takes its draw from those of all components. Gradients flow to the
// components, where they are reparameterised, but not through the choice to the weights.
func (d mixtureSameFamilyDist) Sample(src *Source, sample ...int) torch.Tensor {
	index := d.mixing.Expand(d.batch...).Sample(src, sample...)
	dim := -1 - len(d.event)
	for range join(d.event, []int{1}) {
		index = index.Unsqueeze(-1)
	}
	x := d.components.Sample(src, sample...)
	index = expandTo(index, join(sample, d.batch, []int{1}, d.event))
	return torch.Of(x.T().MustGather(int64(dim), index.T(), false, false)).Squeeze(dim)
}

// Mean is Σ wᵢ mᵢ.
func (d mixtureSameFamilyDist) Mean() torch.Tensor {
	mean, _ := d.mixing.moments(d.components.Mean(), nil, len(d.event))
	return d.spread(mean)
}

// Variance is Σ wᵢ (vᵢ + (mᵢ − m)²).
func (d mixtureSameFamilyDist) Variance() torch.Tensor {
	variances := d.components.Variance()
	_, variance := d.mixing.moments(d.components.Mean(), &variances, len(d.event))
	return d.spread(variance)
}

// CDF is Σ wᵢ Fᵢ(x); it panics with an [*Error] where the components have none.
func (d mixtureSameFamilyDist) CDF(value torch.Tensor) torch.Tensor {
	if !hasCDF(d.components) {
		panic(&Error{d.family, "components", d.components.Name(), "it has no CDF in closed form"})
	}
	all := d.components.(CDFer).CDF(d.spreadValue(value))
	return d.full(operand.SumLast(all.Mul(d.mixing.prob()), 1))
}

// Expand broadcasts the batch shape.
func (d mixtureSameFamilyDist) Expand(batch ...int) Distribution {
	d.base = d.expand(batch)
	d.components = d.components.Expand(join(batch, []int{d.mixing.categories})...)
	return d
}

// Validate checks the weights and the components.
func (d mixtureSameFamilyDist) Validate() error {
	return cmp.Or(d.mixing.Validate(), d.components.Validate())
}

// Params are the weights, as probs or logits, and the components.
func (d mixtureSameFamilyDist) Params() map[string]any {
	out := d.mixing.Params()
	out["components"] = d.components
	return out
}
