package cc

import (
	"fmt"
	"strconv"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
)

// reduce writes a reduction. Dimensions of stride 0 are reduced. Where they come last, a local variable takes up the
// terms; where kept dimensions lie inside of reduced ones, memory does.
func (n *nest) reduce(k int, a string) {
	in := &n.body[k]
	r := len(n.sizes)
	tail, head := r, 0
	for tail > 0 && in.At.Strides[tail-1] == 0 {
		tail--
	}
	for head < tail && in.At.Strides[head] != 0 {
		head++
	}
	to := n.element(&in.At)
	if tail == 0 || head == tail { // nothing is reduced but the last dimensions
		if tail == r {
			n.add(r, "%s = %s;", to, a)
			return
		}
		n.accumulate(k, tail, a)
		n.after[tail] = append(n.after[tail], fmt.Sprintf("%s = a%d;", to, k))
		return
	}
	var open string
	for d := head; d < tail; d++ {
		if in.At.Strides[d] != 0 {
			open += fmt.Sprintf("for (long %s = 0; %s < %d; %s++) ", n.vars[d], n.vars[d], n.sizes[d], n.vars[d])
		}
	}
	n.add(head, "%s%s = %s;", open, to, starts[in.Op])
	if tail < r {
		n.accumulate(k, tail, a)
		n.after[tail] = append(n.after[tail], combine(in.Op, to, "a"+strconv.Itoa(k)))
		return
	}
	n.add(r, "%s", combine(in.Op, to, a))
}

// accumulate has a local variable take up the terms of a reduction inside the loops from level l on.
func (n *nest) accumulate(k, l int, a string) {
	op := n.body[k].Op
	acc := "a" + strconv.Itoa(k)
	n.add(l, "double %s = %s;", acc, starts[op])
	n.add(len(n.sizes), "%s", combine(op, acc, a))
	n.simd = append(n.simd, fmt.Sprintf(" reduction(%s:%s)", clauses[op], acc))
}

var (
	starts  = map[ir.Op]string{ir.Sum: "0.0", ir.Prod: "1.0", ir.MaxOf: "-KELVIN_INF"}
	clauses = map[ir.Op]string{ir.Sum: "+", ir.Prod: "*", ir.MaxOf: "kelvin_max"}
)

// combine is a statement that takes a term into a reduction.
func combine(op ir.Op, to, term string) string {
	switch op {
	case ir.Sum:
		return to + " += " + term + ";"
	case ir.Prod:
		return to + " *= " + term + ";"
	}
	return fmt.Sprintf("%s = kelvin_max(%s, %s);", to, to, term)
}
