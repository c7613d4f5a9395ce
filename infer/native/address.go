package native

import (
	"errors"
	"unsafe"
)

// Work is how many bytes of scratch a call needs at kelvin_call.work, for C code that makes several calls at once.
func (f *Func) Work() int {
	if f.replay != nil {
		return 0
	}
	return f.layout.Scratch + f.code.work
}

// Addresses are what C code needs to call a function itself, see abi.h: the main part, the prologue (nil for none), and
// the call that both get, in which point, weight, value, gradient and outputs are to be filled in. No other goroutine
// may use them; they hold until done is called. A replay has none.
func (f *Func) Addresses() (main, prologue, call unsafe.Pointer, done func(), err error) {
	if f.replay != nil {
		return nil, nil, nil, nil, errors.New("native: a replay is no C function")
	}
	w, err := f.workspace()
	if err != nil {
		return nil, nil, nil, nil, err
	}
	if len(f.plan.Prologue) > 0 {
		prologue = f.code.prologue
	}
	return f.code.main, prologue, unsafe.Pointer(w.call), func() { f.calls.Put(w) }, nil
}
