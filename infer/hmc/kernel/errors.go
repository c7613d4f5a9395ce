package kernel

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// ErrNonFinite is, for errors.Is, the error of a start at which the density or its gradient is not finite.
var ErrNonFinite = errors.New("not finite")

var (
	errConfig   = errors.New("invalid configuration")
	errStepSize = errors.New("no step size found")
	errFlat     = fmt.Errorf("%w", errStepSize) // however wide it is
	errSnapshot = errors.New("snapshot does not fit")
)

// FieldError is a field of a configuration with a value that is not allowed. That of a snapshot that does not fit is
// "Resume".
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

// Unwrap tells a snapshot that does not fit from other fields.
func (e *FieldError) Unwrap() error {
	if e.Field == "Resume" {
		return errSnapshot
	}
	return errConfig
}

// checks looks at the fields of a configuration, and keeps the first error.
type checks struct {
	typ string
	err error
}

// add keeps an error, if it is the first.
func (c *checks) add(err error) {
	if c.err == nil {
		c.err = err
	}
}

// require says what is allowed where a field is not right.
func (c *checks) require(right bool, field string, value any, allowed string) {
	if !right {
		c.add(&FieldError{c.typ, field, value, allowed})
	}
}

// positive is the default where v is zero, and checks that the value is a positive finite number.
func (c *checks) positive(field string, v *float64, def float64) {
	if *v == 0 {
		*v = def
	}
	c.require(*v > 0 && finite(*v), field, *v, "it must be a positive number")
}

// atLeast is the default where v is zero, and checks a lower bound.
func (c *checks) atLeast(field string, v *int, def, low int) {
	if *v == 0 {
		*v = def
	}
	c.require(*v >= low, field, *v, fmt.Sprintf("it must be at least %d", low))
}

// optional is for counts where zero is a choice of its own: 0 is the default and None is zero.
func (c *checks) optional(field string, v *int, def int) {
	switch *v {
	case 0:
		*v = def
	case None:
		*v = 0
	}
	c.require(*v >= 0, field, *v, "it must not be negative, except None")
}

// misfit is the error of a snapshot that does not fit.
func misfit(format string, args ...any) error {
	return &FieldError{Type: "kernel.Options", Field: "Resume", Value: "a snapshot that does not fit",
		Allowed: fmt.Sprintf(format, args...)}
}

// chainError is an error that one chain ended with; it ends the run.
type chainError struct {
	Chain int
	Err   error
}

// Error names the chain.
func (e *chainError) Error() string { return fmt.Sprintf("chain %d: %v", e.Chain, e.Err) }

// Unwrap gives the chain's own error.
func (e *chainError) Unwrap() error { return e.Err }

// PanicError is a panic of a function of the user's (a density, a recorder, a hook), made an error.
type PanicError struct {
	In    string // which function, for example "density"
	Value any    // what it panicked with
	Stack string // where
}

// caught makes a panic in a function of the user's the error of the one that defers it.
func caught(in string, err *error) {
	if r := recover(); r != nil {
		*err = &PanicError{in, r, string(debug.Stack())}
	}
}

// Error names the function and the value. The stack is in the field.
func (e *PanicError) Error() string { return fmt.Sprintf("panic in the %s: %v", e.In, e.Value) }

// Unwrap gives the value if it was an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}
