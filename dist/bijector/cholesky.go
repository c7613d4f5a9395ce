package bijector

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/dist/internal/operand"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// triangle is what the maps from vectors to triangular matrices share. The vector has the elements of the lower
// triangle row by row, with or without the diagonal.
type triangle struct {
	name     string
	diagonal bool
	codomain support.Support
}

func (b triangle) Name() string           { return b.name }
func (b triangle) DomainEventDims() int   { return 1 }
func (b triangle) CodomainEventDims() int { return 2 }

// at is the place in the vector of element (i, j) of the lower triangle, from 0.
func (b triangle) at(i, j int) int {
	if b.diagonal {
		return i*(i+1)/2 + j
	}
	return i*(i-1)/2 + j
}

// length is that of the vector for k x k matrices.
func (b triangle) length(k int) int { return b.at(k, 0) }

// size is k for vectors of a shape.
func (b triangle) size(shape []int) int {
	n := last(b.name, shape)
	k := int(math.Sqrt(float64(2*n)) + 0.5)
	for _, k := range []int{k, k + 1} {
		if k > 0 && b.length(k) == n {
			return k
		}
	}
	form := "k(k−1)/2"
	if b.diagonal {
		form = "k(k+1)/2"
	}
	panic(&Error{b.name, "", fmt.Sprintf("a vector of length %d", n),
		fmt.Sprintf("the length must be %s for some k ≥ 1", form)})
}

func (b triangle) ForwardShape(shape []int) []int {
	k := b.size(shape)
	return resize(shape, k, k)
}

func (b triangle) InverseShape(shape []int) []int {
	k := square(b.name, shape)
	return resize(shape[:len(shape)-1], b.length(k))
}

// Image is all matrices of the kind.
func (b triangle) Image(s support.Support) support.Support {
	return b.codomain.Independent(max(0, s.EventDims()-1))
}

// matrix lays elements of a vector out as a k x k matrix. source gives the place of each element, or -1 for 0.
func matrix(x torch.Tensor, k int, source func(i, j int) int) torch.Tensor {
	shape := x.Shape()
	n := shape[len(shape)-1]
	index := make([]int, 0, k*k)
	for i := 0; i < k; i++ {
		for j := 0; j < k; j++ {
			at := source(i, j)
			if at < 0 {
				at = n
			}
			index = append(index, at)
		}
	}
	padded := cat(x, torch.Of(x.T().MustNewZeros(torch.Int64s(resize(shape, 1)), x.T().DType(), device(x), false)))
	return pick(padded, index).Reshape(resize(shape, k, k)...)
}

// vector takes the lower triangle of k x k matrices, row by row.
func (b triangle) vector(y torch.Tensor, k int) torch.Tensor {
	shape := y.Shape()
	index := make([]int, 0, b.length(k))
	for i := 0; i < k; i++ {
		for j := 0; b.at(i, j) < b.at(i+1, 0); j++ {
			index = append(index, i*k+j)
		}
	}
	return pick(y.Reshape(resize(shape[:len(shape)-1], k*k)...), index)
}

// diagonalOf is the diagonal of a vector's matrix.
func (b triangle) diagonalOf(x torch.Tensor, k int) torch.Tensor {
	index := make([]int, k)
	for i := range index {
		index[i] = b.at(i, i)
	}
	return pick(x, index)
}

// weighted sums the last dimension with weights.
func weighted(x torch.Tensor, weights []float64) torch.Tensor {
	return operand.SumLast(x.Mul(constant(x, weights, len(weights))), 1)
}

// lowerCholesky makes Cholesky factors.
type lowerCholesky struct{ triangle }

// LowerCholesky takes a vector of k(k+1)/2 numbers, the lower triangle row by row, to a k x k lower-triangular matrix
// with positive diagonal: the elements themselves below the diagonal, their exponentials on it. The Jacobian is that of
// the lower triangle: log |det| = Σᵢ xᵢᵢ.
func LowerCholesky() Bijector {
	return lowerCholesky{triangle{name: "LowerCholesky", diagonal: true, codomain: support.LowerCholesky}}
}

func (b lowerCholesky) Forward(x torch.Tensor) torch.Tensor {
	k := b.size(x.Shape())
	below := matrix(x, k, func(i, j int) int {
		if j < i {
			return b.at(i, j)
		}
		return -1
	})
	return below.Add(torch.Of(b.diagonalOf(x, k).Exp().T().MustDiagEmbed(0, -2, -1, false)))
}

func (b lowerCholesky) Inverse(y torch.Tensor) torch.Tensor {
	k := square(b.name, y.Shape())
	logs := torch.Of(torch.Of(y.T().MustDiagonal(0, -2, -1, false)).Log().T().MustDiagEmbed(0, -2, -1, false))
	return b.vector(torch.Of(y.T().MustTril(-1, false)).Add(logs), k)
}

func (b lowerCholesky) LogAbsDetJacobian(x, _ torch.Tensor) torch.Tensor {
	return operand.SumLast(b.diagonalOf(x, b.size(x.Shape())), 1)
}

// positiveDefinite makes covariance matrices.
type positiveDefinite struct{ lowerCholesky }

// PositiveDefinite takes a vector of k(k+1)/2 numbers to the symmetric positive-definite matrix L·Lᵀ whose Cholesky
// factor is [LowerCholesky] of it. The Jacobian is that of the lower triangle: log |det| = k log 2 + Σᵢ (k − i + 2)·xᵢᵢ
// for i from 1.
func PositiveDefinite() Bijector {
	return positiveDefinite{
		lowerCholesky{triangle{name: "PositiveDefinite", diagonal: true, codomain: support.PositiveDefinite}},
	}
}

func (b positiveDefinite) Forward(x torch.Tensor) torch.Tensor {
	l := b.lowerCholesky.Forward(x)
	return l.MatMul(l.Transpose())
}

func (b positiveDefinite) Inverse(y torch.Tensor) torch.Tensor {
	square(b.name, y.Shape())
	return b.lowerCholesky.Inverse(torch.Of(y.T().MustLinalgCholesky(false, false)))
}

func (b positiveDefinite) LogAbsDetJacobian(x, _ torch.Tensor) torch.Tensor {
	k := b.size(x.Shape())
	weights := make([]float64, k)
	for i := range weights {
		weights[i] = float64(k) + 1 - float64(i)
	}
	return weighted(b.diagonalOf(x, k), weights).Add(float64(k) * math.Ln2)
}
