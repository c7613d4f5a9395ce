package bijector

import (
	"math"

	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/sugarme/gotch/ts"
)

// stickBreaking makes probability vectors.
type stickBreaking struct{}

// StickBreaking takes a vector of k−1 numbers to one of k positive numbers with sum 1: a stick of length 1 is broken k−1
// times, each time by the share zᵢ of what is left,
//
//	zᵢ = 1/(1 + exp(−xᵢ + log(k−i))),  yᵢ = zᵢ·∏ⱼ<ᵢ(1 − zⱼ),  y_k = ∏ⱼ(1 − zⱼ)
//
// so that 0 becomes 1/k each (Stan Reference Manual, "Unit simplex"). The Jacobian is that of y₁ … yₖ₋₁: log |det| = Σᵢ log yᵢ
// over all k. Everything is computed from logarithms, so it is exact however near to the edge.
func StickBreaking() Bijector { return stickBreaking{} }

func (stickBreaking) Name() string           { return "StickBreaking" }
func (stickBreaking) DomainEventDims() int   { return 1 }
func (stickBreaking) CodomainEventDims() int { return 1 }

// offsets are log(k−i) for i from 1 to k−1.
func (b stickBreaking) offsets(like *ts.Tensor, k int64) *ts.Tensor {
	data := make([]float64, k-1)
	for i := range data {
		data[i] = math.Log(float64(k) - 1 - float64(i))
	}
	return constant(like, data, k-1)
}

// logs are the logarithms of y.
func (b stickBreaking) logs(x *ts.Tensor) *ts.Tensor {
	k := last(b.Name(), shapeOf(x)) + 1
	if k == 1 {
		return sumLast(x, 1).MustUnsqueeze(-1, false) // 0, with the batch shape
	}
	z := x.MustSub(b.offsets(x, k), false)
	left := z.MustNeg(false).MustLogSigmoid(false) // log(1 − z)
	shares := z.MustLogSigmoid(false)              // log z
	rest := cumsum(left)                           // of what is left after each break
	none := part(rest, 0, 1).MustZerosLike(false)
	return cat(shares, none).MustAdd(cat(none, rest), false)
}

func (b stickBreaking) Forward(x *ts.Tensor) *ts.Tensor { return b.logs(x).MustExp(false) }

func (b stickBreaking) Inverse(y *ts.Tensor) *ts.Tensor {
	k := last(b.Name(), shapeOf(y))
	if k < 1 {
		panic(&Error{b.Name(), "", "a vector of length 0", "a probability vector has at least one element"})
	}
	// The odds zᵢ/(1 − zᵢ) are yᵢ over the sum of those after it.
	rest := tails(part(y, 1, k-1))
	return part(y, 0, k-1).MustLog(false).MustSub(rest.MustLog(false), false).MustAdd(b.offsets(y, k), false)
}

func (b stickBreaking) LogAbsDetJacobian(x, _ *ts.Tensor) *ts.Tensor { return sumLast(b.logs(x), 1) }

func (b stickBreaking) ForwardShape(shape []int64) []int64 {
	return resize(shape, last(b.Name(), shape)+1)
}
func (b stickBreaking) InverseShape(shape []int64) []int64 {
	return resize(shape, last(b.Name(), shape)-1)
}

// Image is all probability vectors.
func (b stickBreaking) Image(s support.Support) support.Support {
	return support.Simplex.Independent(max(0, s.EventDims()-1))
}
