package lower

import (
	"maps"
	"slices"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
)

// The value and gradient of a generalised linear model read a matrix twice: for its product with the coefficients, and
// for that of its transpose with what each row gives. Where it does not fit in a cache, both are done for a block of
// rows before the next one, so that it comes from memory once:
//
//	for each block: eta = x·w; what is made of each eta, and their sums; part = xᵀ·r; gradient += part
//
// Where there are many blocks, they fall into parts that several threads may take: each part has sums of its own, which
// are added up in the order of the parts. How many parts there are depends on the matrix alone, and so do all bits.
const (
	largeMatrix = 1 << 20  // bytes that are too many for the cache of a core
	blockBytes  = 32 << 10 // of the rows of a block
	leastBlock  = 24       // rows: fewer are not worth what is done once for a block
	mostBlocks  = 1 << 12  // the virtual machine has instructions for each
	partBytes   = 1 << 19  // of the rows of a part: they take longer than a thread takes to wake up
)

// inBlocks makes blocks of rows of the steps of a plan where that saves reading a large matrix again.
func inBlocks(p *ir.Plan) {
	for i := 0; i < len(p.Steps); i++ {
		first := &p.Steps[i]
		if !withVector(first) || first.A.Col != 1 || first.A.Row < first.K || 8*first.M*first.K < largeMatrix {
			continue
		}
		for k := i + 1; k < len(p.Steps); k++ {
			last := &p.Steps[k]
			if !withVector(last) || last.A.Buf != first.A.Buf || last.A.Off != first.A.Off || last.K != first.M ||
				last.M != first.K || last.A.Row != 1 || last.A.Col != first.A.Row {
				continue
			}
			r := &rows{p: p, n: first.M, block: blockRows(first.M, first.K), own: map[int]bool{}, late: map[int]bool{}}
			if steps, ok := r.of(i, k+1); ok {
				p.Steps = slices.Replace(p.Steps, i, k+1, steps...)
				i += len(steps) - 1
			}
			break
		}
	}
}

// withVector says whether a step is a product of one matrix with one vector.
func withVector(s *ir.Step) bool {
	return s.Kind == ir.MatMul && s.N == 1 && len(s.Sizes) == 0 && !s.Upper && !s.Lower
}

// blockRows is how many rows of k numbers each are a block: whole vectors of them.
func blockRows(n, k int) int {
	b := max(blockBytes/(8*k), (n+mostBlocks-1)/mostBlocks, leastBlock)
	return (b + 7) / 8 * 8
}

// rows are steps that become a Repeat over blocks of rows.
type rows struct {
	p        *ir.Plan
	n, block int
	own      map[int]bool // buffers of one element for each row
	late     map[int]bool // buffers that are known behind the last block alone
	sums     []total
	inside   []ir.Step
	passing  map[int]bool // of the own ones, those that no other step reads
}

// total is a buffer of n numbers that adds up what blocks make, by way of another one.
type total struct{ of, part, n int }

