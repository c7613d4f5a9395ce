package vm

// #include "program.h"
import "C"

import (
	"math"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
)

// node encodes an instruction of the body.
func (l *looper) node(i int) {
	n := &l.list[i]
	l.into(n.level)
	switch {
	case n.op == ir.Num:
		n.place = l.pool.number(n.num)
	case n.op == ir.Load:
		l.load(n)
	case n.op == ir.Store:
		l.store(n)
	case n.op == ir.StoreIndex:
		in := l.moved(n, C.K_INDEX)
		in.q, in.off[4] = C.int64_t(n.limit), C.uint32_t(l.step+1)
	case n.op == ir.ScatterAdd:
		l.moved(n, C.K_SCATTER)
	case n.reduces() || n.op == dot || n.op == dots:
		l.reduce(n)
	default:
		l.compute(i, n)
		return
	}
	l.release(n)
}

// in is the place of an operand, and whether it is one number.
func (l *looper) in(a int) (place, bool) { return l.list[a].place, !l.list[a].array }

// spread is an operand as an array.
func (l *looper) spread(a int) place {
	p, single := l.in(a)
	if !single {
		return p
	}
	_, to := l.claimRegister(true) // until the end of the loop
	l.array(C.K_MOVE, l.length(), to, p).flags = 2
	return to
}

// load finds or makes the place of a value from memory.
func (l *looper) load(n *node) {
	plain := l.elem(n.at) == ir.F64 && n.at.Index == nil && !l.touched[n.at.Buf]
	sizes, strides := l.inBlock(n.at.Strides)
	step, even := flat(sizes, strides)
	if plain && (!n.array || even && step == 1) {
		n.place = l.address(n.at)
		return
	}
	n.register, n.place = l.claimRegister(n.array)
	length := 1
	if n.array {
		length = l.length()
	}
	in := l.array(C.K_LOAD, length, n.place, l.address(n.at))
	in.flags |= C.uint16_t(l.elem(n.at)) << 12
	l.where(in, n.at, n.array)
}

// where fills in how an instruction finds its elements in memory.
func (l *looper) where(in *C.kvm_instr, a *ir.Address, array bool) {
	sizes, strides := l.inBlock(a.Strides)
	if step, even := flat(sizes, strides); even || !array {
		in.p = C.int64_t(step)
	} else {
		t := l.pool.table(sizes, strides)
		in.base[3], in.off[3], in.flags = C.uint16_t(t.base), C.uint32_t(t.off), in.flags|1<<9
	}
	if a.Index == nil {
		return
	}
	p := l.address(a.Index)
	in.base[2], in.off[2], in.flags, in.q = C.uint16_t(p.base), C.uint32_t(p.off), in.flags|1<<8, C.int64_t(a.Scale)
	sizes, strides = l.inBlock(a.Index.Strides)
	if step, even := flat(sizes, strides); array && !(even && step == 1) {
		t := l.pool.table(sizes, strides)
		in.base[4], in.off[4], in.flags = C.uint16_t(t.base), C.uint32_t(t.off), in.flags|1<<10
	}
}

// moved writes a value to the elements of an address one by one.
func (l *looper) moved(n *node, kernel int) *C.kvm_instr {
	p, single := l.in(n.args[0])
	length := 1
	if n.array {
		length = l.length()
	}
	in := l.array(kernel, length, l.address(n.at), p)
	if single {
		in.flags |= 2
	}
	l.where(in, n.at, n.array)
	return in
}

func (l *looper) store(n *node) {
	p, single := l.in(n.args[0])
	to := l.address(n.at)
	sizes, strides := l.inBlock(n.at.Strides)
	step, even := flat(sizes, strides)
	switch {
	case !n.array:
		l.emit(C.K_SCALAR+C.S_MOVE, to, p)
	case !l.kept(n.at) && !l.serial:
		l.array(C.K_LAST, l.length(), to, p)
	case even && step == 1:
		if in := l.array(C.K_MOVE, l.length(), to, p); single {
			in.flags |= 2
		}
	default:
		l.moved(n, C.K_STORE)
	}
}

