package vm

// #include "program.h"
import "C"

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
)

// encoder turns steps into instructions. The work block of a call holds, behind the buffers of the plan: the table of
// bases, then registers and single numbers of the step that runs.
type encoder struct {
	plan    *ir.Plan
	layout  ir.Layout
	variant *C.kvm_variant
	pool    pool
	cursors int // the most that a loop has
	used    int // bytes of registers of this step
	most    int // of any step
	list    *[]C.kvm_instr
	step    int
}

func newEncoder(plan *ir.Plan, v *C.kvm_variant) *encoder {
	return &encoder{plan: plan, layout: plan.Place(), variant: v,
		pool: pool{numbers: map[uint64]int{}, tables: map[string]int{}}}
}

// maxCursors bounds the cursors of a loop, so that the table of bases has its size before the first loop is encoded.
const maxCursors = 1 << 10

func (e *encoder) fixed() int { return C.B_FIRST + len(e.plan.Inputs) + len(e.plan.Outputs) }
func (e *encoder) bases() int { return e.fixed() + maxCursors }
func (e *encoder) table() int { return e.layout.Scratch }

// slots is the place of the numbers that instructions on single numbers read from elsewhere.
func (e *encoder) slots() int { return e.table() + (8*e.bases()+ir.Align-1)/ir.Align*ir.Align }

func (e *encoder) registers() int { return e.slots() + 8*allSlots }

func (e *encoder) extra() int { return e.registers() + e.most - e.layout.Scratch }

// claim takes bytes of the registers for the step.
func (e *encoder) claim(n int) place {
	at := e.registers() + e.used
	e.used += n
	e.most = max(e.most, (e.used+ir.Align-1)/ir.Align*ir.Align)
	return place{C.B_WORK, uint32(at)}
}

// elem is the type of what an address reaches.
func (e *encoder) elem(a *ir.Address) ir.Elem {
	if a.Buf < 0 {
		return ir.F64
	}
	return e.plan.Buffers[a.Buf].Elem
}

// memory is the base of a buffer, and its place there in bytes.
func (e *encoder) memory(buf int) (base, off int) {
	if buf < 0 {
		return C.B_POOL, e.pool.iotas
	}
	b := e.plan.Buffers[buf]
	switch b.Kind {
	case ir.X:
		return C.B_X, 0
	case ir.Weight:
		return C.B_WEIGHT, 0
	case ir.Grad:
		return C.B_GRAD, 0
	case ir.Value:
		return C.B_VALUE, 0
	case ir.Const:
		return C.B_CONST, e.layout.Offset[buf]
	case ir.Prepared:
		return C.B_PREPARED, e.layout.Offset[buf]
	case ir.Input:
		return C.B_FIRST + b.Slot, 0
	case ir.Aux:
		return C.B_FIRST + len(e.plan.Inputs) + b.Slot, 0
	}
	return C.B_WORK, e.layout.Offset[buf]
}

func (e *encoder) part(steps []ir.Step) (code []C.kvm_instr, err error) {
	for i := range steps {
		e.used, e.step, e.list = 0, i, &code
		if steps[i].Kind == ir.Loop {
			err = e.loop(&steps[i])
		} else {
			err = e.matrices(&steps[i])
		}
		if err != nil {
			return nil, fmt.Errorf("step %d: %w", i, err)
		}
	}
	if at := e.registers() + e.most; at >= math.MaxInt32 || len(e.pool.bytes) >= math.MaxInt32 ||
		max(e.layout.Const, e.layout.Prepared) >= math.MaxInt32 {
		return nil, fmt.Errorf("vm: the blocks of the plan have %d, %d and %d bytes; the machine takes 2 GiB each",
			e.layout.Const, e.layout.Prepared, at)
	}
	return code, nil
}

// emit appends an instruction, array one on arrays of a length. Operand 0 is the result.
func (e *encoder) emit(kernel int, operands ...place) *C.kvm_instr {
	return e.array(kernel, 1, operands...)
}

func (e *encoder) array(kernel, n int, operands ...place) *C.kvm_instr {
	in := C.kvm_instr{kernel: C.uint16_t(kernel), n: C.int32_t(n), run: e.variant.kernels[kernel]}
	for k, p := range operands {
		in.base[k], in.off[k] = C.uint16_t(p.base), C.uint32_t(p.off)
	}
	*e.list = append(*e.list, in)
	return &(*e.list)[len(*e.list)-1]
}

func (e *encoder) matrices(s *ir.Step) error {
	if len(s.Sizes) > 8 {
		return fmt.Errorf("vm: a step over %d dimensions; the machine takes 8", len(s.Sizes))
	}
	step := C.kvm_step{dims: C.int64_t(len(s.Sizes)), m: C.int64_t(s.M), n: C.int64_t(s.N), k: C.int64_t(s.K)}
	for d, n := range s.Sizes {
		step.sizes[d] = C.int64_t(n)
	}
	for flag, to := range map[*bool]*C.int64_t{&s.Upper: &step.upper, &s.Unit: &step.unit, &s.Right: &step.right,
		&s.Lower: &step.lower, &s.Product: &step.product} {
		if *flag {
			*to = 1
		}
	}
	all := []*ir.Matrix{&s.Out, &s.A}
	if s.Kind == ir.MatMul || s.Kind == ir.Solve || s.Kind == ir.Call {
		all = append(all, &s.B)
	}
	for k, m := range all {
		base, off := e.memory(m.Buf)
		*[]*C.kvm_matrix{&step.out, &step.a, &step.b}[k] = C.kvm_matrix{base: C.int64_t(base),
			off: C.int64_t(off + 8*m.Off), row: C.int64_t(m.Row), col: C.int64_t(m.Col)}
		for d, v := range m.Strides {
			step.strides[k][d] = C.int64_t(v)
		}
	}
	if n := scratch(s); n > 0 {
		e.used = (e.used + ir.Align - 1) / ir.Align * ir.Align
		p := e.claim(8 * n)
		step.scratch = C.int64_t(p.off)
	}
	op := map[ir.StepKind]int{ir.MatMul: C.K_MATMUL, ir.Cholesky: C.K_CHOLESKY, ir.Solve: C.K_SOLVE, ir.Scan: C.K_SCAN,
		ir.Call: C.K_CALL}
	e.emit(op[s.Kind]).p = C.int64_t(put(&e.pool, step))
	return nil
}

// scratch is how many numbers a step needs for itself: a packed factor, a triangle.
func scratch(s *ir.Step) int {
	switch s.Kind {
	case ir.MatMul:
		return s.K * max(s.M, s.N)
	case ir.Cholesky:
		return s.N * s.N
	}
	return 0
}
