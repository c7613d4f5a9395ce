package dist

import (
	"cmp"
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/dist/internal/operand"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// wishartCholeskyDist is the distribution of the factor of a Wishart matrix or of its inverse; see [WishartCholesky]
// and [InverseWishartCholesky].
type wishartCholeskyDist struct {
	base
	df, scaleTril, factor torch.Tensor
	inverse               bool
}

// WishartCholesky is the distribution of the Cholesky factor K of a Wishart matrix X = K·Kᵀ, the sum of df outer
// products x·xᵀ of normal vectors of length n with covariance V. df > n − 1 is any real number, or a tensor of the
// batch shape. scale_tril is L with V = L·Lᵀ, lower triangular with a positive diagonal, of shape [..., n, n]. With
// A = L⁻¹·K, whose elements are independent (Bartlett 1933), and i from 1
//
//	log p(K) = Σᵢ log χ(Aᵢᵢ; df − i + 1) + Σᵢ>ⱼ log N(Aᵢⱼ; 0, 1) − Σᵢ i log Lᵢᵢ
//
// is the density of the elements of K on and below the diagonal; χ(a; k) is that of the root of a chi-squared number
// with k degrees of freedom. The density of X is p(K)/(2ⁿ ∏ᵢ Kᵢᵢⁿ⁻ⁱ⁺¹). What is above a diagonal is not read.
//
// The factor, unlike X, does not lose digits where X is nearly singular, and it is what [MultivariateNormalCholesky]
// takes.
func WishartCholesky(df, scaleTril any) (made Distribution) {
	defer orMisfit(&made)
	return newWishart("WishartCholesky", df, scaleTril, false)
}

// InverseWishartCholesky is the distribution of the Cholesky factor K of X = K·Kᵀ, where X⁻¹ has the Wishart
// distribution with df > n − 1 degrees of freedom and the matrix Ψ⁻¹. scale_tril is L with Ψ = L·Lᵀ, lower triangular
// with a positive diagonal, of shape [..., n, n]. With M = K⁻¹·L, whose elements are independent, and i from 1
//
//	log p(K) = Σᵢ log χ(Mᵢᵢ; df − n + i) + Σᵢ>ⱼ log N(Mᵢⱼ; 0, 1) + Σᵢ [(n + 1) log Mᵢᵢ − i log Lᵢᵢ]
//
// in the notation of [WishartCholesky].
func InverseWishartCholesky(df, scaleTril any) (made Distribution) {
	defer orMisfit(&made)
	return newWishart("InverseWishartCholesky", df, scaleTril, true)
}

func newWishart(family string, df, scaleTril any, inverse bool) wishartCholeskyDist {
	nu := param(family, "df", df)
	m, batch, n, _ := matrixOf(family, "scale_tril", scaleTril, true)
	d := wishartCholeskyDist{df: nu, scaleTril: m, factor: lower(m, 0), inverse: inverse}
	d.base = base{family: family, batch: broadcast(family, nu.Shape(), batch), event: []int{n, n}}
	d.checkNumber("df", nu, d.enough())
	return d
}

// enough is the domain of df.
func (d wishartCholeskyDist) enough() check {
	least := float64(d.event[0] - 1)
	return check{fmt.Sprintf("it must be greater than %g, one less than the size of the matrices", least),
		func(v float64) bool { return v > least && !math.IsInf(v, 1) }}
}

// lower is what of matrices is on or below a diagonal, and diagonalOf their main diagonal.
func lower(m torch.Tensor, diagonal int) torch.Tensor {
	return torch.Of(m.T().MustTril(int64(diagonal), false))
}

func diagonalOf(m torch.Tensor) torch.Tensor { return torch.Of(m.T().MustDiagonal(0, -2, -1, false)) }

// Support is the lower-triangular matrices with a positive diagonal.
func (d wishartCholeskyDist) Support() support.Support { return support.LowerCholesky }

// LogProb is the log density.
func (d wishartCholeskyDist) LogProb(value torch.Tensor) torch.Tensor {
	k, n := lower(value, 0), d.event[0]
	solve, of := d.factor, k
	if d.inverse {
		solve, of = k, d.factor
	}
	m := torch.Of(solve.T().MustLinalgSolveTriangular(of.T(), false, true, false, false))
	diagonal := diagonalOf(m)
	logs := diagonal.Log()
	// The density of a chi number a is that of the gamma number a²/2, times a.
	perRow := gammaKernel(d.halves(), diagonal.Square().Mul(0.5)).Add(logs)
	perRow = perRow.Sub(diagonalOf(d.factor).Log().Mul(d.rows(1, 1)))
	if d.inverse {
		perRow = perRow.Add(logs.Mul(float64(n + 1)))
	}
	normal := operand.SumLast(lower(m, -1).Square(), 2).Mul(-0.5).Sub(float64(n*(n-1)/2) * halfLog2Pi)
	return d.full(normal.Add(operand.SumLast(perRow, 1)))
}

// rows is the vector from + step i, for i from 0 to n − 1.
func (d wishartCholeskyDist) rows(from, step float64) torch.Tensor {
	x := make([]float64, d.event[0])
	for i := range x {
		x[i] = from + step*float64(i)
	}
	dtype, device := like(d.scaleTril)
	return torch.Must(torch.FromSliceOn(device, dtype, x, d.event[0]))
}

// halves are half the degrees of freedom of the chi numbers on the diagonal.
func (d wishartCholeskyDist) halves() torch.Tensor {
	less := d.rows(0, 0.5)
	if d.inverse {
		less = d.rows(float64(d.event[0]-1)/2, -0.5)
	}
	return wide(d.df).Mul(0.5).Sub(less)
}

// Sample draws A or M, reparameterised.
func (d wishartCholeskyDist) Sample(src *Source, sample ...int) torch.Tensor {
	dtype, device := like(d.scaleTril)
	shape := join(sample, d.batch)
	half := expandTo(d.halves(), join(shape, d.event[:1]))
	diagonal := tidy(func() torch.Tensor {
		roots := torch.Must(src.LogGamma(half)).Add(math.Ln2).Mul(0.5).Exp()
		return torch.Of(roots.T().MustDiagEmbed(0, -2, -1, false))
	})
	m := tidy(func() torch.Tensor {
		z := torch.Must(src.Normal(join(shape, d.event), dtype, device))
		return lower(z, -1).Add(diagonal)
	})
	if !d.inverse {
		return d.factor.MatMul(m)
	}
	l := expandTo(d.factor, join(shape, d.event))
	return torch.Of(m.T().MustLinalgSolveTriangular(l.T(), false, false, false, false))
}

// moments are the mean of the diagonal of A, or of M⁻¹, whose other elements have mean 0, and the variances of all its
// elements, which are not correlated.
func (d wishartCholeskyDist) moments() (mean, variance torch.Tensor) {
	half := d.halves()
	if !d.inverse {
		// E χ = √2 Γ(h + ½)/Γ(h), for 2h degrees of freedom.
		mean = logBeta(half, torch.Of(0.5)).Neg().Exp().Mul(math.Sqrt(2 * math.Pi))
		own := half.Mul(2).Sub(mean.Square())
		one := torch.Of(d.factor.T().MustOnesLike(false))
		return mean, lower(one, -1).Add(torch.Of(own.T().MustDiagEmbed(0, -2, -1, false)))
	}
	// E 1/χ = Γ(h − ½)/(√2 Γ(h)), and e = E 1/χ² = 1/(2h − 2). By forward substitution E Bᵢⱼ² is eᵢ Σₘ E Bₘⱼ², m from j
	// to i − 1, for B = M⁻¹: it is eᵢ eⱼ ∏ₘ (1 + eₘ) with m between i and j.
	mean = logBeta(half.Sub(0.5), torch.Of(0.5)).Exp().Div(math.Sqrt(2 * math.Pi))
	e := half.Mul(2).Sub(2).Reciprocal()
	sums := torch.Of(e.Log1p().T().MustCumsum(-1, e.T().DType(), false))
	row, column := e.Unsqueeze(-1), e.Unsqueeze(-2)
	product := sums.Unsqueeze(-1).Sub(row.Log1p()).Sub(sums.Unsqueeze(-2)).Exp()
	variance = lower(row.Mul(column).Mul(product), -1)
	return mean, variance.Add(torch.Of(e.Sub(mean.Square()).T().MustDiagEmbed(0, -2, -1, false)))
}

// exists is NaN where df is at most a bound.
func (d wishartCholeskyDist) exists(m torch.Tensor, bound float64) torch.Tensor {
	switch {
	case !d.inverse:
	case operand.IsNumber(d.df):
		if operand.Number(d.df) <= bound {
			m = m.Mul(math.NaN())
		}
	default:
		m = fill(d.spread(m), wide(wide(d.df)).Le(bound), math.NaN())
	}
	return d.spread(m)
}

// Mean is L·E A, or L·E M⁻¹, both diagonal. Of the inverse it is NaN for df ≤ n.
func (d wishartCholeskyDist) Mean() torch.Tensor {
	mean, _ := d.moments()
	return d.exists(d.factor.Mul(mean.Unsqueeze(-2)), float64(d.event[0]))
}

// Variance is (L∘L)·Var A, or (L∘L)·Var M⁻¹, where ∘ multiplies elements. Of the inverse it is NaN for df ≤ n + 1.
func (d wishartCholeskyDist) Variance() torch.Tensor {
	_, variance := d.moments()
	return d.exists(d.factor.Square().MatMul(variance), float64(d.event[0]+1))
}

// Expand broadcasts the batch shape.
func (d wishartCholeskyDist) Expand(batch ...int) Distribution {
	d.base = d.expand(batch)
	return d
}

// Validate checks df and the matrix.
func (d wishartCholeskyDist) Validate() error {
	return cmp.Or(d.validate("df", d.df, d.enough()), d.validateIn("scale_tril", d.factor, support.LowerCholesky))
}

// Params are the parameters by name.
func (d wishartCholeskyDist) Params() map[string]any {
	return map[string]any{"df": d.df, "scale_tril": d.scaleTril}
}
