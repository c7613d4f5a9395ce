// Package cctest calls compiled plans for tests and benchmarks, with memory of its own.
package cctest

/*
#cgo CFLAGS: -I${SRCDIR}/../../abi
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "abi.h"

static int call(void *f, const kelvin_call *c) { return ((kelvin_fn)f)(c); }

static void *block(size_t n) {
  void *p = NULL;
  if (posix_memalign(&p, 64, n ? n : 64))
    return NULL;
  memset(p, 0xff, n ? n : 64);
  return p;
}

// The shortest mean time in nanoseconds of several runs of n calls.
static double bench(void *f, const kelvin_call *c, long n, int runs) {
  double best = 1e300;
  for (int r = 0; r < runs; r++) {
    struct timespec a, b;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
    for (long i = 0; i < n; i++) {
      ((kelvin_fn)f)(c);
      __asm__ volatile("" ::: "memory");
    }
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
    double t = ((b.tv_sec - a.tv_sec) * 1e9 + (b.tv_nsec - a.tv_nsec)) / n;
    if (t < best)
      best = t;
  }
  return best;
}

static void gemm(long m, long n, long k, const double *a, long ar, long ac, const double *b, long br, long bc, double *c, long cr,
                 long cc) {
  for (long i = 0; i < m; i++)
    for (long j = 0; j < n; j++) {
      double s = 0;
      for (long l = 0; l < k; l++)
        s += a[i * ar + l * ac] * b[l * br + j * bc];
      c[i * cr + j * cc] = s;
    }
}
static kelvin_gemm_fn gemm_pointer(void) { return gemm; }
*/
import "C"

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
)

// Function is a compiled plan with the memory that it needs.
type Function struct {
	plan           *ir.Plan
	prologue, main unsafe.Pointer
	call           *C.kelvin_call
	blocks         []unsafe.Pointer
}

// New makes the memory of a plan. Scratch and results start as NaN.
func New(p *ir.Plan, prologue, main unsafe.Pointer, gemm bool) *Function {
	f := &Function{plan: p, prologue: prologue, main: main}
	l := p.Place()
	f.call = (*C.kelvin_call)(f.block(int(unsafe.Sizeof(C.kelvin_call{}))))
	*f.call = C.kelvin_call{}
	consts := f.block(l.Const)
	f.call.consts = (*C.char)(consts)
	f.call.prepared, f.call.work = (*C.char)(f.block(l.Prepared)), (*C.char)(f.block(l.Scratch))
	f.call.x, f.call.grad = (*C.double)(f.block(8*p.Dim)), (*C.double)(f.block(8*p.Dim))
	f.call.value = (*C.double)(f.block(8))
	pointers := func(slots []ir.Slot) unsafe.Pointer {
		p := f.block(8 * len(slots))
		for i, s := range slots {
			n := s.Elem.Size()
			for _, k := range s.Shape {
				n *= int(k)
			}
			unsafe.Slice((*unsafe.Pointer)(p), len(slots))[i] = f.block(n)
		}
		return p
	}
	f.call.inputs, f.call.aux = (*unsafe.Pointer)(pointers(p.Inputs)), (**C.double)(pointers(p.Outputs))
	if gemm {
		f.call.gemm = C.gemm_pointer()
	}
	for i, b := range p.Buffers {
		if b.Kind == ir.Const {
			put(unsafe.Add(consts, l.Offset[i]), b.Elem, b.Data)
		}
	}
	return f
}

func (f *Function) block(n int) unsafe.Pointer {
	p := C.block(C.size_t(n))
	f.blocks = append(f.blocks, p)
	return p
}

// Free frees the memory.
func (f *Function) Free() {
	for _, b := range f.blocks {
		C.free(b)
	}
}

func put(to unsafe.Pointer, e ir.Elem, data []float64) {
	for k, v := range data {
		switch at := unsafe.Add(to, k*e.Size()); e {
		case ir.F32:
			*(*float32)(at) = float32(v)
		case ir.I64:
			*(*int64)(at) = int64(v)
		case ir.I32:
			*(*int32)(at) = int32(v)
		case ir.U8:
			*(*uint8)(at) = uint8(v)
		default:
			*(*float64)(at) = v
		}
	}
}

// Prepare runs the prologue on a batch.
func (f *Function) Prepare(inputs [][]float64) error {
	for i, s := range f.plan.Inputs {
		put(unsafe.Slice(f.call.inputs, len(inputs))[i], s.Elem, inputs[i])
	}
	if r := C.call(f.prologue, f.call); r != 0 {
		return fmt.Errorf("the prologue's step %d met an index out of range", r-1)
	}
	return nil
}

// Eval evaluates the plan, as ir.Machine does.
func (f *Function) Eval(x []float64, weight float64, grad []float64, aux [][]float64) (float64, error) {
	put(unsafe.Pointer(f.call.x), ir.F64, x)
	f.call.weight = C.double(weight)
	g := unsafe.Slice((*float64)(f.call.grad), f.plan.Dim)
	for i := range g {
		g[i] = math.NaN()
	}
	if r := C.call(f.main, f.call); r != 0 {
		return 0, fmt.Errorf("the main part returned %d", r)
	}
	copy(grad, g)
	for i := range aux {
		copy(aux[i], unsafe.Slice((*float64)(unsafe.Pointer(unsafe.Slice(f.call.aux, len(aux))[i])), len(aux[i])))
	}
	return float64(*f.call.value), nil
}

// Nanoseconds is the time of one evaluation of the main part: the shortest mean of several runs of n calls.
func (f *Function) Nanoseconds(n, runs int) float64 {
	return float64(C.bench(f.main, f.call, C.long(n), C.int(runs)))
}
