package dist

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// LKJCholeskyDist is the distribution of Cholesky factors of correlation matrices; see [LKJCholesky].
type LKJCholeskyDist struct {
	base
	dim int64
	eta val
}

// LKJCholesky is the distribution of the Cholesky factor L of a dim x dim correlation matrix R = L·Lᵀ whose density is
// proportional to det(R)^(eta−1), eta > 0 (Lewandowski, Kurowicka, Joe 2009): uniform for eta = 1, nearer to the identity the
// larger eta. As a density of the elements of L below the diagonal, with K = dim,
//
//	log p(L) = Σᵢ₌₂ᴷ [(K − i + 2 eta − 2) log Lᵢᵢ − aᵢ log π − log Γ(bᵢ) + log Γ(aᵢ + bᵢ)]
//	aᵢ = (i − 1)/2,  bᵢ = eta + (K − i)/2
//
// since row i without its diagonal is a vector in the unit ball with density ∝ (1 − |l|²)^(bᵢ−1), independent of the others.
func LKJCholesky(dim int, eta any) LKJCholeskyDist {
	e := param("LKJCholesky", "eta", eta)
	if dim < 1 {
		panic(&Error{"LKJCholesky", "dim", fmt.Sprint(dim), "it must be at least 1"})
	}
	d := LKJCholeskyDist{base: newBase("LKJCholesky", e), dim: int64(dim), eta: e}
	d.event = []int64{d.dim, d.dim}
	d.checkNumber("eta", e, positive)
	return d
}

// Support is the Cholesky factors of correlation matrices.
func (d LKJCholeskyDist) Support() support.Support { return support.CorrCholesky }

// shapes are the vectors a and b, of the rows from the second on.
func (d LKJCholeskyDist) shapes(params ...val) (a, b val) {
	halves, rest := make([]float64, d.dim-1), make([]float64, d.dim-1)
	for i := range halves {
		halves[i], rest[i] = float64(i+1)/2, float64(d.dim-2-int64(i))/2
	}
	dtype, device := like(append(params, d.eta)...)
	eta := d.eta
	if !eta.isNum() {
		eta = ten(eta.t.MustUnsqueeze(-1, false))
	}
	a = ten(torch.Must(torch.FromSliceOn(device, dtype, halves, d.dim-1)))
	b = ten(torch.Must(torch.FromSliceOn(device, dtype, rest, d.dim-1))).add(eta)
	return a, b
}

// LogProb is the log density.
func (d LKJCholeskyDist) LogProb(value *ts.Tensor) *ts.Tensor {
	if d.dim == 1 {
		return d.full(sumLast(value, 2).MustZerosLike(false))
	}
	a, b := d.shapes(ten(value))
	diagonal := value.MustDiagonal(0, -2, -1, false).MustNarrow(-1, 1, d.dim-1, false)
	kernel := xlogy(b.sub(num(1)).mul(num(2)), ten(diagonal))
	norm := logBeta(a, b).sub(a.lgamma()).add(a.mul(num(math.Log(math.Pi))))
	return d.full(sumLast(kernel.sub(norm).t, 1))
}

// Sample draws by the onion method: row i is a uniform direction times the root of a beta number with parameters aᵢ and
// bᵢ. Gradients flow to eta.
func (d LKJCholeskyDist) Sample(src *Source, sample ...int64) *ts.Tensor {
	dtype, device := like(d.eta)
	shape := join(sample, d.batch)
	corner := ts.MustOnes(join(shape, []int64{1, 1}), dtype, device)
	if d.dim == 1 {
		return corner
	}
	a, b := d.shapes()
	rows := join(shape, []int64{d.dim - 1})
	first := ten(torch.Must(src.LogGamma(expandTo(a.t, rows))))
	second := ten(torch.Must(src.LogGamma(expandTo(b.t, rows))))
	// The beta number and its complement are the shares of two gamma numbers.
	odds := first.sub(second)
	radius, diagonal := odds.logSigmoid().mul(num(0.5)).exp(), odds.neg().logSigmoid().mul(num(0.5)).exp()
	z := torch.Must(src.Normal(join(rows, rows[len(rows)-1:]), dtype, device)).MustTril(0, false)
	length := z.MustSquare(false).MustSumDimIntlist([]int64{-1}, true, dtype, false).MustSqrt(false)
	below := z.MustMul(radius.t.MustUnsqueeze(-1, false).MustDiv(length, false), false)
	// below is rows 2 … K by columns 1 … K−1; the diagonal of those rows lies one column further.
	below = below.MustConstantPadNd([]int64{0, 1}, false)
	below = below.MustAdd(diagonal.t.MustDiagEmbed(1, -2, -1, false).MustNarrow(-2, 0, d.dim-1, false), false)
	return ts.MustCat([]*ts.Tensor{corner.MustConstantPadNd([]int64{0, d.dim - 1}, false), below}, -2)
}

// moments are those of the diagonal elements and the variance of those below, from the second row on.
func (d LKJCholeskyDist) moments() (mean, variance, below val) {
	a, b := d.shapes()
	s := a.add(b)
	// E √(1 − r²) for the beta number r² is Γ(b + ½) Γ(a + b)/(Γ(b) Γ(a + b + ½)).
	mean = logBeta(b.add(num(0.5)), a).sub(logBeta(b, a)).exp()
	return mean, b.div(s).sub(mean.square()), s.mul(num(2)).recip()
}

// laidOut is a matrix with the given corner, diagonal and, from the second row on, elements below.
func (d LKJCholeskyDist) laidOut(corner float64, diagonal, below *ts.Tensor) *ts.Tensor {
	dtype, device := like(ten(diagonal))
	full := append([]int64{}, ten(diagonal).shape()...)
	full[len(full)-1] = 1
	head := ts.MustFull(full, ts.FloatScalar(corner), dtype, device)
	m := ts.MustCat([]*ts.Tensor{head, diagonal}, -1).MustDiagEmbed(0, -2, -1, false)
	if below != nil {
		rows := ts.MustCat([]*ts.Tensor{head.MustZerosLike(false), below}, -1).MustUnsqueeze(-1, false)
		lower := rows.MustMul(ts.MustOnes([]int64{1, d.dim}, dtype, device), false).MustTril(-1, false)
		m = m.MustAdd(lower, false)
	}
	return d.spread(ten(m))
}

// Mean is 0 below the diagonal; on it, E Lᵢᵢ = Γ(bᵢ + ½) Γ(aᵢ + bᵢ)/(Γ(bᵢ) Γ(aᵢ + bᵢ + ½)).
func (d LKJCholeskyDist) Mean() *ts.Tensor {
	if d.dim == 1 {
		return d.constantLike(1, d.eta)
	}
	mean, _, _ := d.moments()
	return d.laidOut(1, mean.t, nil)
}

// Variance is 1/(2 eta + K − 1) below the diagonal; on it, bᵢ/(aᵢ + bᵢ) − (E Lᵢᵢ)².
func (d LKJCholeskyDist) Variance() *ts.Tensor {
	if d.dim == 1 {
		return d.constantLike(0, d.eta)
	}
	_, variance, below := d.moments()
	return d.laidOut(0, variance.t, below.t)
}

// Expand broadcasts the batch shape.
func (d LKJCholeskyDist) Expand(batch ...int64) Distribution {
	d.base = d.expand(batch)
	return d
}

// Validate checks eta.
func (d LKJCholeskyDist) Validate() error { return d.validate("eta", d.eta, positive) }

// Params are the parameters by name.
func (d LKJCholeskyDist) Params() map[string]any {
	return map[string]any{"dim": d.dim, "eta": d.eta.any()}
}
