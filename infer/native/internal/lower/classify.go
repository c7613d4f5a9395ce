package lower

import "fmt"

// classify finds out what references are in all turns, and leaves out turns at both ends that differ. It says why there
// is no loop.
func (l *loop) classify() string {
	l.member = map[*value]position{}
	for turn := range l.turns {
		for k := range l.p {
			l.member[l.at(k, turn)] = position{k, turn}
		}
	}
	first, last := 0, l.turns-1
	middle := l.turns / 2
	for k := range l.p {
		n := len(l.at(k, 0).references())
		for i := range n {
			step, ixStep := l.steps(k, i, middle)
			same := func(turn int) bool { return l.consistent(k, i, turn, step, ixStep) }
			if !same(middle) {
				return fmt.Sprintf("what operation %d reads does not move on evenly at turn %d", k, middle)
			}
			for t := middle; t > first; t-- {
				if !same(t - 1) {
					first = t
				}
			}
			for t := middle; t < last; t++ {
				if !same(t) {
					last = t
				}
			}
		}
	}
	for v, at := range l.member {
		at.turn -= first
		l.member[v] = at
	}
	l.start += first * l.p
	l.turns = last - first + 1
	if l.turns < fewestTurns {
		return fmt.Sprintf("only %d turns behind one another read evenly", l.turns)
	}
	l.reads = make([][]read, l.p)
	for k := range l.p {
		for i := range l.at(k, 0).references() {
			r, ok := l.read(k, i)
			if !ok {
				return fmt.Sprintf("operation %d reads constants of several forms", k)
			}
			l.reads[k] = append(l.reads[k], r)
		}
	}
	return ""
}

// steps is how the offset of reference i of value k, and that of its index, change from one turn to the next.
func (l *loop) steps(k, i, turn int) (step, ixStep int) {
	a, b := l.at(k, turn).references()[i], l.at(k, turn+1).references()[i]
	if a.ix != nil && b.ix != nil {
		ixStep = b.ix.off - a.ix.off
	}
	return b.off - a.off, ixStep
}

// consistent says whether a reference goes on in the same way from a turn to the next.
func (l *loop) consistent(k, i, turn, step, ixStep int) bool {
	a, b := l.at(k, turn).references()[i], l.at(k, turn+1).references()[i]
	from, in := l.member[a.v]
	to, in2 := l.member[b.v]
	if in || in2 {
		return in && in2 && from.k == to.k && to.turn-from.turn == 1 && a.off == b.off && a.ix == nil && b.ix == nil
	}
	if a.v.kind == constant && b.v.kind == constant && a.ix == nil && a.v != b.v {
		return a.v.n == b.v.n && a.off == b.off && step == 0
	}
	if a.ix != nil && (a.ix.v != b.ix.v || b.ix.off-a.ix.off != ixStep) {
		return false
	}
	return a.v == b.v && b.off-a.off == step
}

// read is what reference i of value k is in all turns, which are consistent.
func (l *loop) read(k, i int) (read, bool) {
	r := *l.at(k, 0).references()[i]
	if at, ok := l.member[r.v]; ok {
		return read{r: r, inside: true, k: at.k, back: -at.turn}, at.turn <= 0
	}
	step, ixStep := l.steps(k, i, 0)
	out := read{r: r, step: step, ixStep: ixStep}
	table := r.v.kind == constant && r.ix == nil
	var data []float64
	for turn := range l.turns {
		x := l.at(k, turn).references()[i]
		table = table && x.off == r.off && x.v.n == r.v.n
		if table {
			data = append(data, x.v.data...)
		}
	}
	different := false
	for turn := range l.turns {
		different = different || l.at(k, turn).references()[i].v != r.v
	}
	switch {
	case !different:
		return out, true
	case !table:
		return out, false
	}
	out.step = r.v.n
	out.r.v = l.g.constant(data)
	return out, true
}
