package dist

import (
	"fmt"
	"math"

	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/dist/internal/operand"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// lkjCholeskyDist is the distribution of Cholesky factors of correlation matrices; see [LKJCholesky].
type lkjCholeskyDist struct {
	base
	dim int
	eta torch.Tensor
}

var lkjCholeskyFamily = &family{"LKJCholesky", support.CorrCholesky,
	func(b base) Distribution { return lkjCholeskyDist{b, b.event[0], b.at(0)} },
	[]parameter{{"eta", positive}}}

// LKJCholesky is the distribution of the Cholesky factor L of a dim x dim correlation matrix R = L·Lᵀ whose density is
// proportional to det(R)^(eta−1), eta > 0 (Lewandowski, Kurowicka, Joe 2009): uniform for eta = 1, nearer to the
// identity the larger eta. As a density of the elements of L below the diagonal, with K = dim,
//
//	log p(L) = Σᵢ₌₂ᴷ [(K − i + 2 eta − 2) log Lᵢᵢ − aᵢ log π − log Γ(bᵢ) + log Γ(aᵢ + bᵢ)]
//	aᵢ = (i − 1)/2,  bᵢ = eta + (K − i)/2
//
// since row i without its diagonal is a vector in the unit ball with density ∝ (1 − |l|²)^(bᵢ−1),
// independent of the others.
func LKJCholesky(dim int, eta any) (made Distribution) {
	defer orMisfit(&made)
	if dim < 1 {
		panic(&Error{"LKJCholesky", "dim", fmt.Sprint(dim), "it must be at least 1"})
	}
	b := lkjCholeskyFamily.base("LKJCholesky", eta)
	b.event = []int{dim, dim}
	return b.shared.of(b)
}

// shapes are the vectors a and b, of the rows from the second on.
func (d lkjCholeskyDist) shapes(params ...torch.Tensor) (a, b torch.Tensor) {
	halves, rest := make([]float64, d.dim-1), make([]float64, d.dim-1)
	for i := range halves {
		halves[i], rest[i] = float64(i+1)/2, float64(d.dim-2-i)/2
	}
	dtype, device := like(append(params, d.eta)...)
	eta := d.eta
	if !operand.IsNumber(eta) {
		eta = eta.Unsqueeze(-1)
	}
	a = torch.Must(torch.FromSliceOn(device, dtype, halves, d.dim-1))
	b = torch.Must(torch.FromSliceOn(device, dtype, rest, d.dim-1)).Add(eta)
	return a, b
}

// LogProb is the log density.
func (d lkjCholeskyDist) LogProb(value torch.Tensor) torch.Tensor {
	if d.dim == 1 {
		return d.full(torch.Of(operand.SumLast(value, 2).T().MustZerosLike(false)))
	}
	a, b := d.shapes(value)
	diagonal := torch.Of(value.T().MustDiagonal(0, -2, -1, false).MustNarrow(-1, 1, int64(d.dim-1), false))
	kernel := xlogy(b.Sub(1).Mul(2), diagonal)
	norm := logBeta(a, b).Sub(a.Lgamma()).Add(a.Mul(math.Log(math.Pi)))
	return d.full(operand.SumLast(kernel.Sub(norm), 1))
}

// Sample draws by the onion method: row i is a uniform direction times the root of a beta number with parameters aᵢ and
// bᵢ. Gradients flow to eta.
func (d lkjCholeskyDist) Sample(src *Source, sample ...int) torch.Tensor {
	dtype, device := like(d.eta)
	shape := join(sample, d.batch)
	corner := torch.Of(ts.MustOnes(torch.Int64s(join(shape, []int{1, 1})), dtype, device))
	if d.dim == 1 {
		return corner
	}
	a, b := d.shapes()
	rows := join(shape, []int{d.dim - 1})
	first := torch.Must(src.LogGamma(expandTo(a, rows)))
	second := torch.Must(src.LogGamma(expandTo(b, rows)))
	// The beta number and its complement are the shares of two gamma numbers.
	odds := first.Sub(second)
	radius, diagonal := odds.LogSigmoid().Mul(0.5).Exp(), odds.Neg().LogSigmoid().Mul(0.5).Exp()
	z := torch.Of(torch.Must(src.Normal(join(rows, rows[len(rows)-1:]), dtype, device)).T().MustTril(0, false))
	length := torch.Of(z.Square().T().MustSumDimIntlist([]int64{-1}, true, dtype, false)).Sqrt()
	below := z.Mul(radius.Unsqueeze(-1).Div(length))
	// below is rows 2 … K by columns 1 … K−1; the diagonal of those rows lies one column further.
	below = torch.Of(below.T().MustConstantPadNd([]int64{0, 1}, false))
	below = below.Add(torch.Of(diagonal.T().MustDiagEmbed(1, -2, -1, false).MustNarrow(-2, 0, int64(d.dim-1), false)))
	return torch.Cat(-2, []torch.Tensor{torch.Of(corner.T().MustConstantPadNd([]int64{0, int64(d.dim - 1)},
		false)), below})
}

// moments are those of the diagonal elements and the variance of those below, from the second row on.
func (d lkjCholeskyDist) moments() (mean, variance, below torch.Tensor) {
	a, b := d.shapes()
	s := a.Add(b)
	// E √(1 − r²) for the beta number r² is Γ(b + ½) Γ(a + b)/(Γ(b) Γ(a + b + ½)).
	mean = logBeta(b.Add(0.5), a).Sub(logBeta(b, a)).Exp()
	return mean, b.Div(s).Sub(mean.Square()), s.Mul(2).Reciprocal()
}

// laidOut is a matrix with the given corner, diagonal and, from the second row on, elements below; 0 for none.
func (d lkjCholeskyDist) laidOut(corner float64, diagonal, below torch.Tensor) torch.Tensor {
	dtype, device := like(diagonal)
	full := append([]int{}, diagonal.Shape()...)
	full[len(full)-1] = 1
	head := torch.Of(ts.MustFull(torch.Int64s(full), ts.FloatScalar(corner), dtype, device))
	m := torch.Of(torch.Cat(-1, []torch.Tensor{head, diagonal}).T().MustDiagEmbed(0, -2, -1, false))
	if !operand.IsNumber(below) {
		rows := torch.Cat(-1, []torch.Tensor{torch.Of(head.T().MustZerosLike(false)), below}).Unsqueeze(-1)
		lower := torch.Of(rows.Mul(torch.Of(ts.MustOnes([]int64{1, int64(d.dim)}, dtype, device))).T().MustTril(-1, false))
		m = m.Add(lower)
	}
	return d.spread(m)
}

// Mean is 0 below the diagonal; on it, E Lᵢᵢ = Γ(bᵢ + ½) Γ(aᵢ + bᵢ)/(Γ(bᵢ) Γ(aᵢ + bᵢ + ½)).
func (d lkjCholeskyDist) Mean() torch.Tensor {
	if d.dim == 1 {
		return d.constantLike(1, d.eta)
	}
	mean, _, _ := d.moments()
	return d.laidOut(1, mean, torch.Of(0))
}

// Variance is 1/(2 eta + K − 1) below the diagonal; on it, bᵢ/(aᵢ + bᵢ) − (E Lᵢᵢ)².
func (d lkjCholeskyDist) Variance() torch.Tensor {
	if d.dim == 1 {
		return d.constantLike(0, d.eta)
	}
	_, variance, below := d.moments()
	return d.laidOut(0, variance, below)
}

// Params are the parameters by name.
func (d lkjCholeskyDist) Params() map[string]any {
	return map[string]any{"dim": d.dim, "eta": d.eta}
}
