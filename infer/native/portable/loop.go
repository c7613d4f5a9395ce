package portable

import (
	"slices"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
)

// blockLen is how many iterations an instruction is run for at a time.
const blockLen = 256

// loop is a fused loop. The last two dimensions of its space are taken in blocks of rows x inner iterations; there
// are always two.
type loop struct {
	sizes       []int
	rows, inner int
	serial      []instr // all instructions, where iterations depend on each other or there is one
	once        []instr // what is the same in all iterations
	outer       []instr // what is the same in a block
	block       []instr
	starts      []instr // reductions
}

// newLoop puts the instructions of a loop where they run.
func (c *code) newLoop(s *ir.Step) *loop {
	list := make([]instr, len(s.Body))
	for k, in := range s.Body {
		list[k] = instr{op: in.Op, k: k, num: in.Num, limit: float64(in.Limit)}
		for i, a := range in.Operands() {
			*[]*int{&list[k].a, &list[k].b, &list[k].c}[i] = a
		}
		switch {
		case in.Op == ir.Coord:
			list[k].at = &address{buf: -1, strides: make([]int, len(s.Sizes))}
			list[k].at.strides[in.Dim] = 1
		case in.Op == ir.Load || in.Op.Writes():
			list[k].at = newAddress(&in.At)
		}
	}
	l := &loop{sizes: simplify(s.Sizes, list)}
	for _, in := range list {
		if in.op == ir.Sum || in.op == ir.Prod || in.op == ir.MaxOf {
			l.starts = append(l.starts, in)
		}
	}
	c.dims, c.values = max(c.dims, len(l.sizes)), max(c.values, len(list))
	serial, touched := conflicts(list, l.sizes)
	if serial || ir.Iterations(l.sizes) == 1 {
		l.serial = list
		return l
	}
	last := len(l.sizes) - 1
	l.inner = min(l.sizes[last], blockLen)
	l.rows = max(1, min(l.sizes[last-1], blockLen/l.inner))
	l.levels(list, touched)
	c.registers = max(c.registers, l.registers())
	return l
}

// levels parts the instructions by how often they run.
func (l *loop) levels(list []instr, touched map[int]bool) {
	d := len(l.sizes)
	const once, outer, block = 0, 1, 2
	level := make([]int, len(list))
	for k := range list {
		in := &list[k]
		var to int
		if in.at != nil {
			switch {
			case in.op.Writes() || in.at.varies(d-2) || touched[in.at.buf]:
				to = block
			case in.at.varies(0):
				to = outer
			}
			in.flat = in.at.index == nil && in.at.strides[d-1] == 1 && (l.rows == 1 || in.at.strides[d-2] == l.inner)
			in.direct = in.op == ir.Load && in.flat && !touched[in.at.buf]
		}
		if in.op > ir.Coord {
			to = max(to, level[in.a])
		}
		if in.op >= ir.Add && !in.op.Writes() {
			to = max(to, level[in.b])
		}
		if in.op == ir.Select {
			to = max(to, level[in.c])
		}
		level[k] = to
		switch to {
		case once:
			l.once = append(l.once, *in)
		case outer:
			l.outer = append(l.outer, *in)
		default:
			in.va, in.vb, in.vc = level[in.a] == block, level[in.b] == block, level[in.c] == block
			l.block = append(l.block, *in)
		}
	}
}

// registers gives vectors registers, which are free again behind the last instruction that reads them.
func (l *loop) registers() int {
	last := map[int]int{}
	for i := range l.block {
		in := &l.block[i]
		for j, k := range []int{in.a, in.b, in.c} {
			if []bool{in.va, in.vb, in.vc}[j] {
				last[k] = i
			}
		}
	}
	held := map[int]int{}
	var free []int
	n := 0
	for i := range l.block {
		in := &l.block[i]
		if !in.op.Writes() {
			if len(free) == 0 {
				free, n = append(free, n), n+1
			}
			in.reg, free = free[len(free)-1], free[:len(free)-1]
			held[in.k] = in.reg
		}
		for k, r := range held {
			if last[k] <= i {
				free = append(free, r)
				delete(held, k)
			}
		}
		slices.Sort(free)
	}
	return n
}

// run runs a loop. It is false where an index is wrong.
func (l *loop) run(m *memory) bool {
	at := m.at[:len(l.sizes)]
	clear(at)
	for i := range l.starts {
		l.start(m, &l.starts[i], at)
	}
	if l.serial != nil {
		for {
			if !m.scalars(l.serial, at) {
				return false
			}
			if !ir.Next(at, l.sizes) {
				return true
			}
		}
	}
	m.scalars(l.once, at)
	d := len(l.sizes)
	for {
		at[d-2], at[d-1] = 0, 0
		m.scalars(l.outer, at)
		for r := 0; r < l.sizes[d-2]; r += l.rows {
			for i := 0; i < l.sizes[d-1]; i += l.inner {
				at[d-2], at[d-1] = r, i
				if !l.vectors(m, at, min(l.rows, l.sizes[d-2]-r), min(l.inner, l.sizes[d-1]-i)) {
					return false
				}
			}
		}
		if !ir.Next(at[:d-2], l.sizes[:d-2]) {
			return true
		}
	}
}

// start sets the elements of a reduction.
func (l *loop) start(m *memory, in *instr, at []int) {
	kept := make([]int, len(l.sizes))
	for d, s := range in.at.strides {
		if kept[d] = l.sizes[d]; s == 0 {
			kept[d] = 1
		}
	}
	for more := true; more; more = ir.Next(at, kept) {
		m.buf[in.at.buf][in.at.start(m, at)] = first(in.op)
	}
}
