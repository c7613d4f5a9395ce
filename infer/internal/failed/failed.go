// Package failed tells errors of a point from errors of a model.
package failed

import (
	"errors"
	"strings"

	"github.com/kelvin-ppl/kelvin/torch"
)

// Factorisation says whether an error is of linear algebra at a matrix that has no factors: not positive-definite,
// singular, or without convergence. Libtorch has no type for it; the words are in the messages of all versions from
// 1.13 on.
func Factorisation(err error) bool {
	var e *torch.Error
	if !errors.As(err, &e) {
		return false
	}
	text := e.Error()
	if !strings.Contains(text, "linalg") && !strings.Contains(text, "cholesky") {
		return false
	}
	for _, words := range []string{
		"not positive-definite", "could not be completed", "singular", "failed to converge", "ill-conditioned",
	} {
		if strings.Contains(text, words) {
			return true
		}
	}
	return false
}
