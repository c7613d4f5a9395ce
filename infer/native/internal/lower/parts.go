package lower

import (
	"slices"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
)

// A step with much work falls into parts that several threads may take: ranges of its first dimension. What a step adds
// up over these is added up by each part, and then in the order of the parts. How many parts there are depends on the
// step alone, and so do all bits.
const (
	partWork   = 1 << 20 // instructions or products of numbers of a part: it takes longer than a thread takes to wake up
	slow       = 16      // instructions that one takes the time of which calls a function
	leastParts = 8       // fewer are not worth it
	mostParts  = 64      // the more, the more evenly threads share them
	mostSums   = 1 << 12 // numbers that each part adds up on its own
	line       = 8       // numbers of a line of the cache, which no two parts write
)

// inParts makes parts of the steps of a plan that are worth it.
func inParts(p *ir.Plan) {
	var out []ir.Step
	for _, s := range p.Steps {
		d := divided{p: p, step: s}
		out = append(out, d.steps()...)
	}
	p.Steps = out
}

// divided is a step while it becomes parts of some rows each.
type divided struct {
	p           *ir.Plan
	step        ir.Step
	n           int // rows of the step
	parts, rows int // of which each part has so many
	behind      []ir.Step
}

// steps are those that take the place of the step.
func (d *divided) steps() []ir.Step {
	s := &d.step
	work := 0
	switch {
	case s.Kind == ir.Loop && len(s.Sizes) > 0 && separable(s):
		d.n = s.Sizes[0]
		work = ir.Iterations(s.Sizes) * cost(s.Body)
	case s.Kind == ir.MatMul && len(s.Sizes) == 0 && !s.Upper && !s.Lower:
		d.n = s.M
		if s.K > 4*s.M {
			d.n = s.K
		}
		work = s.M * s.N * s.K
	}
	d.parts = min(work/partWork, mostParts)
	if d.parts < leastParts || d.n/d.parts < 4*line {
		return []ir.Step{*s}
	}
	d.rows = d.n / d.parts / line * line
	if !d.fits() {
		return []ir.Step{*s}
	}
	var out []ir.Step
	if s.Kind == ir.Loop {
		out = d.loop()
	} else {
		out = d.product()
	}
	return append(out, d.behind...)
}

// separable says whether iterations of a loop need nothing of one another.
func separable(s *ir.Step) bool {
	serial, touched := ir.Conflicts(s.Body, s.Sizes)
	return !serial && len(touched) == 0 && !slices.ContainsFunc(s.Body, func(in ir.Instr) bool {
		switch a := &in.At; {
		case in.Op == ir.Coord:
			return in.Dim == 0
		case in.Op == ir.Store:
			return a.Index != nil || a.Strides[0] == 0 || !a.Injective(s.Sizes)
		}
		return in.Op.Writes() && in.At.Index != nil
	})
}

// cost is the work of an iteration.
func cost(body []ir.Instr) int {
	n := 0
	for _, in := range body {
		n++
		if in.Op >= ir.Exp && in.Op <= ir.I1e || in.Op == ir.Pow || in.Op == ir.Atan2 {
			n += slow
		}
	}
	return n
}

// fits says whether the sums of all parts are few.
func (d *divided) fits() bool {
	s := &d.step
	if s.Kind == ir.MatMul {
		return d.n == s.M || s.M*s.N <= mostSums
	}
	return !slices.ContainsFunc(s.Body, func(in ir.Instr) bool {
		return in.Op.Writes() && in.At.Strides[0] == 0 && kept(s.Sizes, in.At.Strides) > mostSums
	})
}

// kept is how many elements a reduction has.
func kept(sizes, strides []int) int {
	n := 1
	for k, s := range strides {
		if s != 0 {
			n *= sizes[k]
		}
	}
	return n
}

// loop are the steps of a loop.
func (d *divided) loop() []ir.Step {
	s := &d.step
	part, rest := *s, *s
	part.Sizes, rest.Sizes = slices.Clone(s.Sizes), slices.Clone(s.Sizes)
	part.Sizes[0], rest.Sizes[0] = d.rows, d.n-d.parts*d.rows
	part.Body, rest.Body = slices.Clone(s.Body), slices.Clone(s.Body)
	for i, in := range s.Body {
		switch {
		case in.Op != ir.Load && !in.Op.Writes():
		case in.Op.Writes() && in.At.Strides[0] == 0:
			d.reduction(&in, &part.Body[i].At, &rest.Body[i].At)
		default:
			part.Body[i].At, rest.Body[i].At = d.turns(in.At), d.behindAll(in.At)
		}
	}
	return d.joined(part, rest)
}

