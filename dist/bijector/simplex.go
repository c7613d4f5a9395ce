package bijector

import (
	"math"

	"github.com/kelvin-ppl/kelvin/dist/internal/operand"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// stickBreaking makes probability vectors.
type stickBreaking struct{}

// StickBreaking takes a vector of k−1 numbers to one of k positive numbers with sum 1: a stick of length 1 is broken
// k−1 times, each time by the share zᵢ of what is left,
//
//	zᵢ = 1/(1 + exp(−xᵢ + log(k−i))),  yᵢ = zᵢ·∏ⱼ<ᵢ(1 − zⱼ),  y_k = ∏ⱼ(1 − zⱼ)
//
// so that 0 becomes 1/k each (Stan Reference Manual, "Unit simplex"). The Jacobian is that of y₁ … yₖ₋₁: log |det| = Σᵢ
// log yᵢ over all k. Everything is computed from logarithms, so it is exact however near to the edge.
func StickBreaking() Bijector { return stickBreaking{} }

func (stickBreaking) Name() string           { return "StickBreaking" }
func (stickBreaking) DomainEventDims() int   { return 1 }
func (stickBreaking) CodomainEventDims() int { return 1 }

// offsets are log(k−i) for i from 1 to k−1.
func (b stickBreaking) offsets(like torch.Tensor, k int) torch.Tensor {
	data := make([]float64, k-1)
	for i := range data {
		data[i] = math.Log(float64(k) - 1 - float64(i))
	}
	return constant(like, data, k-1)
}

// logs are the logarithms of y.
func (b stickBreaking) logs(x torch.Tensor) torch.Tensor {
	k := last(b.Name(), x.Shape()) + 1
	if k == 1 {
		return operand.SumLast(x, 1).Unsqueeze(-1) // 0, with the batch shape
	}
	z := x.Sub(b.offsets(x, k))
	left := z.Neg().LogSigmoid() // log(1 − z)
	shares := z.LogSigmoid()     // log z
	rest := cumsum(left)         // of what is left after each break
	none := torch.Of(part(rest, 0, 1).T().MustZerosLike(false))
	return cat(shares, none).Add(cat(none, rest))
}

func (b stickBreaking) Forward(x torch.Tensor) torch.Tensor { return b.logs(x).Exp() }

func (b stickBreaking) Inverse(y torch.Tensor) torch.Tensor {
	k := last(b.Name(), y.Shape())
	if k < 1 {
		panic(&Error{b.Name(), "", "a vector of length 0", "a probability vector has at least one element"})
	}
	// The odds zᵢ/(1 − zᵢ) are yᵢ over the sum of those after it.
	rest := tails(part(y, 1, k-1))
	return part(y, 0, k-1).Log().Sub(rest.Log()).Add(b.offsets(y, k))
}

func (b stickBreaking) LogAbsDetJacobian(x, _ torch.Tensor) torch.Tensor {
	return operand.SumLast(b.logs(x), 1)
}

func (b stickBreaking) ForwardShape(shape []int) []int {
	return resize(shape, last(b.Name(), shape)+1)
}
func (b stickBreaking) InverseShape(shape []int) []int {
	return resize(shape, last(b.Name(), shape)-1)
}

// Image is all probability vectors.
func (b stickBreaking) Image(s support.Support) support.Support {
	return support.Simplex.Independent(max(0, s.EventDims()-1))
}
