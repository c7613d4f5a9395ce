package ir

import "slices"

// Many is a plan of n evaluations at once, for n points in rows: X, Work and Aux buffers have a row for each, and
// steps of the main part and outputs a first dimension more. It has no value and no gradient.
func (p *Plan) Many(n int) *Plan {
	q := &Plan{Dim: n * p.Dim, Inputs: p.Inputs, Prologue: p.Prologue, Buffers: slices.Clone(p.Buffers)}
	length := make([]int, len(p.Buffers)) // from one evaluation to the next; 0 for what they share
	for i := range q.Buffers {
		switch b := &q.Buffers[i]; b.Kind {
		case Value, Grad: // written by all, read by none
			b.Kind = Work
			fallthrough
		case X, Work, Aux:
			length[i] = b.Len
			b.Len *= n
		}
	}
	for _, s := range p.Outputs {
		s.Shape = append([]int{n}, s.Shape...)
		q.Outputs = append(q.Outputs, s)
	}
	q.Steps = manySteps(p.Steps, n, length)
	return q
}

func manySteps(steps []Step, n int, length []int) (out []Step) {
	for _, s := range steps {
		if s.Kind == Repeat {
			s.Inner = manySteps(s.Inner, n, length)
			out = append(out, s)
			continue
		}
		s.Sizes = append([]int{n}, s.Sizes...)
		if s.Kind != Loop {
			for _, m := range s.Matrices() {
				m.Strides = append([]int{length[m.Buf]}, m.Strides...)
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
					a.Strides = append([]int{length[a.Buf]}, a.Strides...)
				}
			}
		}
		out = append(out, s)
	}
	return out
}
