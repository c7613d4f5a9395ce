// Package vm runs plans without a compiler: it encodes them as instructions for a machine in C, which works on blocks
// of numbers with the widest vectors that the processor has. It makes no plans and checks none: that is done in
// packages lower and ir.
package vm

/*
#cgo CFLAGS: -O2 -std=c11 -D_DEFAULT_SOURCE
#cgo LDFLAGS: -lm
#include <stdlib.h>
#include "program.h"

static const void *kvm_dense(const kvm_variant *v) { return &v->dense; }
static int kvm_supported(const kvm_variant *v) { return v->supported(); }
static const void *kvm_part(const kvm_variant *v, int part) { return (const void *)v->part[part]; }
static const kvm_variant *kvm_variant_at(int i) { return kvm_variants[i]; }
static void *kvm_block(size_t n) {
  void *p = 0;
  return posix_memalign(&p, 64, n) ? 0 : p;
}
*/
import "C"

import (
	"fmt"
	"unsafe"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
)

// Program is a plan in the form that the machine runs. It has no state: any number of calls may run at once.
type Program struct {
	variant *C.kvm_variant
	self    *C.kvm_program
	extra   int
}

// Compile checks and encodes a plan for the best variant that this processor supports.
func Compile(plan *ir.Plan) (*Program, error) { return CompileFor(Variants()[0], plan) }

// Variants names the variants of the machine that this processor supports, the best one first. Results of two variants
// differ in their last bits.
func Variants() []string {
	var names []string
	for i := 0; ; i++ {
		v := C.kvm_variant_at(C.int(i))
		if v == nil {
			return names
		}
		if C.kvm_supported(v) != 0 {
			names = append(names, C.GoString(v.name))
		}
	}
}

// Dense is the address of a kelvin_dense for this processor: what C code calls for large matrices.
func Dense() unsafe.Pointer { return unsafe.Pointer(C.kvm_dense(variantOf(Variants()[0]))) }

// variantOf is the variant of a name, or nil where this processor has none.
func variantOf(name string) *C.kvm_variant {
	for i := 0; ; i++ {
		v := C.kvm_variant_at(C.int(i))
		if v == nil || C.GoString(v.name) == name && C.kvm_supported(v) != 0 {
			return v
		}
	}
}

// CompileFor is Compile for one of the Variants.
func CompileFor(variant string, plan *ir.Plan) (*Program, error) {
	v := variantOf(variant)
	if v == nil {
		return nil, fmt.Errorf("vm: the variant %q is none of %q", variant, Variants())
	}
	if err := plan.Check(); err != nil {
		return nil, err
	}
	e := newEncoder(plan, v)
	parts := [2]int{}
	for part, steps := range [][]ir.Step{plan.Prologue, plan.Steps} {
		code, err := e.part(ir.Unrolled(steps))
		if err != nil {
			return nil, err
		}
		if part == 1 { // the prologue runs once for each batch, and writes what the main part only reads
			code = e.scalars(code)
		}
		parts[part] = e.pool.code(code)
	}
	p := &Program{variant: v, extra: e.extra()}
	head := (int(unsafe.Sizeof(C.kvm_program{})) + ir.Align - 1) / ir.Align * ir.Align
	memory := C.kvm_block(C.size_t(head + len(e.pool.bytes)))
	if memory == nil {
		return nil, fmt.Errorf("vm: no memory for a program of %d bytes", len(e.pool.bytes))
	}
	start := unsafe.Add(memory, head)
	copy(unsafe.Slice((*byte)(start), len(e.pool.bytes)), e.pool.bytes)
	p.self = (*C.kvm_program)(memory)
	*p.self = C.kvm_program{pool: (*C.char)(start), bases: C.int64_t(e.bases()), inputs: C.int64_t(len(plan.Inputs)),
		outputs: C.int64_t(len(plan.Outputs)), table: C.int64_t(e.table())}
	for i, at := range parts {
		p.self.part[i] = (*C.kvm_instr)(unsafe.Add(start, at))
	}
	return p, nil
}

// Variant is the name of the variant that the program was made for.
func (p *Program) Variant() string { return C.GoString(p.variant.name) }

// Prologue and Main are functions of type kelvin_fn. Self is what their calls need in kelvin_call.self.
func (p *Program) Prologue() unsafe.Pointer { return unsafe.Pointer(C.kvm_part(p.variant, 0)) }
func (p *Program) Main() unsafe.Pointer     { return unsafe.Pointer(C.kvm_part(p.variant, 1)) }
func (p *Program) Self() unsafe.Pointer     { return unsafe.Pointer(p.self) }

// Work is the number of bytes that a call's work block needs beyond ir.Layout.Scratch.
func (p *Program) Work() int { return p.extra }

// Close frees the program. No call may run any more.
func (p *Program) Close() {
	C.free(unsafe.Pointer(p.self))
	p.self = nil
}