// direct finds the place of a store that takes a value as it is made, so that the value needs no register.
func (l *looper) direct(i int, n *node) (place, bool) {
	for k := i + 1; k < len(l.list); k++ {
		s := &l.list[k]
		if s.op != ir.Store || s.done || s.args[0] != i || s.level != n.level || s.array != n.array ||
			l.touched[s.at.Buf] || l.serial {
			continue
		}
		sizes, strides := l.inBlock(s.at.Strides)
		if step, even := flat(sizes, strides); n.array && (!even || step != 1 || !l.kept(s.at)) {
			continue
		}
		s.done = true
		if n.left--; n.left == 0 {
			n.keeps = true
		}
		return l.address(s.at), true
	}
	return place{}, false
}

var fused = map[ir.Op]int{fma: C.S_FMA, fms: C.S_FMS, fnma: C.S_FNMA, ir.Select: C.S_SELECT, ifLt: C.S_IF_LT,
	ifLe: C.S_IF_LE, ifEq: C.S_IF_EQ, ifNe: C.S_IF_NE}

var forms = map[ir.Op]int{fma: C.K_FMA_VVV, fms: C.K_FMS_VVV, fnma: C.K_FNMA_VVV, ir.Select: C.K_SELECT,
	ifLt: C.K_IF_LT, ifLe: C.K_IF_LE, ifEq: C.K_IF_EQ, ifNe: C.K_IF_NE}

// compute encodes what has a value.
func (l *looper) compute(i int, n *node) {
	operands := make([]place, 1+len(n.args))
	if !n.array {
		for k, a := range n.args {
			operands[k+1] = l.list[a].place
		}
		op, ok := fused[n.op]
		switch {
		case ok:
		case n.op >= ir.Add:
			op = C.S_BINARY + int(n.op-ir.Add)
		default:
			op = C.S_UNARY + int(n.op-ir.Neg)
		}
		n.place, ok = l.direct(i, n)
		if !ok {
			n.register, n.place = l.claimRegister(false)
		}
		operands[0] = n.place
		l.emit(C.K_SCALAR+op, operands...)
		return
	}
	if n.op == linear {
		l.linear(i, n)
		return
	}
	kernel, flags := 0, 0
	single := make([]bool, 4)
	for k, a := range n.args {
		operands[k+1], single[k] = l.in(a)
	}
	swap := func() {
		operands[1], operands[2], single[0], single[1] = operands[2], operands[1], single[1], single[0]
	}
	array := func(k int) {
		if single[k] {
			operands[k+1], single[k] = l.spread(n.args[k]), false
		}
	}
	switch {
	case n.op < ir.Add:
		array(0)
		kernel = C.K_UNARY + int(n.op-ir.Neg)
	case n.op < ir.Select:
		if single[0] && single[1] {
			array(0)
		}
		kernel = C.K_BINARY + 3*int(n.op-ir.Add)
		if single[1] && n.op == ir.Div {
			kernel = C.K_QUOTIENT
		} else if single[1] {
			kernel++
		} else if single[0] {
			kernel += 2
		}
	case n.op == fma || n.op == fms || n.op == fnma:
		if single[0] {
			swap()
		}
		if single[0] {
			operands[1], single[0] = l.spread(n.args[1]), false
		}
		kernel = forms[n.op]
		if single[1] {
			kernel += 2
		}
		if single[2] {
			kernel++
		}
	default:
		kernel = forms[n.op]
		for k := range n.args {
			if single[k] {
				flags |= 2 << k
			}
		}
	}
	l.release(n)
	var ok bool
	if n.place, ok = l.direct(i, n); !ok {
		n.register, n.place = l.claimRegister(true)
	}
	operands[0] = n.place
	l.array(kernel, l.length(), operands...).flags = C.uint16_t(flags)
}

