package lower

import (
	"slices"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
)

// loop is a repetition while it is rolled up. Its turns are numbered from 0; those before, with negative numbers, stay
// as they are and give the first turns what they read.
type loop struct {
	g        *graph
	list     []*value
	start    int // of turn 0 in the list
	p, turns int
	member   map[*value]position
	reads    [][]read  // of each value of a turn
	reversed bool      // what is made is in the order of the last turn to the first
	made     []outcome // by value of a turn
}

// position is the place of a value in the loop: which one of a turn, and of which turn.
type position struct{ k, turn int }

// read is what a reference of a value is in all turns.
type read struct {
	r      ref // that of turn 0
	inside bool
	k      int // inside: which value of a turn,
	back   int // of so many turns before
	step   int // outside: how the offset changes from turn to turn,
	ixStep int // and that of the index
}

// outcome is where the values of all turns are: that of turn j at slot (j+early), or in the reverse order.
type outcome struct {
	v     *value
	early int    // slots of turns before the first
	last  bool   // the value is that of the last turn alone
	again *value // a copy of v, with slots of turns before, for those who read back
}

// rollSpan makes a repetition a loop; where it is none it says why.
func (g *graph) rollSpan(list []*value, s span, roots []*value) string {
	l := &loop{g: g, list: list, start: s.start, p: s.p, turns: s.turns}
	l.rotate()
	if why := l.classify(); why != "" {
		return why
	}
	l.direct()
	l.made = make([]outcome, l.p)
	outside := l.usesOutside(roots)
	for _, group := range l.components() {
		l.make(group, outside)
	}
	moved := func(r ref) ref {
		at, ok := l.member[r.v]
		if !ok || at.turn < 0 || at.turn >= l.turns {
			return r
		}
		m := l.made[at.k]
		if !m.last {
			r.off += l.slot(at.turn, m.early) * r.v.n
		}
		r.v = m.v
		return r
	}
	for _, v := range alive(roots) {
		if at, ok := l.member[v]; !ok || at.turn < 0 || at.turn >= l.turns {
			v.substitute(moved)
		}
	}
	return ""
}

// at is value k of a turn.
func (l *loop) at(k, turn int) *value { return l.list[l.start+turn*l.p+k] }

// rotate begins the turns where the fewest values are handed on from turn to turn.
func (l *loop) rotate() {
	where := map[*value]int{}
	end := l.start + l.p*l.turns
	for i := l.start; i < end; i++ {
		where[l.list[i]] = i - l.start
	}
	best, least := 0, -1
	middle := l.turns / 2 * l.p
	for shift := range l.p {
		cost := 0
		for i := middle; i < middle+l.p; i++ {
			for _, r := range l.list[l.start+i].references() {
				if from, ok := where[r.v]; ok {
					cost += floor(i-shift, l.p) - floor(from-shift, l.p)
				}
			}
		}
		if least < 0 || cost < least {
			best, least = shift, cost
		}
	}
	if best > 0 {
		l.start += best
		l.turns--
	}
}

