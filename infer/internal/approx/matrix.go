package approx

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// Cholesky returns the lower factor L of a symmetric matrix L Lᵀ, [d, d], or of several, [K, d, d]. The error of one
// that is not positive definite wraps [curvature.ErrIndefinite]; it begins with what the matrix is, and ends with what
// to do about it.
func Cholesky(what string, m *ts.Tensor, remedy string) (l *ts.Tensor, err error) {
	err = torch.Do(func(scope *torch.Scope) error {
		var status *ts.Tensor
		l, status = m.MustLinalgCholeskyEx(false, false, false)
		if Item(m.MustIsfinite(false).MustAll(false)) == 0 {
			return fmt.Errorf("%s has elements that are not finite: %w", what, infer.ErrNonFinite)
		}
		if Item(status.MustAbs(false).MustMax(false)) != 0 {
			least := Item(m.MustLinalgEigvalsh("L", false).MustMin(false))
			return fmt.Errorf("%s is %w, its smallest eigenvalue is %g: %s", what, curvature.ErrIndefinite, least, remedy)
		}
		scope.Keep(l)
		return nil
	})
	return l, err
}

// CheckSymmetric checks a matrix, or several, that were given in a field of a configuration: up to rounding they must
// be symmetric.
func CheckSymmetric(method, field string, m *ts.Tensor) error {
	return torch.Do(func(*torch.Scope) error {
		asymmetry := Item(m.MustSub(T(m), false).MustAbs(false).MustMax(false))
		if !(asymmetry > 1e-6*Item(m.MustAbs(false).MustMax(false))) {
			return nil
		}
		return &infer.FieldError{Type: method, Field: field, Value: fmt.Sprintf("not symmetric: elements differ from their "+
			"mirror images by up to %g", asymmetry),
			Allowed: "it must be symmetric"}
	})
}
