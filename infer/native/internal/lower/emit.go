package lower

import (
	"fmt"
	"slices"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
)

// emitter writes groups as steps.
type emitter struct {
	plan   *ir.Plan
	bufs   map[*value]int
	target map[*value]output
	used   map[*value]bool // read by the main part
	live   map[*value]bool
	places map[*value]ref // where the values of a turn are, of those that their series has
}

// emit schedules all that the outputs need, and writes the plan.
func emit(plan *ir.Plan, g *graph, outs []output) {
	e := &emitter{plan: plan, bufs: map[*value]int{}, target: map[*value]output{}, used: map[*value]bool{},
		live: map[*value]bool{}, places: map[*value]ref{}}
	var roots []*value
	for _, o := range outs {
		v := &value{id: -1, kind: assemble, stage: perPoint, n: o.a.n(), sizes: o.a.sizes, cells: o.a.cells}
		e.target[v] = o
		roots = append(roots, v)
	}
	g.roll(roots)
	live := alive(roots)
	plan.Notes = append(g.notes, most(live)...)
	for _, v := range live {
		e.live[v] = true
		if v.stage == perPoint {
			for _, r := range madeOf(v) {
				e.used[r] = true
			}
		}
	}
	for part, dst := range []*[]ir.Step{&plan.Prologue, &plan.Steps} {
		*dst = e.steps(schedule(live, []stage{perRun, perPoint}[part]))
	}
}

// manyValues are so many that a C compiler takes long.
const manyValues = 2000

// most notes which site of a model most values are from, where they are many.
func most(live []*value) []string {
	if len(live) < manyValues {
		return nil
	}
	counts, best := map[string]int{}, ""
	for _, v := range live {
		if counts[v.site]++; v.site != "" && counts[v.site] > counts[best] {
			best = v.site
		}
	}
	if best == "" {
		return nil
	}
	return []string{fmt.Sprintf("of %d operations most, %d, are %s", len(live), counts[best], best)}
}

// steps writes groups.
func (e *emitter) steps(groups []group) (out []ir.Step) {
	memory := inMemory(groups, e.used)
	for _, gr := range groups {
		switch it := gr.items[0]; it.what {
		case over:
			out = append(out, e.turns(it.v)...)
		case operator:
			out = append(out, e.operator(it))
		default:
			out = append(out, e.step(gr, memory))
		}
	}
	return out
}

// madeOf are the values that a value is made from.
func madeOf(v *value) []*value {
	var out []*value
	for _, r := range v.references() {
		out = append(out, r.v)
		if r.ix != nil {
			out = append(out, r.ix.v)
		}
	}
	return out
}

// alive are the values that some need, each behind those that it is made from.
func alive(roots []*value) []*value {
	var out []*value
	seen := map[*value]bool{}
	var visit func(v *value)
	visit = func(v *value) {
		if seen[v] {
			return
		}
		seen[v] = true
		for _, r := range madeOf(v) {
			visit(r)
		}
		out = append(out, v)
	}
	for _, v := range roots {
		visit(v)
	}
	return out
}

// inMemory are the pointwise values that another loop reads, or this one in another order.
func inMemory(groups []group, used map[*value]bool) map[*value]bool {
	memory := map[*value]bool{}
	for _, g := range groups {
		made := map[*value]bool{}
		for _, it := range g.items {
			if it.what == compute {
				made[it.v] = true
				if it.v.stage == perRun && used[it.v] {
					memory[it.v] = true
				}
			}
			for _, r := range it.args {
				if !made[r.v] {
					memory[r.v] = true
				}
				if r.ix != nil {
					memory[r.ix.v] = true
				}
			}
		}
	}
	return memory
}

// buffer is the number of a value's buffer.
func (e *emitter) buffer(v *value) int {
	if k, ok := e.bufs[v]; ok {
		return k
	}
	b := ir.Buffer{Len: v.n}
	switch v.kind {
	case constant:
		b.Kind, b.Data = ir.Const, v.data
	case point:
		b.Kind = ir.X
	case weight:
		b.Kind = ir.Weight
	case input:
		b.Kind, b.Slot, b.Elem = ir.Input, v.slot, v.elem
	default:
		b.Kind = ir.Work
		if v.stage == perRun && e.used[v] {
			b.Kind = ir.Prepared
		}
		if v.kind == index {
			b.Kind, b.Elem = ir.Prepared, ir.I32
			if v.data != nil {
				b.Kind, b.Data = ir.Const, v.data
			}
		}
		if o, ok := e.target[v]; ok {
			b.Kind, b.Slot = o.kind, o.slot
		}
	}
	e.bufs[v] = len(e.plan.Buffers)
	e.plan.Buffers = append(e.plan.Buffers, b)
	return e.bufs[v]
}

