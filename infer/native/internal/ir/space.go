package ir

import "slices"

// Simplified is the space of a loop without dimensions of one iteration, in which those that every address walks alike
// are one, and the loop's body in that space. The address of a Coord is one of buffer -1, whose element i is i.
func (s *Step) Simplified() (sizes []int, body []Instr) {
	sizes, body = slices.Clone(s.Sizes), slices.Clone(s.Body)
	var all []*Address
	for k := range body {
		in := &body[k]
		switch {
		case in.Op == Coord:
			in.At = Address{Buf: -1, Strides: make([]int, len(sizes))}
			in.At.Strides[in.Dim] = 1
		case in.touches():
			in.At = *in.At.clone()
		default:
			continue
		}
		for a := &in.At; a != nil; a = a.Index {
			all = append(all, a)
		}
	}
	for d := len(sizes) - 1; d >= 0; d-- {
		if sizes[d] == 1 {
			sizes = slices.Delete(sizes, d, d+1)
			drop(all, d)
		}
	}
	return Join(sizes, all), body
}

// Join makes neighbouring dimensions one where every address walks through them as through one. It changes the
// addresses.
func Join(sizes []int, all []*Address) []int {
	for d := len(sizes) - 2; d >= 0; d-- {
		if !slices.ContainsFunc(all, func(a *Address) bool { return a.Strides[d] != a.Strides[d+1]*sizes[d+1] }) {
			sizes[d+1] *= sizes[d]
			sizes = slices.Delete(sizes, d, d+1)
			drop(all, d)
		}
	}
	return sizes
}

func drop(all []*Address, d int) {
	for _, a := range all {
		a.Strides = slices.Delete(a.Strides, d, d+1)
	}
}

func (a *Address) clone() *Address {
	if a == nil {
		return nil
	}
	b := *a
	b.Strides, b.Index = slices.Clone(a.Strides), a.Index.clone()
	return &b
}

// touches says whether an instruction has an address.
func (i *Instr) touches() bool { return i.Op == Load || i.Op == Coord || i.Op.Writes() }

// Matrices are the operands of a step that is no loop, the result first.
func (s *Step) Matrices() []*Matrix {
	switch s.Kind {
	case MatMul, Solve, Call:
		return []*Matrix{&s.Out, &s.A, &s.B}
	}
	return []*Matrix{&s.Out, &s.A}
}

// Accesses calls f with the buffer of each access of a step that is no Repeat, how it moves from turn to turn, and
// whether it writes.
func (s *Step) Accesses(f func(buf, turn int, writes bool)) {
	for k := range s.Body {
		if in := &s.Body[k]; in.Op == Load || in.Op.Writes() {
			f(in.At.Buf, in.At.Turn, in.Op.Writes())
			if x := in.At.Index; x != nil {
				f(x.Buf, x.Turn, false)
			}
		}
	}
	if s.Kind != Loop {
		for k, m := range s.Matrices() {
			f(m.Buf, m.Turn, k == 0)
		}
	}
}

// Dims is the set of dimensions that an address depends on, as bits.
func (a *Address) Dims() (set uint) {
	for d, s := range a.Strides {
		if s != 0 {
			set |= 1 << d
		}
	}
	if a.Index != nil {
		set |= a.Index.Dims()
	}
	return set
}

// Conflicts says whether the iterations of a simplified body must run one after the other, since one may read or write
// what another wrote, and which buffers an iteration writes and touches besides.
func Conflicts(body []Instr, sizes []int) (serial bool, touched map[int]bool) {
	touched = map[int]bool{}
	for i := range body {
		if !body[i].Op.Writes() {
			continue
		}
		w := &body[i].At
		for k := range body {
			if k == i || !body[k].touches() {
				continue
			}
			for r := &body[k].At; r != nil; r = r.Index {
				if r.Buf != w.Buf || w.Index == nil && r.Index == nil && w.Apart(r, sizes, 0) {
					continue
				}
				touched[w.Buf] = true
				sums := body[i].Op == ScatterAdd && body[k].Op == ScatterAdd
				serial = serial || !sums && !(w.Same(r) && w.Injective(sizes))
			}
		}
	}
	return serial, touched
}

// Same says whether two addresses of one buffer, both without an index, are equal.
func (a *Address) Same(b *Address) bool {
	return a.Index == nil && b.Index == nil && a.Off == b.Off && a.Turn == b.Turn && slices.Equal(a.Strides, b.Strides)
}

// Apart says whether two addresses of one buffer of a length surely never meet in one turn.
func (a *Address) Apart(b *Address, sizes []int, length int) bool {
	if a.Turn != b.Turn {
		return false
	}
	aLow, aHigh, step := a.span(sizes, length)
	bLow, bHigh, other := b.span(sizes, length)
	if step = Divisor(step, other); aHigh < bLow || bHigh < aLow {
		return true
	}
	return step > 1 && (a.Off-b.Off)%step != 0
}

// span is the range of elements that an address reaches, that of all with an index, and a number that divides every
// distance between two of them.
func (a *Address) span(sizes []int, length int) (low, high, step int) {
	low, high = a.Off, a.Off
	for d, s := range a.Strides {
		low, high = low+min(0, s*(sizes[d]-1)), high+max(0, s*(sizes[d]-1))
		step = Divisor(step, s)
	}
	if a.Index != nil {
		return 0, length - 1, Divisor(step, a.Scale)
	}
	return low, high, step
}

// Injective says that no two iterations reach one element: ordered by size, each stride is beyond what the smaller ones
// reach.
func (a *Address) Injective(sizes []int) bool {
	stride := func(d int) int { return max(a.Strides[d], -a.Strides[d]) }
	var order []int
	for d, n := range sizes {
		if n > 1 {
			order = append(order, d)
		}
	}
	slices.SortFunc(order, func(p, q int) int { return stride(p) - stride(q) })
	reach := 0
	for _, d := range order {
		if stride(d) <= reach {
			return false
		}
		reach += stride(d) * (sizes[d] - 1)
	}
	return true
}
