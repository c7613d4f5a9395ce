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
		for _, room := range []string{"torch", "dist", "dist/bijector", "dist/support", "ppl", "infer"} {
			rooms[root+"/"+room] = true
		}
	}
}

// rooms are the folders of the packages that a model calls. A line in one of them does not help a user; errors name the
// line of the user's own code that called it.
var rooms = map[string]bool{}

// inRoom says whether a frame is in one of the rooms; their tests are not.
func inRoom(f runtime.Frame) bool {
	i := strings.LastIndexByte(f.File, '/')
	return i > 0 && rooms[f.File[:i]] && !strings.HasSuffix(f.File, "_test.go")
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

// asked is the line outside the rooms that asked for what is running now, or was running when the panic that is being
// recovered from began; empty where there is none. first is the first line outside this package and gotch.
func asked() (line, first string) {
	var pcs [256]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		f, more := frames.Next()
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

// located is a [Recoverable] that wants to know the line of the user's code that asked for what failed.
type located interface{ Locate(line string) }

// locate puts the user's line into an error that a panic carries: where gotch found a line inside one of Kelvin's
// packages, or the error does not know one.
func locate(v any) {
	switch e := v.(type) {
	case *Error:
		if line, first := asked(); line != "" && (e.At == "" || e.At == first) {
			e.At = line
		}
	case located:
		line, _ := asked()
		e.Locate(line)
	}
}

// misused is a mistake in the use of this package.
type misused struct{ text, at string }

func misuse(format string, args ...any) *misused {
	e := &misused{text: fmt.Sprintf(format, args...)}
	e.at, _ = asked()
	return e
}

func (*misused) RecoverAsError() {}

func (e *misused) Error() string {
	if e.at == "" {
		return "torch: " + e.text
	}
	return fmt.Sprintf("torch: %s (at %s)", e.text, e.at)
}

// Recoverable is an error that code inside [Do], [Vmap] and the gradients may panic with, to have it returned as an
// error. Any other panic goes through unchanged. A Recoverable that has a method Locate(line string) is told the line
// of the user's code, "model/model.go:12", from which the panic came.
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
	r := recover()
	if r != nil {
		locate(r)
	}
	switch r := r.(type) {
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
