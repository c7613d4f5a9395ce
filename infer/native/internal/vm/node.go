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
	at    *access
	limit int

	minus   uint      // of a linear combination: which of its terms are subtracted
	free    bool      // of a linear combination: it has products alone
	targets []*access // of several sums

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

// nodes takes a body over, over simplified dimensions.
func (e *encoder) nodes(s *ir.Step) (sizes []int, list []node) {
	var all []*access
	for _, in := range s.Body {
		n := node{op: in.Op, args: slices.Clone(in.Operands()), num: in.Num, limit: in.Limit, register: -1}
		switch {
		case in.Op == ir.Coord:
			n.op, n.at = ir.Load, &access{buf: -1, strides: make([]int, len(s.Sizes))}
			n.at.strides[in.Dim] = 1
			e.pool.coordinates(s.Sizes[in.Dim])
		case in.Op == ir.Load || in.Op.Writes():
			n.at = e.access(&in.At)
		}
		if n.at != nil {
			all = append(all, n.at)
		}
		list = append(list, n)
	}
	sizes = simplify(s.Sizes, all)
	for i := range list {
		n := &list[i]
		for _, a := range n.args {
			list[a].uses++
			n.dims |= list[a].dims
		}
		if n.op == ir.Load {
			n.dims = n.at.dims()
		}
		// What keeps every dimension reduces nothing.
		if n.reduces() && n.at.dims() == 1<<len(sizes)-1 {
			n.op = ir.Store
		}
	}
	return sizes, list
}

func (n *node) reduces() bool { return n.op == ir.Sum || n.op == ir.Prod || n.op == ir.MaxOf }
func (n *node) writes() bool {
	return n.op >= ir.Store && n.op <= ir.StoreIndex || n.op == dot || n.op == dots
}

func (e *encoder) access(a *ir.Address) *access {
	if a == nil {
		return nil
	}
	return &access{buf: a.Buf, off: a.Off, elem: e.plan.Buffers[a.Buf].Elem, strides: a.Strides, index: e.access(a.Index),
		scale: a.Scale}
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

// conflicts finds out which buffers a body writes and reads. Where an iteration may see what another wrote, the loop is
// serial; where it sees its own, loads are copied and stores wait for their turn.
func conflicts(list []node, sizes []int) (serial bool, touched map[int]bool) {
	touched = map[int]bool{}
	for i := range list {
		if !list[i].writes() {
			continue
		}
		w := list[i].at
		for k := range list {
			for r := list[k].at; r != nil && k != i; r = r.index {
				if r.buf != w.buf || disjoint(w, r, sizes) {
					continue
				}
				sums := list[i].op == ir.ScatterAdd && list[k].op == ir.ScatterAdd
				touched[w.buf] = true
				if !sums && !(w.index == nil && w.same(r) && injective(w, sizes)) {
					serial = true
				}
			}
		}
	}
	return serial, touched
}

func disjoint(a, b *access, sizes []int) bool {
	if a.index != nil || b.index != nil {
		return false
	}
	lo, hi := a.span(sizes)
	low, high := b.span(sizes)
	step := 0 // of all elements that either reaches
	for _, s := range slices.Concat(a.strides, b.strides) {
		step = ir.Divisor(step, s)
	}
	return hi < low || high < lo || step > 1 && (a.off-b.off)%step != 0
}

// injective says that no two iterations reach one element: ordered by size, each stride is beyond what the smaller ones
// reach.
func injective(a *access, sizes []int) bool {
	order := make([]int, len(sizes))
	for d := range order {
		order[d] = d
	}
	abs := func(d int) int { return max(a.strides[d], -a.strides[d]) }
	slices.SortFunc(order, func(p, q int) int { return abs(p) - abs(q) })
	reach := 0
	for _, d := range order {
		if abs(d) <= reach {
			return false
		}
		reach += abs(d) * (sizes[d] - 1)
	}
	return true
}
