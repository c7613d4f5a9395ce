package native

// #cgo CFLAGS: -O2 -I${SRCDIR}/internal/cc
// #cgo noescape kelvin_native_eval
// #cgo nocallback kelvin_native_eval
// #cgo noescape kelvin_native_rows
// #cgo nocallback kelvin_native_rows
// #include <stdlib.h>
// #include "run.h"
import "C"

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"unsafe"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
	"github.com/kelvin-ppl/kelvin/infer/native/internal/vm"
	"github.com/kelvin-ppl/kelvin/internal/thread"
)

// code is a plan that can be called.
type code struct {
	prologue, main, self unsafe.Pointer
	work                 int // bytes of scratch that a call needs beyond the layout's
	close                func()
}

// owned is code that is closed when no function has it any more.
type owned struct{ code }

func own(c code) *owned {
	o := &owned{c}
	if c.close != nil {
		runtime.AddCleanup(o, func(done func()) { done() }, c.close)
	}
	return o
}

// block is memory of C, aligned for vectors, which lives as long as its owner.
type block struct{ at unsafe.Pointer }

func newBlock(bytes int) (*block, error) {
	p := C.kelvin_native_block(C.long(bytes))
	if p == nil {
		return nil, fmt.Errorf("native: no memory for %d bytes", bytes)
	}
	b := &block{p}
	runtime.AddCleanup(b, func(p unsafe.Pointer) { C.free(p) }, p)
	return b, nil
}

// Func is a compiled log density on a batch. It is safe for concurrent use, but for Set.
type Func struct {
	plan     *ir.Plan
	layout   ir.Layout
	code     *owned
	consts   *block
	prepared *block
	inputs   *block
	held     *held // what holds the memory of the inputs
	calls    sync.Pool
	replay   *replay // instead of all of these; nil for a plan
	watch    func(x []float64)
}

// newFunc makes a function of code that runs a plan. It has no batch yet.
func newFunc(p *ir.Plan, c *owned) (f *Func, err error) {
	f = &Func{plan: p, layout: p.Place(), code: c, held: &held{}}
	runtime.AddCleanup(f, func(h *held) { h.free() }, f.held)
	if f.consts, err = newBlock(f.layout.Const); err != nil {
		return nil, err
	}
	if f.prepared, err = newBlock(f.layout.Prepared); err != nil {
		return nil, err
	}
	if f.inputs, err = newBlock(8 * len(p.Inputs)); err != nil {
		return nil, err
	}
	block := unsafe.Slice((*byte)(f.consts.at), max(f.layout.Const, 1))
	for i, b := range p.Buffers {
		if b.Kind != ir.Const {
			continue
		}
		at := block[f.layout.Offset[i]:]
		for k, v := range b.Data {
			if b.Elem == ir.I32 {
				binary.NativeEndian.PutUint32(at[4*k:], uint32(int32(v)))
			} else {
				binary.NativeEndian.PutUint64(at[8*k:], math.Float64bits(v))
			}
		}
	}
	return f, nil
}

// Dim is the number of parameters.
func (f *Func) Dim() int {
	if f.replay != nil {
		return f.replay.dim
	}
	return f.plan.Dim
}

// Outputs are what Rows computes besides values and gradients, in its order.
func (f *Func) Outputs() []ir.Slot {
	if f.replay != nil {
		return f.replay.outputs
	}
	return f.plan.Outputs
}

// Watch makes each evaluation call see with a point whose value is finite and whose gradient is NaN. Calls come from
// all goroutines that evaluate, and x is used during the call only.
func (f *Func) Watch(see func(x []float64)) { f.watch = see }

// seen tells who watches.
func (f *Func) seen(x []float64, value float64, grad []float64) {
	if f.watch == nil || math.IsNaN(value) || math.IsInf(value, 0) {
		return
	}
	sum := 0.0
	for _, g := range grad {
		sum += g * 0 // NaN of an infinite one too
	}
	if sum != 0 && slices.ContainsFunc(grad, math.IsNaN) {
		f.watch(x)
	}
}

func (f *Func) seenRows(x, values, grad []float64) {
	d := f.Dim()
	for i, v := range values {
		f.seen(x[i*d:(i+1)*d], v, grad[i*d:(i+1)*d])
	}
}

// prepare runs the prologue on the batch whose addresses are in place.
func (f *Func) prepare() error {
	if len(f.plan.Prologue) == 0 {
		return nil
	}
	w, err := f.workspace()
	if err != nil {
		return err
	}
	defer f.calls.Put(w)
	if C.kelvin_native_prepare(f.code.prologue, w.call) != 0 {
		return errIndex
	}
	return nil
}

var errIndex = errors.New("native: the batch has an index that is negative, not whole, or not below the size of " +
	"what it selects from")

