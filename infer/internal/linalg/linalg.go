// Package linalg is what curvature and the Gaussian approximations made of it share: checks of matrices and of batches.
package linalg

import (
	"errors"
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// ErrIndefinite says that a matrix is not positive definite.
var ErrIndefinite = errors.New("not positive definite")

// Cholesky returns the lower factor L of a symmetric matrix L Lᵀ, [d, d], or of several, [K, d, d]. The error of one
// that is not positive definite wraps [ErrIndefinite]; it begins with what the matrix is, and ends with what to do
// about it.
func Cholesky(what string, m *ts.Tensor, remedy string) (l *ts.Tensor, err error) {
	err = torch.Do(func(scope *torch.Scope) error {
		var status *ts.Tensor
		l, status = m.MustLinalgCholeskyEx(false, false, false)
		failed, err := torch.Item(status.MustAbs(false).MustMax(false))
		if err != nil {
			return err
		}
		finite, err := torch.Item(m.MustIsfinite(false).MustAll(false))
		if err != nil {
			return err
		}
		if finite == 0 {
			return fmt.Errorf("%s has elements that are not finite: %w", what, infer.ErrNonFinite)
		}
		if failed != 0 {
			least, err := torch.Item(m.MustLinalgEigvalsh("L", false).MustMin(false))
			if err != nil {
				return err
			}
			return fmt.Errorf("%s is %w, its smallest eigenvalue is %g: %s", what, ErrIndefinite, least, remedy)
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
		asymmetry, err := torch.Item(m.MustSub(m.MustTranspose(-2, -1, false), false).MustAbs(false).MustMax(false))
		if err != nil {
			return err
		}
		largest, err := torch.Item(m.MustAbs(false).MustMax(false))
		if err != nil || !(asymmetry > 1e-6*largest) {
			return err
		}
		return &infer.FieldError{Type: method, Field: field, Value: fmt.Sprintf("not symmetric: elements differ from their "+
			"mirror images by up to %g", asymmetry),
			Allowed: "it must be symmetric"}
	})
}

// Epsilon is the distance from 1 to the next number of a tensor's type, float64 or float32.
func Epsilon(x *ts.Tensor) float64 {
	if x.DType() == gotch.Float {
		return 0x1p-23
	}
	return 0x1p-52
}

// Unsized says that a batch does not count data: it is empty, for a log posterior that holds its data itself, it has a
// tensor of shape [], or its tensors have different first dimensions, as those of two plates have. A log posterior can
// take such a batch, a sum over its data cannot. longest is the largest first dimension.
func Unsized(b infer.Batch) (unsized bool, longest int64) {
	shortest := int64(math.MaxInt64)
	for _, t := range b {
		shape, err := torch.Shape(t)
		if err != nil {
			return false, 0 // which is another mistake
		}
		if len(shape) == 0 {
			unsized = true
			continue
		}
		shortest, longest = min(shortest, shape[0]), max(longest, shape[0])
	}
	return unsized || len(b) == 0 || shortest < longest, longest
}
