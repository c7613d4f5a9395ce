package vm

// #include "program.h"
import "C"

import (
	"encoding/binary"
	"maps"
	"math"
	"slices"
)

// Runs of instructions on single numbers become one instruction each. Its code works on the work block alone: constants
// are copied there at the start of an evaluation, what else is read lies there from its first use on, and the results
// for elsewhere are copied from there.
const (
	numberSlots = 256
	otherSlots  = 256
	allSlots    = numberSlots + otherSlots
	// longest bounds the code of one instruction. A compiler that does not make jumps of its last calls needs so many
	// frames on the stack.
	longest = 512
)

// collector makes the code of single numbers.
type collector struct {
	*encoder
	numbers map[int]uint32 // the slots of constants, by their place in the pool
	values  []float64
	others  map[place]int // the slots of what is read from elsewhere; held has the places
	held    [otherSlots]place
	next    int // the slot that is taken next
	code    []C.kvm_scalar
	last    int // the place of the latest result, or -1
}

// scalars collects the runs of a list that runs once in an evaluation, from its start to its end.
func (e *encoder) scalars(list []C.kvm_instr) (out []C.kvm_instr) {
	c := collector{encoder: e, numbers: map[int]uint32{}, others: map[place]int{}}
	e.list = &out
	for from := 0; from < len(list); {
		to := from
		for to < len(list) && to-from < longest && c.takes(&list[to]) {
			to++
		}
		if to-from < 2 {
			out, from = append(out, list[from]), from+1
			continue
		}
		c.code, c.last = nil, -1
		maps.DeleteFunc(c.others, func(p place, _ int) bool { return c.written(p) })
		for ; from < to; from++ {
			c.add(&list[from])
		}
		c.put(C.S_END, 0)
		e.emit(C.K_SCALARS).p = C.int64_t(put(&e.pool, c.code...))
	}
	if n := len(c.values); n > 0 {
		all := out
		out = nil
		at := put(&e.pool, c.values...)
		e.array(C.K_MOVE, n, place{C.B_WORK, uint32(e.slots())}, place{C.B_POOL, uint32(at)})
		out = append(out, all...)
	}
	return out
}

// takes says whether an instruction is one on single numbers in memory that has no cursor.
func (c *collector) takes(in *C.kvm_instr) bool {
	cursor := func(b C.uint16_t) bool { return int(b) >= c.fixed() }
	return in.kernel >= C.K_SCALAR && !slices.ContainsFunc(in.base[:], cursor)
}

func arity(in *C.kvm_instr) int {
	switch op := in.kernel - C.K_SCALAR; {
	case op == C.S_MOVE || op >= C.S_UNARY && op < C.S_BINARY:
		return 1
	case op >= C.S_BINARY:
		return 2
	case op <= C.S_SELECT:
		return 3
	}
	return 4
}

// put appends an instruction with its places; the first is the result.
func (c *collector) put(op int, places ...uint32) *C.kvm_scalar {
	in := C.kvm_scalar{}
	form := 0
	for k, p := range places {
		in.off[k] = C.uint32_t(p)
		if k > 0 && k < 4 && int(p) == c.last && c.variant.scalars[op][k] != nil {
			form = k
		}
	}
	in.run = c.variant.scalars[op][form]
	c.code = append(c.code, in)
	c.last = int(places[0])
	return &c.code[len(c.code)-1]
}

// add appends an instruction of a run.
func (c *collector) add(in *C.kvm_instr) {
	op, places := int(in.kernel)-C.K_SCALAR, make([]uint32, 1+arity(in))
	for k := 1; k < len(places); k++ {
		places[k] = c.operand(place{uint16(in.base[k]), uint32(in.off[k])})
	}
	to := place{uint16(in.base[0]), uint32(in.off[0])}
	if to.base == C.B_WORK {
		places[0] = to.off
		c.put(op, places...)
		return
	}
	delete(c.others, to)
	if op == C.S_MOVE {
		c.elsewhere(C.S_PUT, places[1], to)
		return
	}
	places[0] = c.take(to)
	c.put(op, places...)
	c.elsewhere(C.S_PUT, places[0], to)
}

// written says whether a place is one that evaluations write to.
func (c *collector) written(p place) bool {
	return p.base == C.B_GRAD || p.base == C.B_VALUE || int(p.base) >= C.B_FIRST+len(c.plan.Inputs)
}

// elsewhere appends a copy to or from a place that is not in the work block.
func (c *collector) elsewhere(op int, slot uint32, p place) {
	in := C.kvm_scalar{base: C.uint32_t(p.base)}
	in.off[0], in.off[1] = C.uint32_t(slot), C.uint32_t(p.off)
	form := 0
	if op == C.S_PUT && int(slot) == c.last {
		form = 1
	}
	in.run = c.variant.scalars[op][form]
	c.code, c.last = append(c.code, in), int(slot)
}

func (c *collector) slot(k int) uint32 { return uint32(c.slots() + 8*k) }

// operand is the place of an operand in the work block.
func (c *collector) operand(p place) uint32 {
	if p.base == C.B_WORK {
		return p.off
	}
	if p.base == C.B_POOL {
		at, ok := c.numbers[int(p.off)]
		if ok {
			return at
		}
		if n := len(c.values); n < numberSlots {
			at = c.slot(n)
			bits := binary.NativeEndian.Uint64(c.pool.bytes[p.off:])
			c.numbers[int(p.off)], c.values = at, append(c.values, math.Float64frombits(bits))
			return at
		}
	}
	// Four more slots may be taken for this instruction.
	if at, ok := c.others[p]; ok && (at+otherSlots-c.next)%otherSlots > 4 {
		return c.slot(numberSlots + at)
	}
	at := c.take(p)
	c.elsewhere(C.S_GET, at, p)
	return at
}

// take finds a slot for what is elsewhere: the one that was taken the longest time ago.
func (c *collector) take(p place) uint32 {
	at := c.next
	delete(c.others, c.held[at])
	c.others[p], c.held[at] = at, p
	c.next = (at + 1) % otherSlots
	return c.slot(numberSlots + at)
}
