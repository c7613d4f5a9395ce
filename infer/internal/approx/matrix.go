package approx

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Cholesky returns the lower factor L of a symmetric matrix L Lᵀ, [d, d], or of several, [K, d, d]. The error of one
// that is not positive definite wraps [curvature.ErrIndefinite]; it begins with what the matrix is, and ends with what
// to do about it.
func Cholesky(what string, m torch.Tensor, remedy string) (l torch.Tensor, err error) {
	err = torch.Do(func(scope *torch.Scope) error {
		factor, status := m.T().MustLinalgCholeskyEx(false, false, false)
		l = torch.Of(factor)
		if Item(torch.Of(m.T().MustIsfinite(false).MustAll(false))) == 0 {
			return fmt.Errorf("%s has elements that are not finite: %w", what, infer.ErrNonFinite)
		}
		if Item(torch.Of(status.MustAbs(false).MustMax(false))) != 0 {
			least := Item(torch.Of(m.T().MustLinalgEigvalsh("L", false).MustMin(false)))
			return fmt.Errorf("%s is %w, its smallest eigenvalue is %g: %s", what, curvature.ErrIndefinite, least, remedy)
		}
		scope.Keep(l)
		return nil
	})
	return l, err
}

// CheckSymmetric checks a matrix, or several, that were given in a field of a configuration: up to rounding they must
// be symmetric.
func CheckSymmetric(method, field string, m torch.Tensor) error {
	return torch.Do(func(*torch.Scope) error {
		asymmetry := Item(torch.Of(m.Sub(T(m)).Abs().T().MustMax(false)))
		if !(asymmetry > 1e-6*Item(torch.Of(m.Abs().T().MustMax(false)))) {
			return nil
		}
		return &infer.FieldError{Type: method, Field: field, Value: fmt.Sprintf("not symmetric: elements differ from their "+
			"mirror images by up to %g", asymmetry),
			Allowed: "it must be symmetric"}
	})
}
