package ir

import "fmt"

// Check makes sure that a plan is sound: every access lies inside its buffer, every operand is an earlier instruction
// that has a value, and each part writes only what it may. A back end may trust a plan that was checked.
func (p *Plan) Check() error {
	if p.Dim < 1 {
		return fmt.Errorf("ir: Dim is %d", p.Dim)
	}
	for i, b := range p.Buffers {
		if b.Len < 1 {
			return fmt.Errorf("ir: buffer %d has %d elements", i, b.Len)
		}
		switch {
		case b.Kind == Const && len(b.Data) != b.Len:
			return fmt.Errorf("ir: buffer %d has %d elements and %d numbers", i, b.Len, len(b.Data))
		case (b.Kind == X || b.Kind == Grad) && b.Len != p.Dim, (b.Kind == Value || b.Kind == Weight) && b.Len != 1:
			return fmt.Errorf("ir: buffer %d has %d elements", i, b.Len)
		case b.Kind == Input && (b.Slot < 0 || b.Slot >= len(p.Inputs)),
			b.Kind == Aux && (b.Slot < 0 || b.Slot >= len(p.Outputs)):
			return fmt.Errorf("ir: buffer %d has slot %d", i, b.Slot)
		case b.Elem == I32 && b.Kind != Const && b.Kind != Prepared, b.Elem != F64 && b.Elem != I32 && b.Kind != Input:
			return fmt.Errorf("ir: buffer %d of kind %d has elements of type %d", i, b.Kind, b.Elem)
		}
	}
	for i := range p.Prologue {
		if err := p.step(&p.Prologue[i], true, 0); err != nil {
			return fmt.Errorf("ir: prologue step %d: %w", i, err)
		}
	}
	for i := range p.Steps {
		if err := p.step(&p.Steps[i], false, 0); err != nil {
			return fmt.Errorf("ir: step %d: %w", i, err)
		}
	}
	return nil
}

// step checks a step inside of a Repeat of so many turns, or outside of one, where turns is 0.
func (p *Plan) step(s *Step, prologue bool, turns int) error {
	if s.Kind == Repeat {
		if s.Times < 1 || turns > 0 || s.Parts < 0 || s.Parts > s.Times || prologue && s.Parts > 0 {
			return fmt.Errorf("a repeat of %d turns in %d parts inside of one of %d", s.Times, s.Parts, turns)
		}
		for k, inner := range [][]Step{s.Before, s.Inner, s.After} {
			for i := range inner {
				if err := p.step(&inner[i], prologue, []int{s.Parts, s.Times, s.Parts}[k]); err != nil {
					return fmt.Errorf("repeated step %d: %w", i, err)
				}
			}
		}
		return p.apart(s)
	}
	for _, n := range s.Sizes {
		if n < 1 {
			return fmt.Errorf("sizes %v", s.Sizes)
		}
	}
	if s.Kind != Loop {
		return p.matrices(s, prologue, turns)
	}
	for k, in := range s.Body {
		for _, a := range in.Operands() {
			if a < 0 || a >= k || s.Body[a].Op.Writes() {
				return fmt.Errorf("instruction %d takes %d", k, a)
			}
		}
		switch {
		case in.Op == Coord && (in.Dim < 0 || in.Dim >= len(s.Sizes)):
			return fmt.Errorf("instruction %d has dimension %d of %d", k, in.Dim, len(s.Sizes))
		case in.Op == Load || in.Op.Writes():
			if err := p.access(&in.At, s.Sizes, in.Op.Writes(), in.Op == StoreIndex, prologue, turns); err != nil {
				return fmt.Errorf("instruction %d: %w", k, err)
			}
		}
		if in.Op == ScatterAdd && in.At.Index == nil {
			return fmt.Errorf("instruction %d scatters without an index", k)
		}
		if in.Op == StoreIndex && (!prologue || in.Limit < 1 || turns > 0) {
			return fmt.Errorf("instruction %d stores an index below %d", k, in.Limit)
		}
	}
	return nil
}

// access checks the elements that an address reaches.
func (p *Plan) access(a *Address, sizes []int, write, index, prologue bool, turns int) error {
	if err := p.allowed(a.Buf, write, prologue); err != nil {
		return err
	}
	if len(a.Strides) != len(sizes) {
		return fmt.Errorf("%d strides for the sizes %v", len(a.Strides), sizes)
	}
	b := p.Buffers[a.Buf]
	if write && (b.Elem == I32) != index {
		return fmt.Errorf("buffer %d has elements of type %d", a.Buf, b.Elem)
	}
	if turns == 0 && a.Turn != 0 {
		return fmt.Errorf("buffer %d is read or written by turns, and there are none", a.Buf)
	}
	lo, hi := a.Off+min(0, a.Turn*(turns-1)), a.Off+max(0, a.Turn*(turns-1))
	for d, s := range a.Strides {
		lo += min(0, s*(sizes[d]-1))
		hi += max(0, s*(sizes[d]-1))
	}
	if a.Index != nil {
		if err := p.access(a.Index, sizes, false, false, prologue, turns); err != nil {
			return err
		}
		i := p.Buffers[a.Index.Buf]
		if i.Elem != I32 || a.Index.Index != nil {
			return fmt.Errorf("buffer %d is no index", a.Index.Buf)
		}
		most := p.limit(a.Index.Buf) - 1
		lo += min(0, a.Scale*most)
		hi += max(0, a.Scale*most)
	}
	if lo < 0 || hi >= b.Len {
		return fmt.Errorf("elements %d to %d of buffer %d, which has %d", lo, hi, a.Buf, b.Len)
	}
	return nil
}