// of sorts some steps of the plan into those before the blocks, in them and behind them. False means that the last, the
// second product with the matrix, cannot be one of them.
func (r *rows) of(from, to int) ([]ir.Step, bool) {
	steps := r.p.Steps[from:to]
	first, last := steps[0], steps[len(steps)-1]
	if first.Out.Off != 0 || first.Out.Row != 1 || last.B.Off != 0 || last.B.Row != 1 || last.Out.Off != 0 ||
		last.Out.Row != 1 || r.p.Buffers[last.Out.Buf].Len != last.M || r.n < 2*r.block {
		return nil, false
	}
	r.own[first.Out.Buf] = true
	r.inside = append(r.inside, first)
	var out, behind []ir.Step
	for _, s := range steps[1 : len(steps)-1] {
		var reads, writes []int
		s.Accesses(func(buf, _ int, written bool) {
			if written {
				writes = append(writes, buf)
			} else {
				reads = append(reads, buf)
			}
		})
		has := func(set map[int]bool, all []int) bool {
			return slices.ContainsFunc(all, func(buf int) bool { return set[buf] })
		}
		switch {
		case s.Kind == ir.Repeat || has(r.own, writes):
			return nil, false
		case !has(r.late, reads) && !has(r.late, writes) && r.takes(&s):
		case has(r.own, reads) || has(r.late, reads) || has(r.late, writes):
			behind = append(behind, s)
			for _, buf := range writes {
				r.late[buf] = true
			}
		default:
			out = append(out, s)
		}
	}
	if !r.own[last.B.Buf] || r.late[last.Out.Buf] {
		return nil, false
	}
	last.Out.Buf = r.sum(last.Out.Buf, last.M)
	r.inside = append(r.inside, last)
	r.passing = maps.Clone(r.own)
	for _, s := range ir.Leaves(slices.Concat(r.p.Steps[:from], out, behind, r.p.Steps[to:])) {
		s.Accesses(func(buf, _ int, _ bool) { delete(r.passing, buf) })
	}
	for buf := range r.passing {
		r.p.Buffers[buf].Len = 1 // nothing uses it any more
	}
	return append(append(out, r.repeat()...), behind...), true
}

// takes puts a loop over the rows into the blocks, and says whether it is one that can be there.
func (r *rows) takes(s *ir.Step) bool {
	if s.Kind != ir.Loop || !slices.Equal(s.Sizes, []int{r.n}) {
		return false
	}
	for _, in := range s.Body {
		a := in.At
		whole := a.Off == 0 && a.Index == nil && r.p.Buffers[a.Buf].Kind == ir.Work
		switch {
		case in.Op == ir.Coord || in.Op > ir.Sum || in.Op == ir.Load && a.Index != nil,
			in.Op == ir.Load && r.own[a.Buf] && (a.Off != 0 || a.Strides[0] != 1),
			in.Op == ir.Store && !(whole && a.Strides[0] == 1 && r.p.Buffers[a.Buf].Len == r.n),
			in.Op == ir.Sum && !(whole && a.Strides[0] == 0 && r.p.Buffers[a.Buf].Len == 1):
			return false
		}
	}
	c := *s
	c.Body = slices.Clone(s.Body)
	for i := range c.Body {
		switch in := &c.Body[i]; in.Op {
		case ir.Store:
			r.own[in.At.Buf] = true
		case ir.Sum:
			in.At.Buf = r.sum(in.At.Buf, 1)
		}
	}
	r.inside = append(r.inside, c)
	return true
}

// sum is the buffer of what a block adds to one.
func (r *rows) sum(buf, n int) int {
	r.late[buf] = true
	r.sums = append(r.sums, total{buf, r.work(1), n}) // a name: blocks have buffers of their own
	return r.sums[len(r.sums)-1].part
}

// work is a new buffer of scratch.
func (r *rows) work(n int) int {
	r.p.Buffers = append(r.p.Buffers, ir.Buffer{Kind: ir.Work, Len: n})
	return len(r.p.Buffers) - 1
}

// repeat are the steps for all rows.
func (r *rows) repeat() []ir.Step {
	times := r.n / r.block
	parts := min(8*r.n*r.inside[0].K/partBytes, mostParts, times)
	var out []ir.Step
	if parts < leastParts {
		for _, t := range r.sums {
			out = append(out, overwrite(t.of, t.n))
		}
		out = append(out, ir.Step{Kind: ir.Repeat, Blocks: true, Times: times, Inner: r.rows(0, r.block, r.sums)})
	} else {
		out = r.apart(times, parts)
	}
	if rest := r.n % r.block; rest > 0 {
		out = append(out, r.rows(times*r.block, rest, r.sums)...)
	}
	return out
}