// turns is an address in the rows of a part, whose number is the turn.
func (d *divided) turns(a ir.Address) ir.Address {
	a.Turn = d.rows * a.Strides[0]
	if a.Index != nil {
		index := d.turns(*a.Index)
		a.Index = &index
	}
	return a
}

// behindAll is an address in the rows behind those of the parts.
func (d *divided) behindAll(a ir.Address) ir.Address {
	a.Off += d.parts * d.rows * a.Strides[0]
	if a.Index != nil {
		index := d.behindAll(*a.Index)
		a.Index = &index
	}
	return a
}

// reduction has each part reduce to a row of its own, and a step behind them reduce the rows.
func (d *divided) reduction(in *ir.Instr, part, rest *ir.Address) {
	s := &d.step
	var sizes, from []int // of what is kept, and where it goes
	own := make([]int, len(s.Sizes))
	n := 1
	for k := len(own) - 1; k >= 0; k-- {
		if in.At.Strides[k] != 0 {
			own[k], n = n, n*s.Sizes[k]
			sizes, from = append([]int{s.Sizes[k]}, sizes...), append([]int{in.At.Strides[k]}, from...)
		}
	}
	row, rows := (n+line-1)/line*line, d.parts
	if d.parts*d.rows < d.n {
		rows++
	}
	all := len(d.p.Buffers)
	d.p.Buffers = append(d.p.Buffers, ir.Buffer{Kind: ir.Work, Len: rows * row})
	*part = ir.Address{Buf: all, Strides: own, Turn: row}
	*rest = ir.Address{Buf: all, Strides: own, Off: d.parts * row}
	d.behind = append(d.behind, ir.Step{Kind: ir.Loop, Sizes: append([]int{rows}, sizes...), Body: []ir.Instr{
		{Op: ir.Load, At: ir.Address{Buf: all, Strides: append([]int{row}, contiguous(sizes)...)}},
		{Op: in.Op, At: ir.Address{Buf: in.At.Buf, Off: in.At.Off, Strides: append([]int{0}, from...)}}}})
}

// product are the steps of a product of matrices.
func (d *divided) product() []ir.Step {
	part, rest := d.step, d.step
	move := func(of func(s *ir.Step) *ir.Matrix, step int) {
		of(&part).Turn = d.rows * step
		of(&rest).Off += d.parts * d.rows * step
	}
	a, b, out := func(s *ir.Step) *ir.Matrix { return &s.A }, func(s *ir.Step) *ir.Matrix { return &s.B },
		func(s *ir.Step) *ir.Matrix { return &s.Out }
	left := d.n - d.parts*d.rows
	if d.n == d.step.M {
		part.M, rest.M = d.rows, left
		move(a, d.step.A.Row)
		move(out, d.step.Out.Row)
		return d.joined(part, rest)
	}
	part.K, rest.K = d.rows, left
	move(a, d.step.A.Col)
	move(b, d.step.B.Row)
	m, n := d.step.M, d.step.N
	sum := ir.Instr{Op: ir.Sum, At: ir.Address{Buf: d.step.Out.Buf, Off: d.step.Out.Off,
		Strides: []int{0, d.step.Out.Row, d.step.Out.Col}}}
	whole := divided{p: d.p, step: ir.Step{Sizes: []int{d.n, m, n}}, n: d.n, parts: d.parts, rows: d.rows}
	var to, last ir.Address
	whole.reduction(&sum, &to, &last)
	d.behind = whole.behind
	part.Out = ir.Matrix{Buf: to.Buf, Row: n, Col: 1, Turn: to.Turn}
	rest.Out = ir.Matrix{Buf: to.Buf, Row: n, Col: 1, Off: last.Off}
	return d.joined(part, rest)
}

// joined are the parts, and what is left.
func (d *divided) joined(part, rest ir.Step) []ir.Step {
	out := []ir.Step{{Kind: ir.Repeat, Blocks: true, Times: d.parts, Parts: d.parts, Inner: []ir.Step{part}}}
	if d.parts*d.rows < d.n {
		out = append(out, rest)
	}
	return out
}
