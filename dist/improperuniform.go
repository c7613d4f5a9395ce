package dist

import (
	"fmt"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/dist/internal/operand"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// improperUniformDist is a flat density; see [ImproperUniform].
type improperUniformDist struct {
	base
	on support.Support
}

// ImproperUniform is the flat density on a support: log p(x) = 0. It need not have an integral, so that it can
// only be a prior, and cannot be drawn from. batch and event are its shapes; the event has at least the
// dimensions of the support.
func ImproperUniform(on support.Support, batch, event []int) (made Distribution) {
	defer orMisfit(&made)
	d := improperUniformDist{base{family: "ImproperUniform", batch: slices.Clone(batch), event: slices.Clone(event)}, on}
	need := on.EventDims()
	if len(event) < need {
		panic(&Error{d.family, "event", fmt.Sprintf("%v", event),
			fmt.Sprintf("the support, %v, needs at least %d dimensions", on, need)})
	}
	d.on = on.Independent(len(event) - need)
	return d
}

// Flat is the improper uniform distribution on the real line, of the given batch shape: a prior that adds nothing.
func Flat(batch ...int) Distribution { return ImproperUniform(support.Real, batch, nil) }

// FlatPositive is the improper uniform distribution on the positive numbers, of the given batch shape.
func FlatPositive(batch ...int) Distribution { return ImproperUniform(support.Positive, batch, nil) }

// Support is the given one.
func (d improperUniformDist) Support() support.Support { return d.on }

// LogProb is 0, whatever the value.
func (d improperUniformDist) LogProb(value torch.Tensor) torch.Tensor {
	shape := value.Shape()
	whole := broadcast(d.family, shape, join(d.batch, d.event))
	zero := fill(value, isInfinite(value), 0).Mul(0)
	return expandTo(operand.SumLast(expandTo(zero, whole), len(d.event)), whole[:len(whole)-len(d.event)])
}

// Sample panics: there is nothing to draw from.
func (d improperUniformDist) Sample(*Source, ...int) torch.Tensor {
	panic(&Error{d.family, "", "it cannot be drawn from",
		"its density has no integral; give the site a value or a proper prior"})
}

// Mean is NaN.
func (d improperUniformDist) Mean() torch.Tensor { return d.constantLike(math.NaN()) }

// Variance is NaN.
func (d improperUniformDist) Variance() torch.Tensor { return d.constantLike(math.NaN()) }

// Expand broadcasts the batch shape.
func (d improperUniformDist) Expand(batch ...int) Distribution {
	d.base = d.expand(batch)
	return d
}

// Validate has nothing to check.
func (d improperUniformDist) Validate() error { return nil }

// Params are the support's.
func (d improperUniformDist) Params() map[string]any { return map[string]any{"support": d.on.String()} }