// apart are the steps for all blocks, which fall into parts. Each leaves its sums to a row of a matrix.
func (r *rows) apart(times, parts int) []ir.Step {
	s := ir.Step{Kind: ir.Repeat, Blocks: true, Times: times, Parts: parts}
	own, behind := slices.Clone(r.sums), []ir.Step{}
	for i := range own {
		t := &own[i]
		all, of := r.work(parts*t.n), t.of
		t.of = r.work(t.n)
		s.Before = append(s.Before, overwrite(t.of, t.n))
		s.After = append(s.After, ir.Step{Kind: ir.Loop, Sizes: []int{t.n}, Body: []ir.Instr{
			{Op: ir.Load, At: ir.Address{Buf: t.of, Strides: []int{1}}},
			{Op: ir.Store, At: ir.Address{Buf: all, Strides: []int{1}, Turn: t.n}}}})
		behind = append(behind, ir.Step{Kind: ir.Loop, Sizes: []int{parts, t.n}, Body: []ir.Instr{
			{Op: ir.Load, At: ir.Address{Buf: all, Strides: []int{t.n, 1}}},
			{Op: ir.Sum, At: ir.Address{Buf: of, Strides: []int{0, 1}}}}})
	}
	s.Inner = r.rows(0, r.block, own)
	return append([]ir.Step{s}, behind...)
}

// overwrite fills a buffer with zeros.
func overwrite(buf, n int) ir.Step {
	return ir.Step{Kind: ir.Loop, Sizes: []int{n},
		Body: []ir.Instr{{Op: ir.Num}, {Op: ir.Store, At: ir.Address{Buf: buf, Strides: []int{1}}}}}
}

// rows are the steps for n rows, of a block in each turn, or from a row on, which add to some sums. What passes from
// one step to another lies in a buffer of n numbers.
func (r *rows) rows(from, n int, sums []total) []ir.Step {
	var out []ir.Step
	passing := map[int]int{}
	move := func(buf, off, turn *int, step int) {
		if r.passing[*buf] {
			if _, ok := passing[*buf]; !ok {
				passing[*buf] = r.work(n)
			}
			*buf = passing[*buf]
			return
		}
		if *off += from * step; n == r.block {
			*turn = n * step
		}
	}
	matrix := func(m *ir.Matrix, step int) { move(&m.Buf, &m.Off, &m.Turn, step) }
	for _, s := range r.inside {
		switch {
		case s.Kind == ir.Loop:
			s.Sizes, s.Body = []int{n}, slices.Clone(s.Body)
			for i := range s.Body {
				if in := &s.Body[i]; in.Op == ir.Load || in.Op.Writes() {
					move(&in.At.Buf, &in.At.Off, &in.At.Turn, in.At.Strides[0])
				}
			}
		case s.M == r.n:
			s.M = n
			matrix(&s.A, s.A.Row)
			matrix(&s.Out, s.Out.Row)
		default:
			s.K = n
			matrix(&s.A, s.A.Col)
			matrix(&s.B, s.B.Row)
		}
		out = append(out, s)
	}
	part := map[int]int{}
	for _, t := range sums {
		part[t.part] = r.work(t.n)
		at := func(buf int) ir.Address { return ir.Address{Buf: buf, Strides: []int{1}} }
		out = append(out, ir.Step{Kind: ir.Loop, Sizes: []int{t.n}, Body: []ir.Instr{{Op: ir.Load, At: at(t.of)},
			{Op: ir.Load, At: at(part[t.part])}, {Op: ir.Add, A: 0, B: 1}, {Op: ir.Store, A: 2, At: at(t.of)}}})
	}
	for k := range out {
		rename(&out[k], part)
	}
	return out
}

// rename has a step use other buffers in the place of some.
func rename(s *ir.Step, buffers map[int]int) {
	for i := range s.Body {
		if to, ok := buffers[s.Body[i].At.Buf]; ok {
			s.Body[i].At.Buf = to
		}
	}
	for _, m := range []*ir.Matrix{&s.Out, &s.A, &s.B} {
		if to, ok := buffers[m.Buf]; ok && s.Kind != ir.Loop {
			m.Buf = to
		}
	}
}
