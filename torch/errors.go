package torch

import (
	"errors"
	"runtime"

	"github.com/sugarme/gotch/ts"
)

// Error is a failure of a tensor operation. See the fields for what it carries.
type Error = ts.Error

func init() {
	if _, file, _, ok := runtime.Caller(0); ok {
		ts.KelvinHide(file)
	}
}

// Recoverable is an error that code inside [Do], [Vmap] and the gradients may panic with, to have it returned as an
// error. Any other panic goes through unchanged.
type Recoverable interface {
	error
	// RecoverAsError marks the type.
	RecoverAsError()
}

// ErrNotScalar is wrapped by the error of a gradient of something that is not a scalar.
var ErrNotScalar = errors.New("not a scalar")

// ErrNoGradient is wrapped by the error of a gradient of something that does not depend on the inputs.
var ErrNoGradient = errors.New("does not depend on the inputs")

// Must returns v, or panics with err, for use inside Do. It is for errors of this package and of gotch; another error is
// wrapped so that Do returns it too.
func Must[T any](v T, err error) T {
	if err != nil {
		panic(asPanic(err))
	}
	return v
}

// wrapped carries any error through a panic.
type wrapped struct{ error }

func (wrapped) RecoverAsError() {}
func (w wrapped) Unwrap() error { return w.error }

func asPanic(err error) error {
	var e *Error
	if errors.As(err, &e) && e == err {
		return e
	}
	if r, ok := err.(Recoverable); ok {
		return r
	}
	return wrapped{err}
}

// catch turns a typed panic into *err. It is deferred.
func catch(err *error) {
	switch r := recover().(type) {
	case nil:
	case *Error:
		*err = r
	case wrapped:
		*err = r.error
	case Recoverable:
		*err = r
	default:
		panic(r)
	}
}
