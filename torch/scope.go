package torch

import (
	"runtime"
	"sync/atomic"

	"github.com/sugarme/gotch/ts"
)

// Scope owns the tensors made while it is open.
type Scope struct {
	s atomic.Pointer[ts.KelvinScope] // nil once it is closed
}

// Do runs f with a scope of its own, on one OS thread, and frees what f made and did not keep. A panic of f with an
// [*Error] or a [Recoverable] is returned as an error. Scopes nest: what is kept goes to the scope around this one; an
// outermost scope hands it to the garbage collector. Another goroutine may use a tensor while its scope closes: it gets
// the result, or an error that says that the tensor was freed.
func Do(f func(s *Scope) error) (err error) {
	if f == nil {
		return errNoFunction
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	s := &Scope{}
	s.s.Store(ts.KelvinOpenScope())
	defer s.close()
	defer catch(&err)
	return f(s)
}

func (s *Scope) close() {
	s.s.Swap(nil).Close()
}

// Keep makes the tensors outlive the scope. A number, or a tensor of another scope, is left as it is.
func (s *Scope) Keep(tensors ...Tensor) {
	if s == nil {
		return
	}
	if open := s.s.Load(); open != nil {
		for _, t := range tensors {
			open.Keep(t.t)
		}
	}
}

// Owned is the number of tensors that closing the scope would free.
func (s *Scope) Owned() int {
	open := s.s.Load()
	if open == nil {
		return 0
	}
	return open.Owned()
}

// Detach takes tensors out of every scope: each lives until it is dropped or nothing refers to it any more.
func Detach(tensors ...Tensor) {
	for _, t := range tensors {
		if t.t != nil {
			t.t.Detached()
		}
	}
}

// Free gives the memory of tensors back now. Using one later is an error; freeing it again does nothing.
func Free(tensors ...Tensor) {
	for _, t := range tensors {
		if t.t != nil {
			t.t.MustDrop()
		}
	}
}

// Freed says whether the tensor's memory was given back; a number has none.
func Freed(t Tensor) bool { return t.t != nil && t.t.KelvinFreed() }

// UnscopedBytes is the size of all tensors that live outside any scope.
func UnscopedBytes() int { return int(ts.KelvinUnscopedBytes()) }

// NoGrad runs f without recording gradients, and then records again what was recorded before: it nests.
func NoGrad(f func() error) (err error) {
	if f == nil {
		return errNoFunction
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer ts.KelvinSetGradMode(ts.KelvinSetGradMode(false))
	defer catch(&err)
	return f()
}
