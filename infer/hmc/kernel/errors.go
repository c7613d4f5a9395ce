package kernel

import (
	"errors"
	"fmt"
	"math"
)

// Errors that can be asked for with errors.Is.
var (
	ErrConfig    = errors.New("invalid configuration")
	ErrNonFinite = errors.New("not finite")
	ErrStepSize  = errors.New("no step size found")
	ErrSnapshot  = errors.New("snapshot does not fit")
)

// FieldError is a field of a configuration with a value that is not allowed.
type FieldError struct {
	Type    string // of the configuration, for example "kernel.NUTS"
	Field   string
	Value   any
	Allowed string // what would be right
}

// Error names the field, its value and what is allowed.
func (e *FieldError) Error() string {
	return fmt.Sprintf("%s: %s is %v: %s", e.Type, e.Field, e.Value, e.Allowed)
}

// Unwrap makes the error an ErrConfig.
func (e *FieldError) Unwrap() error { return ErrConfig }

// ChainError is an error that one chain ended with; it ends the run.
type ChainError struct {
	Chain int
	Err   error
}

// Error names the chain.
func (e *ChainError) Error() string { return fmt.Sprintf("chain %d: %v", e.Chain, e.Err) }

// Unwrap gives the chain's own error.
func (e *ChainError) Unwrap() error { return e.Err }

// PanicError is a panic of a function of the user's (a density, an observer, a hook), made an error.
type PanicError struct {
	In    string // which function, for example "density"
	Value any    // what it panicked with
	Stack string // where
}

// Error names the function and the value. The stack is in the field.
func (e *PanicError) Error() string { return fmt.Sprintf("panic in the %s: %v", e.In, e.Value) }

// Unwrap gives the value if it was an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// allFinite multiplies by zero: the sum is zero unless something is infinite or not a number.
func allFinite(v []float64) bool {
	s := 0.0
	for _, e := range v {
		s += 0 * e
	}
	return s == 0
}

// positive is the default where v is zero, and checks that the value is a positive finite number.
func positive(typ, field string, v *float64, def float64) error {
	if *v == 0 {
		*v = def
	}
	if !(*v > 0) || !finite(*v) {
		return &FieldError{typ, field, *v, "it must be a positive number"}
	}
	return nil
}

// atLeast is the default where v is zero, and checks a lower bound.
func atLeast(typ, field string, v *int, def, low int) error {
	if *v == 0 {
		*v = def
	}
	if *v < low {
		return &FieldError{typ, field, *v, fmt.Sprintf("it must be at least %d", low)}
	}
	return nil
}

// optional is for counts where zero is a choice of its own: 0 is the default and None is zero.
func optional(typ, field string, v *int, def int) error {
	switch {
	case *v == 0:
		*v = def
	case *v == None:
		*v = 0
	case *v < 0:
		return &FieldError{typ, field, *v, "it must not be negative, except None"}
	}
	return nil
}

// None is the value of a count whose zero value stands for its default, where none at all is wanted.
const None = -1
