// Package irtest tests back ends of plans: hand-written and random cases, a harness that calls a back end through its C
// interface with guarded memory, and a comparison with ir.Machine. It makes no plans of models: those come from
// package lower.
package irtest

/*
#include <stdlib.h>
#include <time.h>
#include "../../cc/abi.h"

// Nanoseconds of processor time of this thread.
static double irtest_clock(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return 1e9 * t.tv_sec + t.tv_nsec;
}

static int irtest_call(void *fn, kelvin_call *c) { return ((kelvin_fn)fn)(c); }

static void irtest_repeat(void *fn, kelvin_call *c, long n) {
  for (long i = 0; i < n; i++) {
    ((kelvin_fn)fn)(c);
    __asm__ volatile("" ::: "memory");
  }
}

static void *irtest_block(size_t n) {
  void *p = 0;
  return posix_memalign(&p, 64, n) ? 0 : p;
}

*/
import "C"

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"runtime"
	"unsafe"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
)

// Entry is a back end's result for a plan: C functions of type kelvin_fn, and what they need.
type Entry struct {
	Prologue, Main unsafe.Pointer
	Self           unsafe.Pointer
	Dense          unsafe.Pointer // of type kelvin_dense, where the back end does not bring its own
	Extra          int            // bytes of work beyond those of ir.Layout
}

// Case is a plan with what it runs on. The numbers of an input are converted to the type of its slot.
type Case struct {
	Name   string
	Plan   *ir.Plan
	X      []float64
	Weight float64
	Inputs [][]float64
}

// Result is what an evaluation gives.
type Result struct {
	Value float64
	Grad  []float64
	Aux   [][]float64
}

// Memory is the memory of a caller of a back end, outside Go. Every block has a guard behind it.
type Memory struct {
	entry  Entry
	plan   *ir.Plan
	call   *C.kelvin_call
	blocks []block
	x      []float64
	value  []float64
	grad   []float64
	aux    [][]float64
	work   []byte
}

type block struct {
	start unsafe.Pointer
	size  int
}

const guard = 128

func (m *Memory) block(size int) unsafe.Pointer {
	p := C.irtest_block(C.size_t(size + guard))
	all := unsafe.Slice((*byte)(p), size+guard)
	for i := range all {
		all[i] = 0xFF // as float64 it is NaN
	}
	m.blocks = append(m.blocks, block{p, size})
	return p
}

func (m *Memory) floats(n int) []float64 {
	return unsafe.Slice((*float64)(m.block(8*n)), n)
}

// NewMemory allocates the blocks of a case and fills the constants and the inputs.
func NewMemory(e Entry, c Case) *Memory {
	m := &Memory{entry: e, plan: c.Plan}
	m.call = (*C.kelvin_call)(m.block(int(unsafe.Sizeof(C.kelvin_call{}))))
	*m.call = C.kelvin_call{}
	layout := c.Plan.Place()
	consts := unsafe.Slice((*byte)(m.block(layout.Const)), layout.Const)
	for i, b := range c.Plan.Buffers {
		if b.Kind == ir.Const {
			encode(consts[layout.Offset[i]:], b.Elem, b.Data)
		}
	}
	work := layout.Scratch + e.Extra
	m.work = unsafe.Slice((*byte)(m.block(work)), work)
	m.x, m.value, m.grad = m.floats(c.Plan.Dim), m.floats(1), m.floats(c.Plan.Dim)
	inputs := unsafe.Slice((*unsafe.Pointer)(m.block(8*len(c.Plan.Inputs)+8)), len(c.Plan.Inputs))
	for i, s := range c.Plan.Inputs {
		inputs[i] = m.block(s.Len() * s.Elem.Size())
		encode(unsafe.Slice((*byte)(inputs[i]), s.Len()*s.Elem.Size()), s.Elem, c.Inputs[i])
	}
	aux := unsafe.Slice((*unsafe.Pointer)(m.block(8*len(c.Plan.Outputs)+8)), len(c.Plan.Outputs))
	for i, s := range c.Plan.Outputs {
		out := m.floats(s.Len())
		aux[i] = unsafe.Pointer(unsafe.SliceData(out))
		m.aux = append(m.aux, out)
	}
	k := m.call
	k.self = e.Self
	k.dense = (*C.kelvin_dense)(e.Dense)
	k.x = (*C.double)(unsafe.Pointer(unsafe.SliceData(m.x)))
	k.value = (*C.double)(unsafe.Pointer(unsafe.SliceData(m.value)))
	k.grad = (*C.double)(unsafe.Pointer(unsafe.SliceData(m.grad)))
	k.inputs = (*unsafe.Pointer)(unsafe.Pointer(unsafe.SliceData(inputs)))
	k.consts = (*C.char)(unsafe.Pointer(unsafe.SliceData(consts)))
	k.prepared = (*C.char)(m.block(layout.Prepared))
	k.work = (*C.char)(unsafe.Pointer(unsafe.SliceData(m.work)))
	k.aux = (**C.double)(unsafe.Pointer(unsafe.SliceData(aux)))
	return m
}

