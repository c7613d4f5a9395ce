package ir

import "slices"

// Leaves are the steps that are no Repeat, those inside of one included.
func Leaves(steps []Step) []*Step {
	var out []*Step
	for i := range steps {
		if s := &steps[i]; s.Kind == Repeat {
			out = append(out, Leaves(s.Inner)...)
		} else {
			out = append(out, s)
		}
	}
	return out
}

// Unrolled are the same steps with each turn of a Repeat written out.
func Unrolled(steps []Step) []Step {
	if !slices.ContainsFunc(steps, func(s Step) bool { return s.Kind == Repeat }) {
		return steps
	}
	var out []Step
	for _, s := range steps {
		if s.Kind != Repeat {
			out = append(out, s)
			continue
		}
		for turn := range s.Times {
			for _, inner := range s.Inner {
				out = append(out, inner.atTurn(turn))
			}
		}
	}
	return out
}

// atTurn is a step of a Repeat as it is in one turn.
func (s Step) atTurn(turn int) Step {
	s.Body = slices.Clone(s.Body)
	for i := range s.Body {
		s.Body[i].At = s.Body[i].At.atTurn(turn)
	}
	for _, m := range []*Matrix{&s.Out, &s.A, &s.B} {
		m.Off, m.Turn = m.Off+m.Turn*turn, 0
	}
	return s
}

func (a Address) atTurn(turn int) Address {
	a.Off, a.Turn = a.Off+a.Turn*turn, 0
	if a.Index != nil {
		index := a.Index.atTurn(turn)
		a.Index = &index
	}
	return a
}