// reduce encodes a reduction.
func (l *looper) reduce(n *node) {
	if n.op == dots {
		l.dots(n)
		return
	}
	kind := map[ir.Op]int{ir.Sum: 0, dot: 0, ir.Prod: 1, ir.MaxOf: 2}[n.op]
	start := l.pool.number([]float64{0, 1, math.Inf(-1)}[kind])
	to := l.address(n.at)
	if !n.array { // one iteration
		l.emit(C.K_SCALAR+C.S_MOVE, to, l.list[n.args[0]].place)
		return
	}
	a := l.spread(n.args[0])
	reduced := l.reduced(n.at)
	sizes, strides := l.inBlock(n.at.Strides)
	kept := 0 // leading dimensions that are kept
	for kept < len(sizes) && strides[kept] != 0 {
		kept++
	}
	zeros := 0 // leading dimensions that are not
	for zeros < len(sizes) && strides[zeros] == 0 {
		zeros++
	}
	row, rowFlat := flat(sizes[:kept], strides[:kept])
	each, eachFlat := flat(sizes[zeros:], strides[zeros:])
	tail := true
	for d := kept; d < len(sizes); d++ {
		tail = tail && strides[d] == 0
	}
	switch {
	case !l.kept(n.at):
		kernel := C.K_SUM + kind
		operands := []place{to, a}
		if n.op == dot {
			kernel, operands = C.K_DOT, append(operands, l.spread(n.args[1]))
		}
		in := l.array(kernel, l.length(), operands...)
		if l.one {
			in.flags = 1 << 8
		} else {
			l.begin(n.at, start)
		}
	case kept > 0 && kept < len(sizes) && tail && rowFlat:
		in := l.array(C.K_ROWS_SUM+kind, l.length(), to, a)
		in.p, in.q = C.int64_t(row), C.int64_t(ir.Iterations(sizes[kept:]))
		if !reduced {
			in.flags = 1 << 8
		} else {
			l.fill(n.at, start)
		}
	case eachFlat && each == 1 && zeros < len(sizes):
		q := int64(1) << 40
		if zeros > 0 {
			q = int64(ir.Iterations(sizes[zeros:]))
		}
		l.array(C.K_EACH_SUM+kind, l.length(), to, a).q = C.int64_t(q)
		l.fill(n.at, start)
	default:
		in := l.array(C.K_AT_SUM+kind, l.length(), to, a)
		l.where(in, n.at, true)
		l.fill(n.at, start)
	}
}

// reduced says whether there is an outer dimension over which a reduction goes.
func (l *looper) reduced(a *ir.Address) bool {
	all := uint(1<<l.outer - 1)
	return l.outer > 0 && a.Dims()&all != all
}

// begin sets the one number that a block adds to, before the first of its blocks.
func (l *looper) begin(a *ir.Address, start place) {
	if l.reduced(a) || l.serial {
		l.fill(a, start)
		return
	}
	l.into(outer)
	l.emit(C.K_SCALAR+C.S_MOVE, l.address(a), start)
}

// dots encodes several sums of products.
func (l *looper) dots(n *node) {
	var arrays, targets []place
	for k, a := range n.targets {
		arrays, targets = append(arrays, l.list[n.args[k+1]].place), append(targets, l.address(a))
	}
	in := l.array(C.K_DOTS, l.length(), place{}, l.list[n.args[0]].place)
	l.terms(in, arrays, targets, 0)
	if l.one {
		in.flags = 1 << 8
		return
	}
	for _, a := range n.targets {
		l.begin(a, l.pool.number(0))
	}
}

// fill sets every element of a target before the loop.
func (l *looper) fill(a *ir.Address, start place) {
	var f C.kvm_fill
	for d, s := range a.Strides {
		if s != 0 {
			f.sizes[f.dims], f.strides[f.dims] = C.int64_t(l.sizes[d]), C.int64_t(s)
			f.dims++
		}
	}
	base, off := l.memory(a.Buf)
	main := l.encoder.list
	l.encoder.list = &[]C.kvm_instr{}
	l.emit(C.K_FILL, place{uint16(base), uint32(off + 8*a.Off)}, start).p = C.int64_t(put(&l.pool, f))
	l.code[once] = append(*l.encoder.list, l.code[once]...) // before all that the loop does
	l.encoder.list = main
}
