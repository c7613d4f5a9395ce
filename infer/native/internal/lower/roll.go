package lower

import (
	"cmp"
	"fmt"
	"slices"
)

// A log density that is a loop over time is recorded step by step: the same few values again and again, each made from
// those of the step before. They are found in the order in which they were made, and become
//
//   - one value with a dimension of time, where a step does not need the step before,
//   - a sum over time, where it only adds to it,
//   - a loop over time else, which is a Repeat of the plan.
//
// Nothing needs to say that there is a loop, so a Go loop in a model serves as well. Steps at either end that differ
// from the others stay as they are.

const (
	fewestTurns  = 8  // of a loop that is worth finding
	fewestValues = 96 // that all turns of a loop make
	window       = 4  // values by which a repetition is recognised
	mostPeriods  = 32 // that are tried
	mostAlike    = 8  // parts of a turn that look alike: two observations of one family in a step
	longPeriod   = 4096
)

// span is a part of the list of values that repeats itself: turns of p values, from start on.
type span struct{ start, p, turns int }

func (s span) covers() int { return s.p * s.turns }

// roll finds loops over time among the values that some need, and makes them loops.
func (g *graph) roll(roots []*value) {
	for _, part := range []stage{perRun, perPoint} {
		list := listed(roots, part)
		signs := signatures(list)
		for _, tries := range regions(spans(signs)) {
			var reason string
			rolled := slices.ContainsFunc(multiples(tries), func(s span) bool {
				why := g.rollSpan(list, s, roots)
				reason = why
				return why == ""
			})
			if !rolled {
				s := tries[len(tries)-1]
				at := list[s.start].site
				if at != "" {
					at = " " + at
				}
				g.notes = append(g.notes, fmt.Sprintf("%d turns of %d operations%s stay as they are: %s", s.turns, s.p, at,
					reason))
			}
		}
	}
	walkOn(roots)
}

// listed are the values of a stage that are made of others, in the order of making.
func listed(roots []*value, part stage) []*value {
	list := slices.DeleteFunc(alive(roots), func(v *value) bool {
		return v.stage != part || v.kind <= input || v.id < 0
	})
	slices.SortFunc(list, func(a, b *value) int { return a.id - b.id })
	return list
}

// signatures number what values are, but for what they read.
func signatures(list []*value) []int {
	numbers := map[string]int{}
	out := make([]int, len(list))
	for i, v := range list {
		key := v.signature()
		if !v.rolls() {
			key = fmt.Sprint("alone ", i)
		}
		if _, ok := numbers[key]; !ok {
			numbers[key] = len(numbers)
		}
		out[i] = numbers[key]
	}
	return out
}

// rolls says whether a value may be part of a loop over time.
func (v *value) rolls() bool {
	switch v.kind {
	case pointwise, reduce, assemble, matrices:
		return true
	}
	return false
}

func (v *value) signature() string {
	s := v.step
	key := fmt.Sprint(v.kind, v.op, v.n, v.sizes, v.keep, s.Kind, s.M, s.N, s.K, s.Upper, s.Unit, s.Right, s.Product)
	for _, c := range v.cells {
		key += fmt.Sprint(c.lo, c.sizes)
	}
	for _, r := range v.references() {
		key += fmt.Sprint(r.strides, r.ix != nil, r.scale)
		if r.ix != nil {
			key += fmt.Sprint(r.ix.strides)
		}
	}
	return key
}

// references are all that a value reads, for changing.
func (v *value) references() []*ref {
	var out []*ref
	for i := range v.args {
		out = append(out, &v.args[i])
	}
	for i := range v.cells {
		out = append(out, &v.cells[i].ref)
	}
	return out
}

// spans are the repetitions in a list of signatures.
func spans(signs []int) []span {
	next := map[[window]int]int{}
	counts := map[int]int{}
	for i := len(signs) - window; i >= 0; i-- {
		key := [window]int(signs[i : i+window])
		if k, ok := next[key]; ok && k-i <= longPeriod {
			counts[k-i]++
		}
		next[key] = i
	}
	var periods []int
	for p := range counts {
		periods = append(periods, p)
	}
	slices.SortFunc(periods, func(a, b int) int { return cmp.Or(counts[b]*b-counts[a]*a, a-b) })
	var out []span
	for _, p := range periods[:min(len(periods), mostPeriods)] {
		for i := 0; i+p < len(signs); i++ {
			from := i
			for i+p < len(signs) && signs[i] == signs[i+p] {
				i++
			}
			s := span{from, p, (i - from + p) / p}
			if s.turns >= fewestTurns && s.covers() >= fewestValues {
				out = append(out, s)
			}
		}
	}
	return out
}

// multiples adds turns of several periods: where parts of a step look alike, the period that was found is a part's.
func multiples(tries []span) []span {
	out := slices.Clone(tries)
	for m := 2; m <= mostAlike; m++ {
		for _, s := range tries {
			if s.turns/m >= fewestTurns {
				out = append(out, span{s.start, s.p * m, s.turns / m})
			}
		}
	}
	return out
}

// regions are repetitions apart from one another, in their order, each with several ways to see it: the shortest period
// first.
func regions(all []span) [][]span {
	slices.SortFunc(all, func(a, b span) int { return cmp.Or(b.covers()-a.covers(), a.p-b.p) })
	var out [][]span
	for len(all) > 0 {
		best := all[0]
		end := best.start + best.covers()
		var tries, rest []span
		for _, s := range all {
			switch common := min(end, s.start+s.covers()) - max(best.start, s.start); {
			case common <= 0:
				rest = append(rest, s)
			case 10*common >= 8*best.covers():
				tries = append(tries, s)
			}
		}
		slices.SortFunc(tries, func(a, b span) int { return a.p - b.p })
		out = append(out, tries)
		all = rest
	}
	slices.SortFunc(out, func(a, b []span) int { return a[0].start - b[0].start })
	return out
}

// walkOn makes cells one that walk on into each other, and looks through values that are copies.
func walkOn(roots []*value) {
	copies := map[*value]ref{}
	for _, v := range alive(roots) {
		v.substitute(func(r ref) ref {
			if at, ok := copies[r.v]; ok {
				r.v, r.off = at.v, r.off+at.off
			}
			return r
		})
		if v.kind != assemble || len(v.cells) == 0 {
			continue
		}
		v.cells = join(slices.Clone(v.cells))
		c := v.cells[0].ref
		if len(v.cells) == 1 && v.id >= 0 && c.v.kind > input && c.ix == nil && c.runs(v.sizes) {
			copies[v] = c
		}
	}
}

// runs says whether a reference reads neighbours in memory, in their order.
func (r ref) runs(sizes []int) bool {
	for d, s := range contiguous(sizes) {
		if sizes[d] > 1 && r.strides[d] != s {
			return false
		}
	}
	return true
}

// substitute changes what a value reads.
func (v *value) substitute(f func(ref) ref) {
	args, cells := slices.Clone(v.args), slices.Clone(v.cells)
	for i := range args {
		args[i] = f(args[i])
	}
	for i := range cells {
		cells[i].ref = f(cells[i].ref)
	}
	v.args, v.cells = args, cells
	if v.kind != turns {
		return
	}
	for _, t := range v.again.turn {
		t.substitute(f)
	}
	for i := range v.again.starts {
		v.again.starts[i].from = f(v.again.starts[i].from)
	}
}
