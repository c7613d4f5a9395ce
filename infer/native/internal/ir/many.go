package ir

import "slices"

// Many is a plan of n evaluations at once, for n points in columns: element i of point k is at i·n + k of X, so that
// loops walk along the points. Work and Aux buffers have a row for each, and steps of the main part and outputs a first
// dimension more. It has no value and no gradient.
func (p *Plan) Many(n int) *Plan {
	q := &Plan{Dim: n * p.Dim, Inputs: p.Inputs, Prologue: p.Prologue, Buffers: slices.Clone(p.Buffers)}
	length := make([]int, len(p.Buffers)) // from one evaluation to the next; 0 for what they share
	apart := make([]int, len(p.Buffers))  // between elements of one evaluation that were neighbours
	for i := range q.Buffers {
		apart[i] = 1
		switch b := &q.Buffers[i]; b.Kind {
		case X:
			length[i], apart[i] = 1, n
			b.Len *= n
		case Value, Grad: // written by all, read by none
			b.Kind = Work
			fallthrough
		case Work, Aux:
			length[i] = b.Len
			b.Len *= n
		}
	}
	for _, s := range p.Outputs {
		s.Shape = append([]int{n}, s.Shape...)
		q.Outputs = append(q.Outputs, s)
	}
	q.Steps = manySteps(p.Steps, n, length, apart)
	return q
}

func manySteps(steps []Step, n int, length, apart []int) (out []Step) {
	for _, s := range steps {
		if s.Kind == Repeat {
			s.Inner = manySteps(s.Inner, n, length, apart)
			out = append(out, s)
			continue
		}
		s.Sizes = append([]int{n}, s.Sizes...)
		if s.Kind != Loop {
			for _, m := range s.Matrices() {
				for _, v := range []*int{&m.Off, &m.Row, &m.Col, &m.Turn} {
					*v *= apart[m.Buf]
				}
				m.Strides = append([]int{length[m.Buf]}, times(m.Strides, apart[m.Buf])...)
			}
		}
		s.Body = slices.Clone(s.Body)
		for k := range s.Body {
			in := &s.Body[k]
			switch {
			case in.Op == Coord:
				in.Dim++
			case in.touches():
				in.At = *in.At.clone()
				for a := &in.At; a != nil; a = a.Index {
					by := apart[a.Buf]
					a.Off, a.Scale, a.Turn = a.Off*by, a.Scale*by, a.Turn*by
					a.Strides = append([]int{length[a.Buf]}, times(a.Strides, by)...)
				}
			}
		}
		out = append(out, s)
	}
	return out
}

// times are whole numbers times another.
func times(x []int, by int) []int {
	out := make([]int, len(x))
	for i, v := range x {
		out[i] = v * by
	}
	return out
}

// Leave drops what makes only outputs that are not wanted. These stay, of no meaning.
func (p *Plan) Leave(wanted func(output int) bool) {
	read := map[int]bool{}
	for _, s := range Leaves(p.Steps) {
		s.Accesses(func(buf, _ int, writes bool) { read[buf] = read[buf] || !writes })
	}
	drops := func(in Instr) bool {
		if !in.Op.Writes() {
			return false
		}
		b := p.Buffers[in.At.Buf]
		return b.Kind == Aux && !wanted(b.Slot) && !read[in.At.Buf]
	}
	var kept []Step
	for _, s := range p.Steps {
		if s.Kind == Loop && slices.ContainsFunc(s.Body, drops) {
			body := slices.Clone(s.Body) // the number of an instruction is its place: what is left out becomes a number
			for k := range body {
				if drops(body[k]) {
					body[k] = Instr{Op: Num}
				}
			}
			if s.Body = body; !slices.ContainsFunc(body, func(in Instr) bool { return in.Op.Writes() }) {
				continue
			}
		}
		kept = append(kept, s)
	}
	p.Steps = kept
}
