package bijector

import (
	"math"

	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// corrCholesky makes Cholesky factors of correlation matrices.
type corrCholesky struct{ triangle }

// CorrCholesky takes a vector of k(k−1)/2 numbers, row by row the part of a k x k matrix below the diagonal, to the
// Cholesky factor of a correlation matrix: lower triangular, with positive diagonal and rows of length 1. The
// hyperbolic tangents are the canonical partial correlations (Lewandowski, Kurowicka, Joe 2009, section 2; Stan
// Reference Manual, "Cholesky factors of correlation matrices"), zᵢⱼ = tanh xᵢⱼ and
//
//	Lᵢⱼ = zᵢⱼ·∏ₘ<ⱼ √(1 − zᵢₘ²) for j < i,  Lᵢᵢ = ∏ₘ<ᵢ √(1 − zᵢₘ²)
//
// The Jacobian is that of the elements below the diagonal: log |det| = Σⱼ<ᵢ (1 + (i − 1 − j)/2)·log(1 − zᵢⱼ²). Products
// of many small numbers are computed from logarithms.
func CorrCholesky() Bijector {
	return corrCholesky{triangle{name: "CorrCholesky", codomain: support.CorrCholesky}}
}

// logs are log(1 − tanh² x) = 2 (log 2 + x − log(1 + e²ˣ)).
func (corrCholesky) logs(x torch.Tensor) torch.Tensor {
	v := x
	return v.Sub(v.Mul(2).Softplus()).Add(math.Ln2).Mul(2)
}

func (b corrCholesky) Forward(x torch.Tensor) torch.Tensor {
	k := b.size(x.Shape())
	z := matrix(x.Tanh(), k, func(i, j int) int {
		if j < i {
			return b.at(i, j)
		}
		return -1
	})
	// Column j has the logarithm of column j−1, so that the sum up to j is that of the product before j.
	before := matrix(b.logs(x), k, func(i, j int) int {
		if 0 < j && j <= i {
			return b.at(i, j-1)
		}
		return -1
	})
	product := cumsum(before).Mul(0.5).Exp()
	return z.Add(identity(x, k)).Mul(product)
}

// Inverse uses tanh x = z as sinh x = z/√(1 − z²), the element over the length of the row after it, which is exact near
// the edge where z rounds to 1.
func (b corrCholesky) Inverse(y torch.Tensor) torch.Tensor {
	k := square(b.name, y.Shape())
	diagonal := torch.Of(y.T().MustDiagonal(0, -2, -1, false))
	// after[j] has for each row i > j the length of its elements after j. Rows above do not matter, and start from 1 to
	// keep their gradients from being 0/0.
	after := make([]torch.Tensor, k)
	length := torch.Of(diagonal.T().MustOnesLike(false))
	for j := k - 1; j >= 0; j-- {
		after[j] = length
		here := make([]bool, k)
		here[j] = true
		length = torch.Of(diagonal.T().MustWhereSelf(mask(y, here).T(),
			length.T().MustHypot(y.T().MustSelect(-1, int64(j), false), false), false))
	}
	if k == 1 {
		return b.vector(y, k)
	}
	return torch.Of(b.vector(y.Div(torch.Stack(-1, after)), k).T().MustAsinh(false))
}

func (b corrCholesky) LogAbsDetJacobian(x, _ torch.Tensor) torch.Tensor {
	k := b.size(x.Shape())
	weights := make([]float64, 0, b.length(k))
	for i := 1; i < k; i++ {
		for j := 0; j < i; j++ {
			weights = append(weights, 1+float64(i-1-j)/2)
		}
	}
	return weighted(b.logs(x), weights)
}
