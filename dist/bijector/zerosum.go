package bijector

import (
	"math"

	"github.com/kelvin-ppl/kelvin/dist/internal/operand"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// zeroSum makes vectors with sum 0.
type zeroSum struct{}

// ZeroSum takes a vector of k−1 numbers to one of k numbers with sum 0, without a change of length: the reflection that
// takes the last axis to −1/√k in all directions takes (x, 0) to y,
//
//	yᵢ = xᵢ − s/(k + √k) for i < k,  y_k = −s/√k,  s = Σᵢ xᵢ
//
// The Jacobian is that of coordinates along orthogonal axes in the plane of these vectors: log |det| = 0.
func ZeroSum() Bijector { return zeroSum{} }

func (zeroSum) Name() string           { return "ZeroSum" }
func (zeroSum) DomainEventDims() int   { return 1 }
func (zeroSum) CodomainEventDims() int { return 1 }

func (b zeroSum) Forward(x torch.Tensor) torch.Tensor {
	k := float64(last(b.Name(), x.Shape()) + 1)
	s := operand.SumLast(x, 1).Unsqueeze(-1)
	return cat(x.Sub(s.Div(k+math.Sqrt(k))), s.Div(-math.Sqrt(k)))
}

func (b zeroSum) Inverse(y torch.Tensor) torch.Tensor {
	k := last(b.Name(), y.Shape())
	if k < 1 {
		panic(&Error{b.Name(), "", "a vector of length 0", "a vector with sum 0 has at least one element"})
	}
	return part(y, 0, k-1).Sub(part(y, k-1, 1).Div(1 + math.Sqrt(float64(k))))
}

func (b zeroSum) LogAbsDetJacobian(x, _ torch.Tensor) torch.Tensor {
	return torch.Of(operand.SumLast(x, 1).T().MustZerosLike(false))
}

func (b zeroSum) ForwardShape(shape []int) []int { return resize(shape, last(b.Name(), shape)+1) }
func (b zeroSum) InverseShape(shape []int) []int { return resize(shape, last(b.Name(), shape)-1) }

// Image is all vectors with sum 0.
func (b zeroSum) Image(s support.Support) support.Support {
	return support.ZeroSum.Independent(max(0, s.EventDims()-1))
}
