package lower

import (
	"slices"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
)

// again is a loop over time: it has the values of one turn, and keeps some of them of all turns.
type again struct {
	loop    *value
	times   int
	turn    []*value // the values of a turn
	kept    []*value // what all turns make of each
	at      []ref    // where a turn puts it there
	carried []bool   // whether a later turn reads it there
	starts  []start
}

// start is what a series has before the first turn.
type start struct {
	series *value
	off, n int
	from   ref
}

// repeat makes a loop over time of values that need one another.
func (l *loop) repeat(group []int) {
	a := &again{times: l.turns}
	stage := l.at(group[0], 0).stage
	a.loop = &value{kind: turns, stage: stage, again: a}
	template := map[int]*value{}
	for _, k := range group {
		v := *l.at(k, 0)
		early := l.deepest(k)
		s := l.add(&value{kind: series, stage: stage, n: v.n * (l.turns + early), args: []ref{{v: a.loop}}, again: a})
		l.made[k] = outcome{v: s, early: early}
		template[k] = l.add(&v)
		a.turn, a.kept, a.carried = append(a.turn, template[k]), append(a.kept, s), append(a.carried, early > 0)
		a.at = append(a.at, l.byTurn(ref{v: s}, l.slot(0, early)*v.n, v.n))
		for turn := -early; turn < 0; turn++ {
			a.starts = append(a.starts, start{s, l.slot(turn, early) * v.n, v.n, ref{v: l.at(k, turn)}})
		}
	}
	reads := map[*value]bool{}
	for _, k := range group {
		v := template[k]
		i := 0
		v.substitute(func(ref) ref {
			x := l.reads[k][i]
			i++
			if x.inside && x.back == 0 && slices.Contains(group, x.k) {
				r := x.r
				r.v = template[x.k]
				return r
			}
			r := l.turning(x)
			if !x.inside || !slices.Contains(group, x.k) {
				reads[r.v] = true
				if r.ix != nil {
					reads[r.ix.v] = true
				}
			}
			return r
		})
	}
	for _, s := range a.starts {
		reads[s.from.v] = true
	}
	for v := range reads {
		a.loop.args = append(a.loop.args, ref{v: v})
	}
	slices.SortFunc(a.loop.args, func(x, y ref) int { return x.v.id - y.v.id })
	l.add(a.loop)
}

// byTurn is a reference that moves by step elements from slot to slot.
func (l *loop) byTurn(r ref, off, step int) ref {
	r.off += off
	r.turn = step
	if l.reversed {
		r.turn = -step
	}
	return r
}

// turning is a reference as a turn has it.
func (l *loop) turning(x read) ref {
	r := x.r
	if x.inside {
		m := l.source(x)
		n := m.v.n / l.slots(m)
		r.v = m.v
		return l.byTurn(r, l.slot(-x.back, m.early)*n, n)
	}
	r.turn = x.step
	if r.ix != nil {
		ix := *r.ix
		ix.turn = x.ixStep
		r.ix = &ix
	}
	return r
}

// turns writes a loop over time: what its series have before the first turn, and a Repeat.
func (e *emitter) turns(v *value) []ir.Step {
	a := v.again
	for i, t := range a.turn {
		if a.carried[i] || e.live[a.kept[i]] {
			e.places[t] = a.at[i]
		}
	}
	var out []ir.Step
	ones := ir.Step{Kind: ir.Loop, Sizes: []int{}}
	for _, s := range a.starts {
		step := ir.Step{Kind: ir.Loop, Sizes: []int{s.n}}
		dst := &step
		strides := []int{1}
		if s.n == 1 {
			dst, strides = &ones, []int{}
		}
		k := len(dst.Body)
		from := s.from
		from.strides = strides
		dst.Body = append(dst.Body, ir.Instr{Op: ir.Load, At: e.address(from)},
			ir.Instr{Op: ir.Store, A: k, At: e.address(ref{v: s.series, off: s.off, strides: strides})})
		if s.n > 1 {
			out = append(out, step)
		}
	}
	if len(ones.Body) > 0 {
		out = append(out, ones)
	}
	inner := e.steps(schedule(a.turn, v.stage))
	return append(out, ir.Step{Kind: ir.Repeat, Times: a.times, Inner: inner})
}
