package dist

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/dist/internal/operand"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// independentDist is a distribution whose event has dimensions that were its batch's; see [Independent].
type independentDist struct {
	of Distribution
	n  int
}

// Independent makes the last n dimensions of d's batch shape part of the event: the log density is summed over them.
func Independent(d Distribution, n int) (made Distribution) {
	defer orMisfit(&made)
	if d == nil {
		panic(&Error{"Independent", "d", "nil", "it must be a distribution"})
	}
	if n == 0 {
		return d
	}
	if have := len(d.BatchShape()); n < 0 || n > have {
		panic(&Error{"Independent", "n", fmt.Sprint(n),
			fmt.Sprintf("%s has batch shape %v, so it must be from 0 to %d", d.Name(), d.BatchShape(), have)})
	}
	if i, ok := d.(independentDist); ok {
		return independentDist{i.of, i.n + n}
	}
	return independentDist{d, n}
}

// Base is the distribution before, and N how many dimensions of its batch are part of the event.
func (d independentDist) Base() Distribution { return d.of }

// N is the number of dimensions that are part of the event.
func (d independentDist) N() int { return d.n }

// Name is the family's name.
func (d independentDist) Name() string { return d.of.Name() }

// BatchShape is the batch shape before without its last dimensions.
func (d independentDist) BatchShape() []int {
	b := d.of.BatchShape()
	return b[:len(b)-d.n]
}

// EventShape is the event shape before, after those dimensions.
func (d independentDist) EventShape() []int {
	b := d.of.BatchShape()
	return join(b[len(b)-d.n:], d.of.EventShape())
}

// Support is the same, of larger events.
func (d independentDist) Support() support.Support { return d.of.Support().Independent(d.n) }

// LogProb is the sum of the log densities.
func (d independentDist) LogProb(value torch.Tensor) torch.Tensor {
	return operand.SumLast(d.of.LogProb(value), d.n)
}

// Sample draws as before.
func (d independentDist) Sample(src *Source, sample ...int) torch.Tensor {
	return d.of.Sample(src, sample...)
}

// Mean is as before.
func (d independentDist) Mean() torch.Tensor { return d.of.Mean() }

// Variance is as before.
func (d independentDist) Variance() torch.Tensor { return d.of.Variance() }

// Expand broadcasts the batch shape.
func (d independentDist) Expand(batch ...int) Distribution {
	b := d.of.BatchShape()
	d.of = d.of.Expand(join(batch, b[len(b)-d.n:])...)
	return d
}

// Validate checks the parameters.
func (d independentDist) Validate() error { return d.of.Validate() }

// Params are the parameters by name.
func (d independentDist) Params() map[string]any { return paramsOf(d.of) }

// paramsOf are the parameters of a distribution that tells them.
func paramsOf(d Distribution) map[string]any {
	if p, ok := d.(Parameterised); ok {
		return p.Params()
	}
	return nil
}
