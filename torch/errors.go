package torch

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/sugarme/gotch/ts"
)

// Error is a failure of a tensor operation. See the fields for what it carries.
type Error = ts.Error

func init() {
	if _, file, _, ok := runtime.Caller(0); ok {
		ts.KelvinHide(file)
		root := filepath.ToSlash(filepath.Dir(filepath.Dir(file)))
		methods = root + "/infer/"
		for _, room := range []string{"torch", "dist", "dist/bijector", "dist/support", "ppl", "infer", "ode"} {
			rooms[root+"/"+room] = true
		}
	}
}

// rooms are the folders of the packages that a model calls, and those of the methods are in one folder. A line in one
// of them does not help a user; errors name the line of the user's own code that called it.
var (
	rooms   = map[string]bool{}
	methods string
)

// inRoom says whether a frame is in one of the rooms; their tests are not.
func inRoom(f runtime.Frame) bool {
	i := strings.LastIndexByte(f.File, '/')
	in := i > 0 && rooms[f.File[:i]] || methods != "" && strings.HasPrefix(f.File, methods)
	return in && !strings.HasSuffix(f.File, "_test.go")
}

// machinery says whether a function is one of Go's or gotch's own.
func machinery(function string) bool {
	for _, prefix := range []string{"runtime.", "reflect.", "testing.", "github.com/sugarme/gotch/"} {
		if strings.HasPrefix(function, prefix) {
			return true
		}
	}
	return function == ""
}

// asked finds who asked for what is running now, or was running when the panic that is being recovered from began. line
// is the innermost line outside the rooms, "" if all lines are inside. first is the first line outside this package and
// gotch.
func asked() (line, first string) {
	var pcs [256]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		f, more := frames.Next()
		if f.Function == "runtime.gopanic" {
			first = "" // what is above only passed the panic on
		}
		if !machinery(f.Function) {
			file := f.File
			if i := strings.LastIndexByte(file, '/'); i > 0 {
				file = file[strings.LastIndexByte(file[:i], '/')+1:]
			}
			at := fmt.Sprintf("%s:%d", file, f.Line)
			if first == "" && !(inRoom(f) && strings.HasPrefix(file, "torch/")) {
				first = at
			}
			if !inRoom(f) {
				return at, first
			}
		}
		if !more {
			return "", first
		}
	}
}

// located is an error with the line of the user's code that asked for what failed.
type located struct {
	error
	line string
}

func (e *located) Error() string { return fmt.Sprintf("%v (at %s)", e.error, e.line) }
func (e *located) Unwrap() error { return e.error }

// locate puts the user's line into an error that a panic carries: where gotch found a line inside one of Kelvin's
// packages, or the error knows none.
func locate(err error) error {
	line, first := asked()
	if line == "" {
		return err
	}
	if e, ok := err.(*Error); ok {
		if e.At == "" || e.At == first {
			e.At = line
		}
		return e
	}
	return &located{err, line}
}

// misused is a mistake in the use of this package.
type misused struct{ text string }

func misuse(format string, args ...any) *misused { return &misused{fmt.Sprintf(format, args...)} }

// errNoFunction is the error of a function that was asked to call nil.
var errNoFunction = misuse("the function is nil")

func (*misused) RecoverAsError() {}

func (e *misused) Error() string { return "torch: " + e.text }

// Recoverable is an error that code inside [Do], [Vmap] and the gradients may panic with, to have it returned as an
// error. The error returned wraps it and names the line of the user's code from which the panic came. Any other panic
// goes through unchanged.
type Recoverable interface {
	error
	// RecoverAsError marks the type.
	RecoverAsError()
}

// ErrNotScalar is wrapped by the error of a gradient of something that is not a scalar.
var ErrNotScalar = errors.New("not a scalar")

// ErrNoGradient is wrapped by the error of a gradient of something that does not depend on the inputs.
var ErrNoGradient = errors.New("does not depend on the inputs")

// Must returns v, or panics with err, for use inside Do. It is for errors of this package and of gotch; another error
// is wrapped so that Do returns it too.
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
		*err = locate(r)
	case wrapped:
		*err = r.error
	case Recoverable:
		*err = locate(r)
	default:
		panic(r)
	}
}
