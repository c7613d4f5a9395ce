package ir

import "slices"

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
func (m *Machine) newLoop(s *Step) *loop {
	sizes, body := s.Simplified()
	for len(sizes) < 2 {
		sizes = slices.Insert(sizes, 0, 1)
		for k := range body {
			for a := &body[k].At; a != nil && body[k].touches(); a = a.Index {
				a.Strides = slices.Insert(a.Strides, 0, 0)
			}
		}
	}
	l := &loop{sizes: sizes}
	list := make([]instr, len(body))
	for k, in := range body {
		list[k] = instr{Instr: in, k: k}
		if in.Op.reduces() {
			l.starts = append(l.starts, list[k])
		}
	}
	m.dims, m.values = max(m.dims, len(sizes)), max(m.values, len(list))
	serial, touched := Conflicts(body, sizes)
	if serial || Iterations(sizes) == 1 {
		l.serial = list
		return l
	}
	last := len(sizes) - 1
	l.inner = min(sizes[last], blockLen)
	l.rows = max(1, min(sizes[last-1], blockLen/l.inner))
	l.levels(list, touched)
	l.fuse()
	m.registers = max(m.registers, l.registers()+1)
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
		if in.touches() {
			a := &in.At
			switch dims := a.Dims(); {
			case in.Op.Writes() || dims>>(d-2) != 0 || touched[a.Buf]:
				to = block
			case dims != 0:
				to = outer
			}
			in.flat = a.Index == nil && a.Strides[d-1] == 1 && (l.rows == 1 || a.Strides[d-2] == l.inner)
			in.direct = in.Op == Load && in.flat && !touched[a.Buf]
		}
		for _, a := range in.Operands() {
			to = max(to, level[a])
		}
		level[k] = to
		switch to {
		case once:
			l.once = append(l.once, *in)
		case outer:
			l.outer = append(l.outer, *in)
		default:
			in.va, in.vb, in.vc = level[in.A] == block, level[in.B] == block, level[in.C] == block
			l.block = append(l.block, *in)
		}
	}
}

// fuse finds products of which one instruction makes the next operation too: the sum of all, or a sum with a vector.
func (l *loop) fuse() {
	readers, d := map[int]int{}, len(l.sizes)
	for i := range l.block {
		in := &l.block[i]
		for j, k := range []int{in.A, in.B, in.C} {
			if []bool{in.va, in.vb, in.vc}[j] && j < in.Op.arity() {
				readers[k]++
			}
		}
	}
	products := map[int]*instr{}
	for i := range l.block {
		in := &l.block[i]
		switch a := products[in.A]; {
		case in.Op == Mul && readers[in.k] == 1:
			products[in.k] = in
		case in.Op == Sum && a != nil && a.va && a.vb && in.At.Strides[d-1] == 0 && in.At.Strides[d-2] == 0:
			in.mul, a.fused = a, true
		case in.Op == Add && in.va && in.vb:
			if b := products[in.B]; b != nil {
				in.mul, b.fused = b, true
			} else if a != nil {
				in.mul, a.fused = a, true
			}
		}
	}
}

// registers gives vectors registers, which are free again behind the last instruction that reads them.
func (l *loop) registers() int {
	last := map[int]int{}
	for i := range l.block {
		in := &l.block[i]
		for j, k := range []int{in.A, in.B, in.C} {
			if []bool{in.va, in.vb, in.vc}[j] {
				last[k] = i
			}
		}
		if in.mul != nil {
			last[in.mul.A], last[in.mul.B] = max(last[in.mul.A], i), max(last[in.mul.B], i)
		}
	}
	held := map[int]int{}
	var free []int
	n := 0
	for i := range l.block {
		in := &l.block[i]
		if !in.Op.Writes() {
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
			if !Next(at, l.sizes) {
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
				if !l.blocks(m, at, min(l.rows, l.sizes[d-2]-r), min(l.inner, l.sizes[d-1]-i)) {
					return false
				}
			}
		}
		if !Next(at[:d-2], l.sizes[:d-2]) {
			return true
		}
	}
}

// start sets the elements of a reduction.
func (l *loop) start(m *memory, in *instr, at []int) {
	kept := make([]int, len(l.sizes))
	for d, s := range in.At.Strides {
		if kept[d] = l.sizes[d]; s == 0 {
			kept[d] = 1
		}
	}
	for more := true; more; more = Next(at, kept) {
		m.buf[in.At.Buf][in.At.start(m, at)] = first(in.Op)
	}
}
