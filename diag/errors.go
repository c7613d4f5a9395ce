package diag

import (
	"errors"
	"fmt"
)

// ErrRange is wrapped by the error of an argument outside its range: a probability, a threshold, a size.
var ErrRange = errors.New("out of range")

// ErrSize is wrapped by the error of slices whose lengths do not fit together.
var ErrSize = errors.New("wrong size")

// ErrNoDraws is wrapped by the error of a summary or a diagnosis of a container in which some chain has no draws.
var ErrNoDraws = errors.New("no draws")

// ErrNotFinite is wrapped by the error of an input with a NaN, or with an infinity where none has a meaning.
var ErrNotFinite = errors.New("not finite")

// ErrNoConvergence is wrapped by the error of an optimisation that did not reach its tolerance.
var ErrNoConvergence = errors.New("no convergence")

// ErrSeparable is wrapped by the error of a temperature scaling whose best temperature is 0: every case is predicted right.
var ErrSeparable = errors.New("separable")

// failure is an error with its own text, of one of the kinds above.
type failure struct {
	kind error
	text string
}

func (f *failure) Error() string { return "diag: " + f.text }
func (f *failure) Unwrap() error { return f.kind }

func failf(kind error, format string, args ...any) error {
	return &failure{kind, fmt.Sprintf(format, args...)}
}
