package bijector

import (
	"slices"

	"github.com/kelvin-ppl/kelvin/dist/internal/operand"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// ordered makes vectors increasing.
type ordered struct{ positive bool }

// Ordered takes a vector to an increasing one: y₁ = x₁, yₖ = yₖ₋₁ + exp(xₖ). log |det| = x₂ + … + xₙ.
func Ordered() Bijector { return ordered{} }

// PositiveOrdered takes a vector to an increasing one of positive numbers: yₖ = exp(x₁) + … + exp(xₖ). log |det| = x₁ +
// … + xₙ.
func PositiveOrdered() Bijector { return ordered{positive: true} }

func (b ordered) Name() string {
	if b.positive {
		return "PositiveOrdered"
	}
	return "Ordered"
}
func (b ordered) DomainEventDims() int   { return 1 }
func (b ordered) CodomainEventDims() int { return 1 }

func (b ordered) Forward(x torch.Tensor) torch.Tensor {
	n := last(b.Name(), x.Shape())
	if b.positive {
		return cumsum(x.Exp())
	}
	if n < 2 {
		return x
	}
	return cumsum(cat(part(x, 0, 1), part(x, 1, n-1).Exp()))
}

func (b ordered) Inverse(y torch.Tensor) torch.Tensor {
	n := last(b.Name(), y.Shape())
	if n == 0 {
		return y
	}
	first := part(y, 0, 1)
	if b.positive {
		first = first.Log()
	}
	if n < 2 {
		return first
	}
	return cat(first, part(y, 1, n-1).Sub(part(y, 0, n-1)).Log())
}

func (b ordered) LogAbsDetJacobian(x, _ torch.Tensor) torch.Tensor {
	n := last(b.Name(), x.Shape())
	if b.positive || n == 0 {
		return operand.SumLast(x, 1)
	}
	return operand.SumLast(part(x, 1, n-1), 1)
}

func (b ordered) ForwardShape(shape []int) []int {
	last(b.Name(), shape)
	return slices.Clone(shape)
}
func (b ordered) InverseShape(shape []int) []int { return b.ForwardShape(shape) }

// Image is all increasing vectors.
func (b ordered) Image(s support.Support) support.Support {
	out := support.Ordered
	if b.positive {
		out = support.PositiveOrdered
	}
	return out.Independent(max(0, s.EventDims()-1))
}