func floor(a, b int) int {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// direct chooses the order in which what is made lies in memory: that of what is read.
func (l *loop) direct() {
	up, down := 0, 0
	for _, rs := range l.reads {
		for _, r := range rs {
			if !r.inside && r.step > 0 {
				up++
			}
			if !r.inside && r.step < 0 {
				down++
			}
		}
	}
	l.reversed = down > up
}

// slot is where the value of a turn is among those that all turns make.
func (l *loop) slot(turn, early int) int {
	if l.reversed {
		return l.turns - 1 - turn
	}
	return turn + early
}

// usesOutside are the turns whose values are read outside of the loop, by value of a turn: nil for none.
func (l *loop) usesOutside(roots []*value) [][]bool {
	out := make([][]bool, l.p)
	for _, v := range alive(roots) {
		if at, ok := l.member[v]; ok && at.turn >= 0 && at.turn < l.turns {
			continue
		}
		for _, r := range v.references() {
			if at, ok := l.member[r.v]; ok && at.turn >= 0 && at.turn < l.turns {
				if out[at.k] == nil {
					out[at.k] = make([]bool, l.turns)
				}
				out[at.k][at.turn] = true
			}
		}
	}
	return out
}

// components are the values of a turn in groups that need one another, each behind those that it needs (Tarjan 1972,
// SIAM Journal on Computing 1, 146–160).
func (l *loop) components() [][]int {
	number, low := make([]int, l.p), make([]int, l.p)
	on := make([]bool, l.p)
	var stack []int
	var out [][]int
	count := 0
	var visit func(k int)
	visit = func(k int) {
		count++
		number[k], low[k] = count, count
		stack, on[k] = append(stack, k), true
		for _, r := range l.reads[k] {
			if !r.inside {
				continue
			}
			if number[r.k] == 0 {
				visit(r.k)
				low[k] = min(low[k], low[r.k])
			} else if on[r.k] {
				low[k] = min(low[k], number[r.k])
			}
		}
		if low[k] != number[k] {
			return
		}
		var group []int
		for {
			top := stack[len(stack)-1]
			stack, on[top] = stack[:len(stack)-1], false
			group = append(group, top)
			if top == k {
				break
			}
		}
		slices.Sort(group)
		out = append(out, group)
	}
	for k := range l.p {
		if number[k] == 0 {
			visit(k)
		}
	}
	return out
}

// make makes the values of a group for all turns.
func (l *loop) make(group []int, outside [][]bool) {
	k := group[0]
	again := slices.ContainsFunc(l.reads[k], func(r read) bool { return r.inside && r.k == k })
	switch {
	case len(group) == 1 && !again:
		l.spread(k)
	case !l.sum(group, outside):
		l.repeat(group)
	}
}

// add gives a value that is not compared with others a number.
func (l *loop) add(v *value) *value {
	v.id = len(l.g.values)
	l.g.values = append(l.g.values, v)
	return v
}

// across is a reference as a loop with a dimension of time in front has it.
func (l *loop) across(x read) ref {
	r := x.r
	step := x.step
	base := 0
	if x.inside {
		m := l.source(x)
		base = l.slot(-x.back, m.early) * m.v.n / l.slots(m)
		step = m.v.n / l.slots(m)
		if l.reversed {
			step = -step
		}
		r.v = m.v
	}
	move := func(r ref, off, step int) ref {
		r.off += off
		if l.reversed {
			r.off, step = r.off+step*(l.turns-1), -step
		}
		r.strides = append([]int{step}, r.strides...)
		return r
	}
	if r.ix != nil {
		ix := move(*r.ix, 0, x.ixStep)
		r.ix = &ix
	}
	return move(r, base, step)
}

// slots is how many slots what was made has.
func (l *loop) slots(m outcome) int { return l.turns + m.early }

// source is what a reference into the loop reads.
func (l *loop) source(x read) outcome {
	m := &l.made[x.k]
	if x.back <= m.early {
		return *m
	}
	if m.again == nil {
		early := l.deepest(x.k)
		n := m.v.n / l.turns
		sizes := []int{l.turns + early, n}
		c := &value{kind: assemble, stage: m.v.stage, n: sizes[0] * n, sizes: sizes}
		first := 0
		if !l.reversed {
			first = early
		}
		c.cells = append(c.cells, cell{[]int{first, 0}, []int{l.turns, n}, ref{v: m.v, strides: []int{n, 1}}})
		for turn := -early; turn < 0; turn++ {
			c.cells = append(c.cells, cell{[]int{l.slot(turn, early), 0}, []int{1, n},
				ref{v: l.at(x.k, turn), strides: []int{0, 1}}})
		}
		m.again = l.add(c)
	}
	return outcome{v: m.again, early: l.deepest(x.k)}
}

// deepest is how many turns back a value is read at most.
func (l *loop) deepest(k int) int {
	most := 0
	for _, rs := range l.reads {
		for _, r := range rs {
			if r.inside && r.k == k {
				most = max(most, r.back)
			}
		}
	}
	return most
}

// spread makes one value of those of all turns, which do not need one another.
func (l *loop) spread(k int) {
	v := *l.at(k, 0)
	v.sizes = append([]int{l.turns}, v.sizes...)
	v.n *= l.turns
	v.args, v.cells = slices.Clone(v.args), slices.Clone(v.cells)
	for i := range v.args {
		v.args[i] = l.across(l.reads[k][i])
	}
	for i := range v.cells {
		c := v.cells[i]
		v.cells[i] = cell{append([]int{0}, c.lo...), append([]int{l.turns}, c.sizes...),
			l.across(l.reads[k][len(v.args)+i])}
	}
	switch v.kind {
	case pointwise:
		v.sizes, v.args = collapse(v.sizes, v.args)
	case reduce:
		v.keep = append([]bool{true}, v.keep...)
	}
	l.made[k] = outcome{v: l.add(&v)}
}

// sum makes a sum of what each turn adds to a value, in one addition or several, that nothing else reads before the
// last turn, and says whether it is one.
func (l *loop) sum(group []int, outside [][]bool) bool {
	own := map[int]int{} // the reference that goes on with the sum
	last := -1           // the value that a turn hands on to the next
	for _, k := range group {
		v := l.at(k, 0)
		if v.kind != pointwise || v.op != ir.Add && v.op != ir.Sub {
			return false
		}
		for i, r := range l.reads[k] {
			if !r.inside || !slices.Contains(group, r.k) {
				continue
			}
			if _, two := own[k]; two || r.r.off != 0 || !r.r.runs(v.sizes) || l.at(r.k, 0).n != v.n ||
				r.back > 0 && last >= 0 || r.back > 1 || i == 1 && v.op == ir.Sub {
				return false
			}
			if own[k] = i; r.back == 1 {
				last = r.k
			}
		}
	}
	for k, rs := range l.reads {
		for _, r := range rs {
			if r.inside && slices.Contains(group, r.k) && !slices.Contains(group, k) {
				return false
			}
		}
	}
	for _, k := range group {
		read := outside[k]
		if k == last {
			read = read[:max(len(read)-1, 0)]
		}
		if slices.Contains(read, true) {
			return false
		}
	}
	v := l.at(last, 0)
	total := l.at(last, -1)
	for _, k := range group {
		part := l.at(k, 0)
		keep := append([]bool{false}, slices.Repeat([]bool{true}, len(part.sizes))...)
		terms := l.add(&value{kind: reduce, stage: v.stage, op: ir.Sum, n: v.n,
			sizes: append([]int{l.turns}, part.sizes...), keep: keep, args: []ref{l.across(l.reads[k][1-own[k]])}})
		total = l.add(&value{kind: pointwise, stage: v.stage, op: part.op, n: v.n, sizes: part.sizes,
			args: []ref{whole(total, part.sizes), whole(terms, part.sizes)}})
	}
	l.made[last] = outcome{v: total, last: true}
	return true
}