// apart makes sure that what the parts of a Repeat write, and no turn moves, is scratch of their own: no other step
// touches it.
func (p *Plan) apart(s *Step) error {
	if s.Parts == 0 {
		return nil
	}
	own, err := map[int]bool{}, error(nil)
	for _, inner := range Leaves([]Step{*s}) {
		inner.Accesses(func(buf, turn int, writes bool) {
			if own[buf] = own[buf] || writes && turn == 0; own[buf] && p.Buffers[buf].Kind != Work {
				err = fmt.Errorf("parts of a repeat write buffer %d, which is no scratch", buf)
			}
		})
	}
	for i := range p.Steps {
		if other := &p.Steps[i]; other != s {
			for _, x := range Leaves(p.Steps[i : i+1]) {
				x.Accesses(func(buf, _ int, _ bool) {
					if own[buf] {
						err = fmt.Errorf("buffer %d is the own of parts of a repeat, and step %d touches it", buf, i)
					}
				})
			}
		}
	}
	return err
}

// limit is what every number of an index buffer is below.
func (p *Plan) limit(buf int) int {
	most := 1
	for _, v := range p.Buffers[buf].Data {
		most = max(most, int(v)+1)
	}
	for _, s := range p.Prologue {
		for _, in := range s.Body { // a Repeat stores no indices
			if in.Op == StoreIndex && in.At.Buf == buf {
				most = max(most, in.Limit)
			}
		}
	}
	return most
}

func (p *Plan) allowed(buf int, write, prologue bool) error {
	if buf < 0 || buf >= len(p.Buffers) {
		return fmt.Errorf("buffer %d of %d", buf, len(p.Buffers))
	}
	k := p.Buffers[buf].Kind
	var ok bool
	switch {
	case write && prologue:
		ok = k == Prepared || k == Work
	case write:
		ok = k == Grad || k == Value || k == Work || k == Aux
	case prologue:
		ok = k == Const || k == Input || k == Prepared || k == Work
	default:
		ok = true
	}
	if !ok {
		return fmt.Errorf("buffer %d of kind %d: write %v, prologue %v", buf, k, write, prologue)
	}
	return nil
}

// matrices checks the operands of a step that is no loop.
func (p *Plan) matrices(s *Step, prologue bool, turns int) error {
	type operand struct {
		m          Matrix
		rows, cols int
		write      bool
	}
	var all []operand
	switch s.Kind {
	case MatMul:
		if s.Upper && s.M != s.K || s.Lower && s.M != s.N {
			return fmt.Errorf("a triangle of a product of %d x %d and %d x %d", s.M, s.K, s.K, s.N)
		}
		all = []operand{{s.Out, s.M, s.N, true}, {s.A, s.M, s.K, false}, {s.B, s.K, s.N, false}}
	case Cholesky:
		all = []operand{{s.Out, s.N, s.N, true}, {s.A, s.N, s.N, false}}
	case Solve:
		k := s.M
		if s.Right {
			k = s.N
		}
		all = []operand{{s.Out, s.M, s.N, true}, {s.A, k, k, false}, {s.B, s.M, s.N, false}}
	case Scan:
		all = []operand{{s.Out, 1, s.N, true}, {s.A, 1, s.N, false}}
	case Call:
		all = []operand{{s.Out, 1, s.N, true}, {s.A, 1, s.K, false}, {s.B, 1, 2, false}}
		if s.Out.Col != 1 || s.A.Col != 1 || p.Buffers[s.B.Buf].Kind != Const {
			return fmt.Errorf("a call with arguments that are not contiguous, or of no constant address")
		}
	default:
		return fmt.Errorf("kind %d", s.Kind)
	}
	for _, o := range all {
		if o.rows < 1 || o.cols < 1 {
			return fmt.Errorf("a matrix of %d x %d", o.rows, o.cols)
		}
		a := Address{Buf: o.m.Buf, Off: o.m.Off, Strides: append(append([]int{}, o.m.Strides...), o.m.Row, o.m.Col),
			Turn: o.m.Turn}
		sizes := append(append([]int{}, s.Sizes...), o.rows, o.cols)
		if err := p.access(&a, sizes, o.write, false, prologue, turns); err != nil {
			return err
		}
		if e := p.Buffers[o.m.Buf].Elem; e != F64 {
			return fmt.Errorf("buffer %d has elements of type %d", o.m.Buf, e)
		}
	}
	return nil
}
