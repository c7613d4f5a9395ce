package score

import (
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/draws"
)

// EnsembleLimit is the extrapolation of a score to an ensemble of infinitely many members.
type EnsembleLimit struct {
	// Limit is C(∞) and SE its standard error, of independent errors of equal variance; NaN where there are 3 sizes only.
	Limit, SE float64
	// A1 and A2 are the coefficients of 1/S and 1/S².
	A1, A2 float64
	// Residual is the standard deviation of the residuals, sqrt(RSS/(n - 3)).
	Residual float64
}

// FitEnsembleLimit fits the scores C(S), such as the negative log likelihood, of ensembles of S members by least
// squares to
//
//	C(S) = C(∞) + a1/S + a2/S²
//
// which their expectations follow up to 1/S³ (Wenzel et al. 2020, appendix; from the expansion of a function of
// a mean). Leave out small ensembles (S < 20), where more terms matter. The scores should be of different
// members for each S, or be averages over many choices of members: those of nested ensembles are correlated, and
// SE is then too small.
//
// At least 3 different sizes are needed. [draws.ErrSize], [draws.ErrRange] for sizes below 1 and [diag.ErrNotFinite]
// are the errors.
func FitEnsembleLimit(sizes []int, scores []float64) (EnsembleLimit, error) {
	if len(sizes) != len(scores) {
		return EnsembleLimit{}, failf(draws.ErrSize, "ensemble limit: %d sizes and %d scores, want equally many",
			len(sizes), len(scores))
	}
	different := map[int]bool{}
	smallest := math.Inf(1)
	for i, s := range sizes {
		if s < 1 {
			return EnsembleLimit{}, failf(draws.ErrRange, "ensemble limit: size %d is %d, want at least 1", i, s)
		}
		if math.IsNaN(scores[i]) || math.IsInf(scores[i], 0) {
			return EnsembleLimit{}, failf(diag.ErrNotFinite, "ensemble limit: score %d is %v", i, scores[i])
		}
		different[s] = true
		smallest = min(smallest, float64(s))
	}
	if len(different) < 3 {
		return EnsembleLimit{}, failf(draws.ErrSize, "ensemble limit: %d different sizes, want at least 3",
			len(different))
	}
	n := len(sizes)
	x := mat.NewDense(n, 3, nil)
	for i, s := range sizes {
		u := smallest / float64(s) // columns of like size
		x.SetRow(i, []float64{1, u, u * u})
	}
	var qr mat.QR
	qr.Factorize(x)
	y := mat.NewVecDense(n, scores)
	var b mat.VecDense
	var inverse mat.Dense // R⁻¹ᵀ e, whose length is the standard error in units of the residual
	var r mat.Dense
	qr.RTo(&r)
	if err := qr.SolveVecTo(&b, false, y); err != nil {
		return EnsembleLimit{}, failf(draws.ErrRange, "ensemble limit: the sizes are too close to each other to extrapolate")
	}
	if err := inverse.Solve(r.Slice(0, 3, 0, 3).T(), mat.NewVecDense(3, []float64{1, 0, 0})); err != nil {
		return EnsembleLimit{}, failf(draws.ErrRange, "ensemble limit: the sizes are too close to each other to extrapolate")
	}
	var residual mat.VecDense
	residual.MulVec(x, &b)
	residual.SubVec(y, &residual)
	fit := EnsembleLimit{Limit: b.AtVec(0), A1: b.AtVec(1) * smallest, A2: b.AtVec(2) * smallest * smallest,
		SE: math.NaN(), Residual: math.NaN()}
	if n > 3 {
		fit.Residual = mat.Norm(&residual, 2) / math.Sqrt(float64(n-3))
		fit.SE = fit.Residual * mat.Norm(&inverse, 2)
	}
	return fit, nil
}

// At is the fitted score of an ensemble of s members.
func (e EnsembleLimit) At(s int) float64 {
	u := 1 / float64(s)
	return e.Limit + u*(e.A1+u*e.A2)
}
