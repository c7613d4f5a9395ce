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

// zeroSumsBijector is [ZeroSum] for each of several groups of elements, which one vector has.
type zeroSumsBijector struct {
	groups *[]int  // of each element of y; −1 where it is free
	place  []int64 // of each element of y: where x has it, or after its end for the last of a group
	kept   []int64 // of each element of x: where y has it
	last   []int64 // and where the last of its group is
	size   []float64
}

// zeroSums takes a vector to one whose groups have sum 0, each group by the reflection of [ZeroSum].
func zeroSums(groups []int) Bijector {
	b := zeroSumsBijector{groups: &groups, place: make([]int64, len(groups))}
	last := map[int]int{}
	for i, g := range groups {
		for len(b.size) <= g {
			b.size = append(b.size, 0)
		}
		if g >= 0 {
			last[g] = i
			b.size[g]++
		}
	}
	for i, g := range groups {
		if g >= 0 && i == last[g] {
			b.place[i] = int64(len(groups) - len(last))
			continue
		}
		b.place[i] = int64(len(b.kept))
		b.kept = append(b.kept, int64(i))
		if g < 0 {
			b.last = append(b.last, int64(i))
		} else {
			b.last = append(b.last, int64(last[g]))
		}
	}
	return b
}

func (b zeroSumsBijector) Name() string           { return "ZeroSums" }
func (b zeroSumsBijector) DomainEventDims() int   { return 1 }
func (b zeroSumsBijector) CodomainEventDims() int { return 1 }

func (b zeroSumsBijector) Forward(x torch.Tensor) torch.Tensor {
	last(b.Name(), x.Shape())
	n, m, c := len(b.place), len(b.kept), len(b.size)
	sums, shares := make([]float64, m*c), make([]float64, c*n)
	for k, i := range b.kept {
		if g := (*b.groups)[i]; g >= 0 {
			sums[k*c+g] = 1
		}
	}
	for i, g := range *b.groups {
		switch {
		case g < 0:
		case b.place[i] == int64(m):
			shares[g*n+i] = 1 / math.Sqrt(b.size[g])
		default:
			shares[g*n+i] = 1 / (b.size[g] + math.Sqrt(b.size[g]))
		}
	}
	s := x.MatMul(torch.New(sums, m, c))
	padded := cat(x, part(x, 0, 1).Mul(0))
	return padded.IndexSelect(-1, torch.New(b.place)).Sub(s.MatMul(torch.New(shares, c, n)))
}

func (b zeroSumsBijector) Inverse(y torch.Tensor) torch.Tensor {
	last(b.Name(), y.Shape())
	share := make([]float64, len(b.kept))
	for k, i := range b.kept {
		if g := (*b.groups)[i]; g >= 0 {
			share[k] = 1 / (1 + math.Sqrt(b.size[g]))
		}
	}
	return y.IndexSelect(-1, torch.New(b.kept)).Sub(y.IndexSelect(-1, torch.New(b.last)).Mul(torch.New(share)))
}

func (b zeroSumsBijector) LogAbsDetJacobian(x, y torch.Tensor) torch.Tensor {
	return ZeroSum().LogAbsDetJacobian(x, y)
}

func (b zeroSumsBijector) ForwardShape(shape []int) []int {
	return resize(shape, last(b.Name(), shape)+len(b.size))
}

func (b zeroSumsBijector) InverseShape(shape []int) []int {
	return resize(shape, last(b.Name(), shape)-len(b.size))
}

// Image is all vectors whose groups have sum 0.
func (b zeroSumsBijector) Image(s support.Support) support.Support {
	image := zeroSum{}.Image(s)
	image.Groups = b.groups
	return image
}
