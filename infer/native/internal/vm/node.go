package vm

import (
	"slices"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
)

// Operations beyond those of ir.
const (
	fma  ir.Op = 128 + iota // A·B + C
	fms                     // A·B - C
	fnma                    // C - A·B
	ifLt                    // A < B ? C : D
	ifLe
	ifEq
	ifNe
	dot    // Sum of A·B
	dots   // several, with one A
	linear // sum of numbers times arrays
)

// node is an instruction of a body on its way to the machine.
type node struct {
	op    ir.Op
	args  []int
	num   float64
	at    *ir.Address
	limit int

	minus   uint          // of a linear combination: which of its terms are subtracted
	free    bool          // of a linear combination: it has products alone
	targets []*ir.Address // of several sums

	uses  int
	dims  uint // what its value depends on
	level level
	array bool
	done  bool // emitted, or part of another

	place    place
	register int // the register that it owns, or -1
	left     int // uses to come
	keeps    bool
}

// nodes takes a simplified body over.
func (e *encoder) nodes(sizes []int, body []ir.Instr) (list []node) {
	for i := range body {
		in := &body[i]
		n := node{op: in.Op, args: slices.Clone(in.Operands()), num: in.Num, limit: in.Limit, register: -1}
		if in.Op == ir.Load || in.Op == ir.Coord || in.Op.Writes() {
			n.at = &in.At
		}
		for _, a := range n.args {
			list[a].uses++
			n.dims |= list[a].dims
		}
		switch {
		case n.op == ir.Coord || n.op == ir.Load:
			n.op, n.dims = ir.Load, n.at.Dims()
		case n.reduces() && n.at.Dims() == 1<<len(sizes)-1:
			n.op = ir.Store // what keeps every dimension reduces nothing
		}
		list = append(list, n)
	}
	return list
}

func (n *node) reduces() bool { return n.op == ir.Sum || n.op == ir.Prod || n.op == ir.MaxOf }
func (n *node) writes() bool {
	return n.op >= ir.Store && n.op <= ir.StoreIndex || n.op == dot || n.op == dots
}

// fuse joins instructions where the machine has one for both: sums with products, selections with comparisons, and
// signs. Both must run at the same level.
func fuse(list []node) {
	single := func(n *node, a int, op ir.Op) bool {
		m := &list[a]
		return m.op == op && m.uses == 1 && m.level == n.level && m.array == n.array
	}
	take := func(n *node, op ir.Op, inner int, args ...int) {
		n.op, n.args = op, args
		list[inner].done = true
	}
	for i := range list {
		n := &list[i]
		if n.done {
			continue
		}
		negated := func(a int) bool { return list[a].op == ir.Neg }
		open := func(k int) { // drops the sign of an operand
			sign := &list[n.args[k]]
			if sign.uses--; sign.uses == 0 {
				sign.done = true
			} else {
				list[sign.args[0]].uses++
			}
			n.args[k] = sign.args[0]
		}
		switch n.op {
		case ir.Add:
			if negated(n.args[1]) {
				open(1)
				n.op = ir.Sub
			} else if negated(n.args[0]) {
				open(0)
				n.op, n.args[0], n.args[1] = ir.Sub, n.args[1], n.args[0]
			}
		case ir.Sub:
			if negated(n.args[1]) {
				open(1)
				n.op = ir.Add
			}
		}
		switch n.op {
		case ir.Add:
			for k := range 2 {
				if a, b := n.args[1-k], n.args[k]; a != b && single(n, a, ir.Mul) {
					take(n, fma, a, list[a].args[0], list[a].args[1], b)
					break
				}
			}
		case ir.Sub:
			a, b := n.args[0], n.args[1]
			if a != b && single(n, b, ir.Mul) {
				take(n, fnma, b, list[b].args[0], list[b].args[1], a)
			} else if a != b && single(n, a, ir.Mul) {
				take(n, fms, a, list[a].args[0], list[a].args[1], b)
			}
		case ir.Select:
			if c := n.args[0]; single(n, c, ir.Not) {
				take(n, ir.Select, c, list[c].args[0], n.args[2], n.args[1])
			}
			for op, to := range map[ir.Op]ir.Op{ir.Lt: ifLt, ir.Le: ifLe, ir.Eq: ifEq, ir.Ne: ifNe} {
				if c := n.args[0]; single(n, c, op) {
					take(n, to, c, list[c].args[0], list[c].args[1], n.args[1], n.args[2])
					break
				}
			}
		}
	}
}
