package vm

// #include "program.h"
import "C"

import (
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
)

// Sums of several products of an array with a number, such as a linear predictor, and several sums of products with one
// array, such as its gradient, are one instruction each: with one for each product, most of the time goes into loads
// and stores of what lies between.

// mostTerms is how many products one instruction takes.
const mostTerms = 4

// term is a part of a linear combination.
type term struct {
	a, b  int // b is -1 where there is no second factor
	minus bool
}

// combine finds linear combinations, the longest ones first. It must come before other instructions are joined.
func combine(list []node) {
	for i := len(list) - 1; i >= 0; i-- {
		n := &list[i]
		if n.done || !n.array || n.op != ir.Add && n.op != ir.Sub {
			continue
		}
		var products []term
		var rest []term
		var inner []int
		flatten(list, n, i, false, &products, &rest, &inner)
		if len(products) < 2 || len(rest) > 1 {
			continue
		}
		if len(rest) == 0 {
			rest = []term{{a: -1}}
		}
		n.op, n.args, n.minus = linear, nil, 0
		for k, t := range append(rest, products...) {
			if t.minus {
				n.minus |= 1 << k
			}
			n.args = append(n.args, t.a)
			if k > 0 {
				n.args = append(n.args, t.b)
			}
		}
		if rest[0].a < 0 {
			n.args, n.free = n.args[1:], true
		}
		for _, k := range inner {
			list[k].done = true
		}
	}
}

// flatten writes instruction i as a sum of terms. Inner are the instructions that it takes apart.
func flatten(list []node, top *node, i int, minus bool, products, rest *[]term, inner *[]int) {
	n := &list[i]
	if n != top && (n.uses != 1 || n.done || n.level != top.level || !n.array) {
		*rest = append(*rest, term{a: i, b: -1, minus: minus})
		return
	}
	takes := func() {
		if n != top {
			*inner = append(*inner, i)
		}
	}
	switch n.op {
	case ir.Add, ir.Sub:
		takes()
		flatten(list, top, n.args[0], minus, products, rest, inner)
		flatten(list, top, n.args[1], minus != (n.op == ir.Sub), products, rest, inner)
		return
	case ir.Neg:
		takes()
		flatten(list, top, n.args[0], !minus, products, rest, inner)
		return
	case ir.Mul:
		for k := range 2 {
			if a, b := n.args[k], n.args[1-k]; list[a].array && !list[b].array {
				takes()
				*products = append(*products, term{a, b, minus})
				return
			}
		}
	}
	*rest = append(*rest, term{a: i, b: -1, minus: minus})
}

// gather makes sums of products with one array that run at the same place one instruction, the last of them.
func gather(list []node) {
	for i := len(list) - 1; i >= 0; i-- {
		if n := &list[i]; n.op == dot && !n.done {
			for k := range 2 {
				if group := partners(list, i, n.args[k]); len(group) > 1 {
					join(list, group, n.args[k])
					break
				}
			}
		}
	}
}

// partners are the sums of products with an array that can be done with the sum i: the last ones before it, and it.
func partners(list []node, i, shared int) []int {
	group := []int{i}
	for k := i - 1; k >= 0 && len(group) < mostTerms; k-- {
		m := &list[k]
		if m.op == dot && !m.done && m.level == list[i].level && slices.Contains(m.args, shared) {
			group = append(group, k)
		}
	}
	slices.Reverse(group)
	return group
}

func join(list []node, group []int, shared int) {
	n := &list[group[len(group)-1]]
	args := []int{shared}
	for _, k := range group {
		m := &list[k]
		other := m.args[0]
		if other == shared {
			other = m.args[1]
		}
		args = append(args, other)
		n.targets = append(n.targets, m.at)
		m.done = true
	}
	n.op, n.args, n.done = dots, args, false
}

// terms places the terms of an instruction in the pool.
func (l *looper) terms(in *C.kvm_instr, first, second []place, minus uint) {
	var list []C.kvm_term
	for k := range first {
		t := C.kvm_term{minus: C.uint32_t(minus >> k & 1)}
		for i, p := range []place{first[k], second[k]} {
			t.base[i], t.off[i] = C.uint16_t(p.base), C.uint32_t(p.off)
		}
		list = append(list, t)
	}
	in.q, in.p = C.int64_t(len(list)), C.int64_t(put(&l.pool, list...))
}

// linear encodes a linear combination, some terms at a time.
func (l *looper) linear(i int, n *node) {
	args, minus := n.args, n.minus
	rest, single := place{}, true
	if n.free {
		rest = l.pool.number(math.Copysign(0, -1)) // which leaves the sign of a product that is zero
	} else {
		rest, single = l.in(args[0])
		args = args[1:]
	}
	var arrays, numbers []place
	for k := 0; k < len(args); k += 2 {
		arrays, numbers = append(arrays, l.list[args[k]].place), append(numbers, l.list[args[k+1]].place)
	}
	var ok bool
	if len(arrays) <= mostTerms {
		l.release(n)
	}
	if n.place, ok = l.direct(i, n); !ok {
		n.register, n.place = l.claimRegister(true)
	}
	var flags C.uint16_t
	if single {
		flags |= 2
	}
	if minus&1 != 0 {
		flags |= 1 << 8
	}
	minus >>= 1
	for from := 0; from < len(arrays); {
		to := min(from+mostTerms, len(arrays))
		if len(arrays)-to == 1 {
			to--
		}
		in := l.array(C.K_LINEAR, l.length(), n.place, rest)
		in.flags = flags
		l.terms(in, arrays[from:to], numbers[from:to], minus>>from)
		rest, flags, from = n.place, 0, to
	}
	if len(arrays) > mostTerms {
		l.release(n)
	}
}
