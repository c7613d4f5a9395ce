package approx

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// farther says how far the fit would be off where the posterior is normal, from draws x, [n, d], and the gradients of
// the log density there: those of N(m, P⁻¹) are P(m − x), so that a linear regression of them on x gives m and P
// exactly, however far the draws are. It is empty where the gradients are not those of a normal distribution: where a
// line leaves more than a tenth of the variance of one, or P is not positive definite.
func farther(x, grads []float64, layout *infer.Layout) string {
	d := layout.Dim()
	n := len(x) / d
	if n < 2*d+2 {
		return ""
	}
	means, sds := make([]float64, d), make([]float64, d)
	design, slopes := mat.NewDense(n, d+1, nil), mat.NewDense(n, d, grads)
	for j := range d {
		column := mat.Col(nil, j, mat.NewDense(n, d, x))
		means[j], sds[j] = stat.PopMeanStdDev(column, nil)
		if !(sds[j] > 0) {
			return ""
		}
		for i, v := range column {
			design.Set(i, j, (v-means[j])/sds[j])
			design.Set(i, d, 1)
		}
	}
	var fit, residual mat.Dense
	if fit.Solve(design, slopes) != nil {
		return ""
	}
	residual.Mul(design, &fit)
	residual.Sub(slopes, &residual)
	precision, pull := mat.NewSymDense(d, nil), mat.NewVecDense(d, nil) // in the units z = (x − mean)/sd
	for j := range d {
		all := mat.Col(nil, j, slopes)
		if !(stat.Variance(mat.Col(nil, j, &residual), nil) <= 0.1*stat.Variance(all, nil)) {
			return ""
		}
		pull.SetVec(j, fit.At(d, j)*sds[j])
		for i := range j + 1 {
			precision.SetSym(i, j, -(fit.At(i, j)*sds[j]+fit.At(j, i)*sds[i])/2)
		}
	}
	var factor mat.Cholesky
	var shift mat.VecDense
	cov := mat.NewSymDense(d, nil)
	if !factor.Factorize(precision) || factor.SolveVecTo(&shift, pull) != nil || factor.InverseTo(cov) != nil {
		return ""
	}
	moved, scaled := 0, 0
	for j := range d {
		if math.Abs(shift.AtVec(j)) > math.Abs(shift.AtVec(moved)) {
			moved = j
		}
		if math.Abs(math.Log(cov.At(j, j))) > math.Abs(math.Log(cov.At(scaled, scaled))) {
			scaled = j
		}
	}
	return fmt.Sprintf(" By the gradients at the draws the mean of the posterior is about %.2g standard deviations of "+
		"the fit from the fit's, for %s, and the standard deviation about %.2g times the fit's, for %s, on unconstrained "+
		"space.", math.Abs(shift.AtVec(moved)), layout.At(moved), math.Sqrt(cov.At(scaled, scaled)), layout.At(scaled))
}