// Close frees the memory.
func (m *Memory) Close() {
	for _, b := range m.blocks {
		C.free(b.start)
	}
	m.blocks = nil
}

func encode(to []byte, elem ir.Elem, data []float64) {
	for i, v := range data {
		switch elem {
		case ir.F64:
			binary.NativeEndian.PutUint64(to[8*i:], math.Float64bits(v))
		case ir.F32:
			binary.NativeEndian.PutUint32(to[4*i:], math.Float32bits(float32(v)))
		case ir.I64:
			binary.NativeEndian.PutUint64(to[8*i:], uint64(int64(v)))
		case ir.I32:
			binary.NativeEndian.PutUint32(to[4*i:], uint32(int32(v)))
		case ir.U8:
			to[i] = byte(v)
		}
	}
}

// Prepare runs the prologue. A failure is that of an index out of range; it names the step.
func (m *Memory) Prepare() error {
	if rc := C.irtest_call(m.entry.Prologue, m.call); rc != 0 {
		return fmt.Errorf("prologue step %d: an index is out of range", int(rc)-1)
	}
	return m.intact()
}

// Eval runs the main part on work that is full of NaN.
func (m *Memory) Eval(x []float64, weight float64) (Result, error) {
	for i := range m.work {
		m.work[i] = 0xFF
	}
	copy(m.x, x)
	m.call.weight = C.double(weight)
	if rc := C.irtest_call(m.entry.Main, m.call); rc != 0 {
		return Result{}, fmt.Errorf("the main part returned %d", int(rc))
	}
	r := Result{Value: m.value[0], Grad: append([]float64{}, m.grad...)}
	for _, a := range m.aux {
		r.Aux = append(r.Aux, append([]float64{}, a...))
	}
	return r, m.intact()
}

// Clock runs f and gives the nanoseconds of processor time that its thread took, which other work on the machine
// disturbs less than the time of the wall.
func Clock(f func()) float64 {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	start := C.irtest_clock()
	f()
	return float64(C.irtest_clock() - start)
}

// Repeat runs the main part n times at the last point, for benchmarks.
func (m *Memory) Repeat(n int) { C.irtest_repeat(m.entry.Main, m.call, C.long(n)) }

func (m *Memory) intact() error {
	for _, b := range m.blocks {
		for _, v := range unsafe.Slice((*byte)(unsafe.Add(b.start, b.size)), guard) {
			if v != 0xFF {
				return errors.New("the back end wrote behind a block")
			}
		}
	}
	return nil
}

// Run evaluates a case once with a back end.
func Run(e Entry, c Case) (Result, error) {
	m := NewMemory(e, c)
	defer m.Close()
	if err := m.Prepare(); err != nil {
		return Result{}, err
	}
	return m.Eval(c.X, c.Weight)
}

// Reference evaluates a case with the machine in Go.
func Reference(c Case) (Result, error) {
	m, err := ir.NewMachine(c.Plan, c.Inputs)
	if err != nil {
		return Result{}, err
	}
	r := Result{Grad: make([]float64, c.Plan.Dim)}
	for _, s := range c.Plan.Outputs {
		r.Aux = append(r.Aux, make([]float64, s.Len()))
	}
	r.Value = m.Eval(c.X, c.Weight, r.Grad, r.Aux)
	return r, nil
}

// Differ names the first number of two results whose distance is more than tol, relative to 1 or its size.
func Differ(got, want Result, tol float64) error {
	one := func(name string, got, want float64) error {
		switch {
		case got == want, got != got && want != want:
			return nil
		case !math.IsInf(want, 0) && math.Abs(got-want) <= tol*math.Max(1, math.Abs(want)): // false for NaN
			return nil
		}
		return fmt.Errorf("%s is %v, should be %v", name, got, want)
	}
	if err := one("value", got.Value, want.Value); err != nil {
		return err
	}
	for i, w := range want.Grad {
		if err := one(fmt.Sprintf("grad[%d]", i), got.Grad[i], w); err != nil {
			return err
		}
	}
	for k, a := range want.Aux {
		for i, w := range a {
			if err := one(fmt.Sprintf("aux %d[%d]", k, i), got.Aux[k][i], w); err != nil {
				return err
			}
		}
	}
	return nil
}
