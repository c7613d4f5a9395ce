package ekf

import (
	"math"

	"github.com/kelvin-ppl/kelvin/infer/internal/approx"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// whitened is the update of a Gaussian N(μ, L Lᵀ) in the coordinates v of θ = μ + L v, where its covariance is I: that
// after data is W Wᵀ = (I + M)⁻¹, with M their curvature in these coordinates.
type whitened interface {
	root(l torch.Tensor) torch.Tensor  // L W, a root of the covariance after the data
	solve(b torch.Tensor) torch.Tensor // W Wᵀ b, for b of shape [d]
	logDet() float64                   // log |I + M|
}

// condition makes the update for the factor A, [m, d], of a curvature M = AᵀA. Neither M nor I + M is formed: where M
// has elements beyond 1/ε the I would be lost. With the QR decomposition Aᵀ = Q [U; 0],
//
//	I + AᵀA = Q diag(I + U Uᵀ, I) Qᵀ,   I + U Uᵀ = RᵀR,   W = Q diag(R⁻¹, I)
//
// where R is that of the QR decomposition of [Uᵀ; I]: positive definite by construction. (Square-root filters: Bierman
// 1977.) It takes O(d² m) operations for m < d.
func condition(a torch.Tensor) whitened {
	m, d := size(a, 0), size(a, 1)
	if m > d {
		_, r := ts.MustLinalgQr(a.T(), "r")
		a = torch.Of(r)
		m = d
	}
	if m == 0 {
		return nothing{}
	}
	reflectors, tau := approx.T(a).T().MustGeqrf(false)
	u := reflectors.MustNarrow(0, 0, int64(m), false).MustTriu(0, false)
	// Large rows first: each row then keeps its own digits.
	_, r := ts.MustLinalgQr(ts.MustCat([]*ts.Tensor{approx.T(torch.Of(u)).T(), approx.Eye(m, a).T()}, 0), "r")
	return &byRows{reflectors: torch.Of(reflectors), tau: torch.Of(tau), r: torch.Of(r), m: m, d: d}
}

type byRows struct {
	reflectors, tau torch.Tensor // Q
	r               torch.Tensor // R, [m, m]
	m, d            int
}

func (w *byRows) root(l torch.Tensor) torch.Tensor {
	turned := w.reflectors.T().MustOrmqr(w.tau.T(), l.T(), false, false, false)
	head := w.r.T().MustLinalgSolveTriangular(turned.MustNarrow(1, 0, int64(w.m), false), true, false, false, false)
	return torch.Of(ts.MustCat([]*ts.Tensor{head, turned.MustNarrow(1, int64(w.m), int64(w.d-w.m), false)}, 1))
}

func (w *byRows) solve(b torch.Tensor) torch.Tensor {
	b = b.Unsqueeze(1)
	turned := w.reflectors.T().MustOrmqr(w.tau.T(), b.T(), true, true, false)
	head, tail := turned.MustNarrow(0, 0, int64(w.m), false), turned.MustNarrow(0, int64(w.m), int64(w.d-w.m), false)
	// A gradient lies in the span of the rows, where it is divided by 1 + their squares. Outside of it there is only
	// rounding, which nothing would divide.
	rest, all := approx.Item(torch.Of(tail.MustNorm(false))), approx.Item(torch.Of(b.T().MustNorm(false)))
	if rest <= 16*math.Sqrt(float64(w.d))*method.Epsilon(b)*all {
		tail = tail.MustZerosLike(false)
	}
	head = approx.T(w.r).T().MustLinalgSolveTriangular(head, false, true, false, false)
	head = w.r.T().MustLinalgSolveTriangular(head, true, true, false, false)
	return torch.Of(w.reflectors.T().MustOrmqr(w.tau.T(), ts.MustCat([]*ts.Tensor{head, tail}, 0), true, false,
		false).MustSqueezeDim(1,
		false))
}

func (w *byRows) logDet() float64 { return logOf(w.r) }

// logOf is log |RᵀR| of a triangular R.
func logOf(r torch.Tensor) float64 {
	return 2 * approx.Item(torch.Of(r.T().MustDiagonal(0, 0, 1,
		false).MustAbs(false).MustLog(false).MustSum(r.T().DType(), false)))
}

// nothing is the update without data.
type nothing struct{}

func (nothing) root(l torch.Tensor) torch.Tensor  { return approx.Copy(l) }
func (nothing) solve(b torch.Tensor) torch.Tensor { return b }
func (nothing) logDet() float64                   { return 0 }

// conditionOn makes the update for a curvature M, [d, d], that has no factor, because it has negative eigenvalues: with
// the Cholesky factor C of I + M, W = C⁻ᵀ.
func conditionOn(m torch.Tensor) whitened {
	return &byMatrix{torch.Must(approx.Cholesky("the updated precision, in units of the predicted one,",
		m.Add(approx.Eye(size(m, 0), m)), "Outer must be log-concave in the outputs, and LR not too large"))}
}

type byMatrix struct{ c torch.Tensor }

func (w *byMatrix) root(l torch.Tensor) torch.Tensor {
	return torch.Of(approx.T(w.c).T().MustLinalgSolveTriangular(l.T(), true, false, false, false))
}

func (w *byMatrix) solve(b torch.Tensor) torch.Tensor {
	return torch.Of(b.Unsqueeze(1).T().MustCholeskySolve(w.c.T(), false, false).MustSqueezeDim(1, false))
}

func (w *byMatrix) logDet() float64 { return logOf(w.c) }

// size is one of a tensor's dimensions.
func size(x torch.Tensor, dim int) int { return x.Shape()[dim] }
