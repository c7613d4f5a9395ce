package dist

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/kelvin-ppl/kelvin/dist/bijector"
	"github.com/kelvin-ppl/kelvin/dist/internal/operand"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// transformedDist is the distribution of y = f(x); see [Transformed].
type transformedDist struct {
	of Distribution
	f  bijector.Bijector
}

// Transformed is the distribution of y = f(x) where x has the distribution d and f applies the bijectors
// one after the other:
//
//	log p(y) = log p(x) − log |det dy/dx|,  x = f⁻¹(y)
//
// Where f works on more dimensions than d's events have, the last dimensions of d's batch become part of the event.
// Parameters of f that are tensors broadcast against the batch.
func Transformed(d Distribution, bijectors ...bijector.Bijector) (made Distribution) {
	defer orMisfit(&made)
	if d == nil {
		panic(&Error{"Transformed", "d", "nil", "it must be a distribution"})
	}
	f := bijector.Chain(bijectors...)
	if bijector.Completes(f) {
		panic(&Error{"Transformed", "bijectors", f.Name(), "it must be one to one, and UnitVector is not"})
	}
	event := d.EventShape()
	shape := join(d.BatchShape(), event)
	if len(shape) < f.DomainEventDims() {
		panic(&Error{"Transformed", "bijectors", f.Name(),
			fmt.Sprintf("it works on %d dimensions, and a draw of %s has shape %v", f.DomainEventDims(), d.Name(), shape)})
	}
	wide := f.InverseShape(f.ForwardShape(shape))
	if !slices.Equal(wide, shape) {
		at := len(wide) - len(event)
		if !slices.Equal(wide[at:], event) {
			panic(&Error{"Transformed", "bijectors", f.Name(), fmt.Sprintf("its parameters make a draw of %s, of shape %v, "+
				"one of shape %v; they must broadcast to its event shape %v", d.Name(), shape, wide, event)})
		}
		d = d.Expand(wide[:at]...)
	}
	return transformedDist{Independent(d, max(0, f.DomainEventDims()-len(event))), f}
}

// Base is the distribution of x, with at least as many event dimensions as the bijector works on.
func (d transformedDist) Base() Distribution { return d.of }

// Bijector is f.
func (d transformedDist) Bijector() bijector.Bijector { return d.f }

// extra is the number of event dimensions that f does not need.
func (d transformedDist) extra() int { return len(d.of.EventShape()) - d.f.DomainEventDims() }

// Name is the names of both.
func (d transformedDist) Name() string {
	return fmt.Sprintf("Transformed(%s, %s)", d.of.Name(), d.f.Name())
}

// BatchShape is that of the distribution of x.
func (d transformedDist) BatchShape() []int { return d.of.BatchShape() }

// EventShape is the shape of one y.
func (d transformedDist) EventShape() []int {
	batch := d.of.BatchShape()
	return d.f.ForwardShape(join(batch, d.of.EventShape()))[len(batch):]
}

// Support is where f takes the support of x.
func (d transformedDist) Support() support.Support {
	s := bijector.Image(d.f, d.of.Support())
	s.Extra += len(d.EventShape()) - s.EventDims()
	return s
}

// LogProb is the log density.
func (d transformedDist) LogProb(value torch.Tensor) torch.Tensor {
	x := d.f.Inverse(value)
	return d.of.LogProb(x).Sub(operand.SumLast(d.f.LogAbsDetJacobian(x, value), d.extra()))
}

// Sample draws f(x), reparameterised where x is.
func (d transformedDist) Sample(src *Source, sample ...int) torch.Tensor {
	return d.f.Forward(d.of.Sample(src, sample...))
}

// Mean is known where f is affine or a permutation; else it panics with an [*Error].
func (d transformedDist) Mean() torch.Tensor { return d.moment("Mean", d.of.Mean, false) }

// Variance is known where f is affine or a permutation; else it panics with an [*Error].
func (d transformedDist) Variance() torch.Tensor { return d.moment("Variance", d.of.Variance, true) }

// moment takes a moment of x through parts that are affine: a variance is multiplied by the square of dy/dx.
func (d transformedDist) moment(name string, of func() torch.Tensor, variance bool) torch.Tensor {
	parts := bijector.Parts(d.f)
	for _, p := range parts {
		if n := p.Name(); n != "Identity" && n != "Affine" && n != "Permute" {
			panic(&Error{d.Name(), "", name, "it has no closed form; average over draws"})
		}
	}
	m := of()
	for _, p := range parts {
		next := p.Forward(m)
		if variance && p.Name() == "Affine" {
			next = m.Mul(p.LogAbsDetJacobian(m, m).Mul(2).Exp())
		}
		m = next
	}
	return m
}

// Expand broadcasts the batch shape.
func (d transformedDist) Expand(batch ...int) Distribution {
	d.of = d.of.Expand(batch...)
	return d
}

// Validate checks the parameters of both.
func (d transformedDist) Validate() error {
	return cmp.Or(d.of.Validate(), bijector.Validate(d.f))
}

// Params are the parameters of the distribution of x by name.
func (d transformedDist) Params() map[string]any { return paramsOf(d.of) }

// direction is 1 where f rises and −1 where it falls; ok is false where it is no function of single numbers.
func (d transformedDist) direction() (sign torch.Tensor, ok bool) {
	f, ok := d.f.(interface{ Direction() (torch.Tensor, bool) })
	if !ok {
		return torch.Tensor{}, false
	}
	return f.Direction()
}

// The tails of x, which change places where f falls.
func (d transformedDist) logTails(y torch.Tensor) (lower, upper torch.Tensor) {
	sign, ok := d.direction()
	if !ok {
		panic(&Error{d.Name(), "", d.f.Name(), "it has no distribution function here"})
	}
	lower, upper = tailsAnywhere(d.of, d.f.Inverse(y))
	if is(sign, 1) {
		return lower, upper
	}
	falls := dense(sign).Lt(0)
	return torch.Choose(falls, upper, lower), torch.Choose(falls, lower, upper)
}