// place is where a reference finds what it reads: a value of a turn may be in its series.
func (e *emitter) place(r ref) ref {
	if at, ok := e.places[r.v]; ok {
		r.v, r.off, r.turn = at.v, r.off+at.off, r.turn+at.turn
	}
	return r
}

// address is a reference in the space of a loop.
func (e *emitter) address(r ref) ir.Address {
	r = e.place(r)
	a := ir.Address{Buf: e.buffer(r.v), Off: r.off, Strides: slices.Clone(r.strides), Turn: r.turn}
	if r.ix != nil {
		ix := e.address(*r.ix)
		a.Index, a.Scale = &ix, r.scale
	}
	return a
}

// step is a fused loop.
func (e *emitter) step(g group, memory map[*value]bool) ir.Step {
	b := &body{e: e, env: map[*value]int{}, loads: map[string]int{}, numbers: map[string]int{}}
	own := contiguous(g.space)
	for _, it := range g.items {
		args := make([]int, 3)
		for i, r := range it.args {
			args[i] = b.operand(r.refine(it.space, g.space))
		}
		in := ir.Instr{A: args[0], B: args[1], C: args[2]}
		switch it.what {
		case compute:
			k := args[0]
			if it.v.op != copyOf {
				in.Op = it.v.op
				k = b.add(in)
			}
			b.env[it.v] = k
			if _, kept := e.places[it.v]; kept || memory[it.v] {
				b.add(ir.Instr{Op: ir.Store, A: k, At: e.address(ref{v: it.v, strides: own})})
			}
			continue
		case store:
			in.Op = ir.Store
		case combine:
			in.Op = it.v.op
		case addTo:
			in.Op = ir.ScatterAdd
		case checked:
			in.Op, in.Limit = ir.StoreIndex, it.v.limit
		}
		in.At = e.address(it.dst.refine(it.space, g.space))
		b.add(in)
	}
	s := ir.Step{Kind: ir.Loop, Sizes: slices.Clone(g.space), Body: b.instrs}
	merge(&s)
	return s
}

// body is the body of a loop as it grows.
type body struct {
	e              *emitter
	instrs         []ir.Instr
	env            map[*value]int // where the values of this loop are
	loads, numbers map[string]int
}

func (b *body) add(in ir.Instr) int {
	b.instrs = append(b.instrs, in)
	return len(b.instrs) - 1
}

// operand is the instruction that has the value of a reference.
func (b *body) operand(r ref) int {
	if k, ok := b.env[r.v]; ok && r.ix == nil {
		return k
	}
	if x, ok := r.number(); ok {
		key := fmt.Sprintf("%x", x)
		if x != x {
			key = "nan"
		}
		if k, ok := b.numbers[key]; ok {
			return k
		}
		b.numbers[key] = b.add(ir.Instr{Op: ir.Num, Num: x})
		return b.numbers[key]
	}
	key := fmt.Sprint(r.v.id, r.off, r.strides, r.turn)
	if r.ix != nil {
		key += fmt.Sprint(r.scale, r.ix.v.id, r.ix.off, r.ix.strides, r.ix.turn)
	}
	if k, ok := b.loads[key]; ok {
		return k
	}
	b.loads[key] = b.add(ir.Instr{Op: ir.Load, At: b.e.address(r)})
	return b.loads[key]
}

// merge makes neighbouring dimensions of a loop one where every address allows it.
func merge(s *ir.Step) {
	var all []*ir.Address
	for i := range s.Body {
		if in := &s.Body[i]; in.Op == ir.Load || in.Op.Writes() {
			all = append(all, &in.At)
			if in.At.Index != nil {
				all = append(all, in.At.Index)
			}
		}
	}
	s.Sizes = ir.Join(s.Sizes, all)
}

// operator is a step on matrices.
func (e *emitter) operator(it *item) ir.Step {
	s := it.v.step
	s.Sizes = slices.Clone(it.space)
	outer := len(it.space)
	matrix := func(r ref, scan bool) ir.Matrix {
		r = e.place(r)
		m := ir.Matrix{Buf: e.buffer(r.v), Off: r.off, Strides: slices.Clone(r.strides[:outer]), Turn: r.turn}
		if scan {
			m.Col = r.strides[outer]
		} else {
			m.Row, m.Col = r.strides[outer], r.strides[outer+1]
		}
		return m
	}
	out := slices.Clone(it.space)
	switch s.Kind {
	case ir.Scan:
	case ir.Cholesky:
		out = append(out, s.N)
	default:
		out = append(out, s.M)
	}
	out = append(out, s.N)
	s.Out = matrix(whole(it.v, out), s.Kind == ir.Scan)
	s.A = matrix(it.args[0], s.Kind == ir.Scan)
	if len(it.args) > 1 {
		s.B = matrix(it.args[1], false)
	}
	return s
}