// workspace is what one call at a time needs.
type workspace struct {
	call *C.kelvin_call
	work *block
	aux  *block
	host *block
}

// workspace takes one that is free, or makes one.
func (f *Func) workspace() (*workspace, error) {
	if w, ok := f.calls.Get().(*workspace); ok {
		return w, nil
	}
	w := &workspace{}
	var err error
	if w.work, err = newBlock(f.layout.Scratch + f.code.work); err != nil {
		return nil, err
	}
	if w.aux, err = newBlock(24 * len(f.plan.Outputs)); err != nil {
		return nil, err
	}
	if w.host, err = newBlock(int(unsafe.Sizeof(C.kelvin_call{}))); err != nil {
		return nil, err
	}
	w.call = (*C.kelvin_call)(w.host.at)
	w.call.self = f.code.self
	w.call.inputs = (*unsafe.Pointer)(f.inputs.at)
	w.call.consts = (*C.char)(f.consts.at)
	w.call.prepared = (*C.char)(f.prepared.at)
	w.call.work = (*C.char)(w.work.at)
	w.call.dense = (*C.kelvin_dense)(vm.Dense())
	w.call.share = (*[0]byte)(thread.Share())
	return w, nil
}

// Eval is the value at x, Dim numbers, with the gradient in grad: log density + weight · log |Jacobian|. It is NaN
// where the density has none. Outputs are not kept. The error is of an x or a grad that has not Dim numbers, or of
// memory that there is not.
func (f *Func) Eval(x []float64, weight float64, grad []float64) (float64, error) {
	if d := f.Dim(); len(x) != d || len(grad) != d {
		return math.NaN(), fmt.Errorf("native: Eval at %d numbers with room for %d of the gradient, expected %d of each",
			len(x), len(grad), d)
	}
	if len(f.Outputs()) > 0 || f.replay != nil {
		return f.evalWithOutputs(x, weight, grad)
	}
	w, err := f.workspace()
	if err != nil {
		return math.NaN(), err
	}
	var value float64
	C.kelvin_native_eval(f.code.main, w.call, (*C.double)(unsafe.SliceData(x)), C.double(weight),
		(*C.double)(&value), (*C.double)(unsafe.SliceData(grad)))
	f.calls.Put(w)
	runtime.KeepAlive(f)
	f.seen(x, value, grad)
	return value, nil
}

// evalWithOutputs is Eval of a function that has outputs, which need room.
func (f *Func) evalWithOutputs(x []float64, weight float64, grad []float64) (float64, error) {
	aux := make([][]float64, len(f.Outputs()))
	for i, o := range f.Outputs() {
		aux[i] = make([]float64, o.Len())
	}
	value := [1]float64{math.NaN()}
	err := f.Rows(x, weight, value[:], grad, aux)
	return value[0], err
}

// Rows evaluates K points, one after the other: x and grad have K rows of Dim numbers, values K, and each of aux K
// times the numbers of its output.
func (f *Func) Rows(x []float64, weight float64, values, grad []float64, aux [][]float64) error {
	k, d := len(values), f.Dim()
	if len(x) != k*d || len(grad) != k*d || len(aux) != len(f.Outputs()) {
		return fmt.Errorf("native: %d points of %d and %d numbers, with %d outputs", k, len(x), len(grad), len(aux))
	}
	if k == 0 {
		return nil
	}
	if f.replay != nil {
		if err := f.replay.all(x, weight, values, grad, aux); err != nil {
			return err
		}
		f.seenRows(x, values, grad)
		return nil
	}
	w, err := f.workspace()
	if err != nil {
		return err
	}
	defer f.calls.Put(w)
	n := len(aux)
	var pin runtime.Pinner
	defer pin.Unpin()
	// Addresses are written as numbers: a store of a pointer would show the collector the one before, whose memory is
	// free.
	first := unsafe.Slice((*uintptr)(w.aux.at), 3*n)
	for i, a := range aux {
		size := f.plan.Outputs[i].Len()
		if len(a) != k*size || size == 0 {
			return fmt.Errorf("native: output %d has %d numbers, expected %d", i, len(a), k*size)
		}
		pin.Pin(&a[0])
		first[i] = uintptr(unsafe.Pointer(&a[0]))
		*(*C.long)(unsafe.Pointer(&first[n+i])) = C.long(size)
	}
	at := func(i int) unsafe.Pointer { return unsafe.Add(w.aux.at, 8*i) }
	C.kelvin_native_rows(f.code.main, w.call, C.long(k), C.long(d), (*C.double)(&x[0]), C.double(weight),
		(*C.double)(&values[0]), (*C.double)(&grad[0]), C.int(n), (**C.double)(at(0)), (*C.long)(at(n)),
		(**C.double)(at(2*n)))
	runtime.KeepAlive(f)
	f.seenRows(x, values, grad)
	return nil
}

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
