package torch

import (
	"errors"
	"strings"
)

// HasNoFactors says whether an error is of linear algebra at a matrix that has no factors: not positive-definite,
// singular, or without convergence. Libtorch has no type for it; the words are in the messages of all versions from
// 1.13 on.
func HasNoFactors(err error) bool {
	var e *Error
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
