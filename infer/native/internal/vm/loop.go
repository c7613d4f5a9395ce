package vm

// #include "program.h"
import "C"

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
)

// looper encodes one loop: three lists of instructions. The first runs once, the second for each point of the outer
// dimensions and the third for each block.
type looper struct {
	*encoder
	space
	list    []node
	touched map[int]bool
	code    [3][]C.kvm_instr
	cursors []ir.Address
	now     level    // of the list that grows
	free    [3][]int // registers, of each level its own: the first list runs before the others, whatever the order here
	places  []place
}

func (e *encoder) loop(s *ir.Step) error {
	for _, in := range s.Body {
		if in.Op == ir.Coord {
			e.pool.coordinates(s.Sizes[in.Dim])
		}
	}
	sizes, body := s.Simplified()
	list := e.nodes(sizes, body)
	serial, touched := ir.Conflicts(body, sizes)
	space, err := divide(sizes, serial)
	if err != nil {
		return err
	}
	l := &looper{encoder: e, space: space, list: list, touched: touched}
	for i := range list {
		n := &list[i]
		n.level, n.array = space.level(n.dims)
		if n.op == ir.Num {
			n.level, n.array = once, false
		}
	}
	combine(list)
	fuse(list)
	for i := range list {
		if n := &list[i]; !n.done && n.writes() {
			l.settle(n)
		}
	}
	gather(list)
	for i := range list {
		n := &list[i]
		if n.done {
			continue
		}
		for _, a := range n.args {
			list[a].left++
			if list[a].level != n.level {
				list[a].keeps = true
			}
		}
	}
	main := e.list
	defer func() { e.list = main }()
	for i := range list {
		if n := &list[i]; !n.done && (n.writes() || n.left > 0) {
			l.node(i)
		}
	}
	*main = append(*main, l.code[once]...)
	e.list = main
	if space.one {
		return nil
	}
	if len(l.cursors) > maxCursors {
		return fmt.Errorf("vm: a loop has %d arrays; the machine takes %d", len(l.cursors), maxCursors)
	}
	e.emit(C.K_LOOP).p = C.int64_t(put(&e.pool, l.head()))
	return nil
}

// head describes the loop to the machine.
func (l *looper) head() C.kvm_loop {
	e := l.encoder
	h := C.kvm_loop{outers: C.int64_t(l.outer), rows: 1, per_block: 1, inner: C.int64_t(l.inner),
		cursors: C.int64_t(len(l.cursors)), first: C.int64_t(e.fixed())}
	for d := range l.outer {
		h.sizes[d] = C.int64_t(l.sizes[d])
	}
	if l.chunk {
		h.rows, h.per_block = C.int64_t(l.sizes[l.outer]), C.int64_t(l.rows)
	}
	var cursors []C.kvm_cursor
	for _, a := range l.cursors {
		base, off := e.memory(a.Buf)
		size := e.elem(&a).Size()
		c := C.kvm_cursor{base: C.int64_t(base), off: C.int64_t(off + size*a.Off)}
		for d := range l.outer {
			c.outer[d] = C.int64_t(size * a.Strides[d])
		}
		if l.chunk {
			c.block = C.int64_t(size * l.rows * a.Strides[l.outer])
		}
		cursors = append(cursors, c)
	}
	h.cursor = C.int64_t(put(&e.pool, cursors...))
	h.outer = C.int64_t(e.pool.code(l.code[outer]))
	h.block = C.int64_t(e.pool.code(l.code[block]))
	h.blocks = C.int64_t(len(l.code[block]))
	return h
}

// settle finds the level of an instruction that writes.
func (l *looper) settle(n *node) {
	v := &l.list[n.args[0]]
	to, array := l.level(n.at.Dims())
	n.level, n.array = max(v.level, to), v.array || array
	if n.op != ir.Store && n.op != ir.StoreIndex { // each iteration counts
		n.array = len(l.sizes) > 0
		if !l.one {
			n.level = block
		}
	}
	if l.serial {
		n.level = block
	}
	if n.op == ir.Sum && n.level == v.level && !l.kept(n.at) && v.op == ir.Mul && v.uses == 1 && v.array &&
		l.list[v.args[0]].array && l.list[v.args[1]].array && !l.serial {
		n.op, n.args, v.done = dot, v.args, true
	}
}

// kept says whether a target differs inside a block.
func (l *looper) kept(a *ir.Address) bool { return a.Dims()>>l.outer != 0 }

// address is the place of an access at the begin of a block.
func (l *looper) address(a *ir.Address) place {
	moving := uint(1<<l.outer - 1)
	if l.chunk {
		moving |= 1 << l.outer
	}
	direct := ir.Address{Buf: a.Buf, Off: a.Off, Strides: a.Strides}
	if direct.Dims()&moving == 0 || l.one {
		base, off := l.memory(a.Buf)
		return place{uint16(base), uint32(off + l.elem(a).Size()*a.Off)}
	}
	for i := range l.cursors {
		if l.cursors[i].Buf == a.Buf && l.cursors[i].Same(&direct) {
			return place{uint16(l.fixed() + i), 0}
		}
	}
	l.cursors = append(l.cursors, direct)
	return place{uint16(l.fixed() + len(l.cursors) - 1), 0}
}

// claimRegister gives a register: an array, or one number.
func (l *looper) claimRegister(array bool) (int, place) {
	if !array {
		return -1, l.claim(8)
	}
	free := &l.free[l.now]
	if n := len(*free); n > 0 {
		r := (*free)[n-1]
		*free = (*free)[:n-1]
		return r, l.places[r]
	}
	l.used = (l.used + ir.Align - 1) / ir.Align * ir.Align
	l.places = append(l.places, l.claim((8*l.rows*l.inner+ir.Align-1)/ir.Align*ir.Align))
	return len(l.places) - 1, l.places[len(l.places)-1]
}

// release counts a use of each operand, and frees registers that no one needs any more.
func (l *looper) release(n *node) {
	for _, a := range n.args {
		v := &l.list[a]
		if v.left--; v.left == 0 && v.register >= 0 && !v.keeps {
			l.free[v.level] = append(l.free[v.level], v.register)
			v.register = -1
		}
	}
}

func (l *looper) into(to level) { l.now, l.encoder.list = to, &l.code[to] }

// length of an instruction's arrays where it does not run in blocks.
func (l *looper) length() int { return l.rows * l.inner }
