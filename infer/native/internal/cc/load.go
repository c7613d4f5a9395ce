package cc

/*
#cgo linux LDFLAGS: -ldl
#include "load.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"
)

// Program is compiled code in memory.
type Program struct {
	Prologue, Main unsafe.Pointer // of type kelvin_fn

	mu     sync.Mutex
	handle unsafe.Pointer
	fd     C.int
}

// Close takes the code out of memory. No call may be in progress or come later. Closing again does nothing.
func (p *Program) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.handle == nil {
		return nil
	}
	C.kelvin_cc_unload(p.handle, p.fd)
	p.handle, p.Prologue, p.Main = nil, nil, nil
	return nil
}

// load takes the bytes of a shared object into memory, these very bytes: they are no file that others could change.
func load(object []byte) (*Program, error) {
	if len(object) == 0 {
		return nil, errors.New("cc: an empty object")
	}
	l := C.kelvin_cc_load(unsafe.Pointer(&object[0]), C.size_t(len(object)))
	if l.error != nil {
		defer C.kelvin_cc_free(unsafe.Pointer(l.error))
		return nil, fmt.Errorf("cc: the object does not load: %s", C.GoString(l.error))
	}
	p := &Program{handle: l.handle, fd: l.fd}
	version, err := p.symbol("kelvin_abi")
	if err == nil {
		if v := *(*C.int)(version); v != Version {
			err = fmt.Errorf("cc: the object is for interface %d, this program for %d", v, Version)
		}
	}
	if err == nil {
		p.Prologue, err = p.symbol("kelvin_prologue")
	}
	if err == nil {
		p.Main, err = p.symbol("kelvin_main")
	}
	if err != nil {
		_ = p.Close()
		return nil, err
	}
	return p, nil
}

// symbol is the address of a name that the object defines.
func (p *Program) symbol(name string) (unsafe.Pointer, error) {
	c := C.CString(name)
	defer C.kelvin_cc_free(unsafe.Pointer(c))
	s := C.kelvin_cc_symbol(p.handle, c)
	if s == nil {
		return nil, fmt.Errorf("cc: the object has no %s", name)
	}
	return s, nil
}

// libmvec is the version of glibc whose vector functions are at hand, as 235 for 2.35; 0 without vector functions.
var libmvec = sync.OnceValue(func() int { return int(C.kelvin_cc_libmvec()) })
