package lower

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
)

// kind is how a value comes about.
type kind uint8

const (
	constant  kind = iota
	point          // the parameters
	weight         // of the log Jacobian
	input          // a tensor of the batch
	pointwise      // op at each element
	reduce         // op over some dimensions
	assemble       // put together from cells
	scatter        // assembled, then added to at the places of an index
	index          // whole numbers, checked
	matrices       // a step that is no loop
	turns          // a loop over time, which makes series
	series         // what each turn of a loop over time has made of one value
)

// stage is when a value can be computed: stages are ordered.
type stage uint8

const (
	known  stage = iota // when the plan is made
	perRun              // from the batch
	perPoint
)

// value is an array of numbers, contiguous, that is computed once.
type value struct {
	id    int
	kind  kind
	stage stage
	n     int   // elements
	sizes []int // the iteration space; that of the elements, but for a reduction and a step on matrices
	op    ir.Op
	args  []ref
	keep  []bool  // of a reduction: the dimensions that its result has
	cells []cell  // of an assembled or scattered one
	place ref     // of a scatter: where each point of its space adds
	step  ir.Step // of a step on matrices; its args are Out's, A's and B's places
	data  []float64
	slot  int     // of an input
	elem  ir.Elem // of an input
	limit int     // of an index: what its numbers are below
	again *again  // of turns and their series
	site  string  // of the model, that it was made at
}

// ref says which element of a value each point of an iteration space reads: off + Σ strides[d]·i_d, plus scale times
// the number that ix refers to, plus turn times the turn of the loop over time that reads it.
type ref struct {
	v       *value
	off     int
	strides []int
	ix      *ref
	scale   int
	turn    int
}

// varies says whether a reference changes along a dimension.
func (r ref) varies(d int) bool { return r.strides[d] != 0 || r.ix != nil && r.ix.strides[d] != 0 }

// fixed says whether a reference is one element for all points.
func (r ref) fixed() bool {
	for d := range r.strides {
		if r.varies(d) {
			return false
		}
	}
	return true
}

// number is the constant that a reference is everywhere.
func (r ref) number() (float64, bool) {
	if r.v.kind == constant && r.ix == nil && r.turn == 0 && r.fixed() {
		return r.v.data[r.off], true
	}
	return 0, false
}

// with is the reference with other strides, its own and those of its index; f must not change what it is given.
func (r ref) with(f func(strides []int) []int) ref {
	r.strides = f(r.strides)
	if r.ix != nil {
		ix := r.ix.with(f)
		r.ix = &ix
	}
	return r
}

// picked are some elements of a list, by number.
func picked(list, which []int) []int {
	out := make([]int, len(which))
	for k, d := range which {
		out[k] = list[d]
	}
	return out
}

// pick is the reference with other dimensions: dims[k] is the dimension that becomes k.
func (r ref) pick(dims []int) ref { return r.with(func(s []int) []int { return picked(s, dims) }) }

// element is what a reference reads at a point, without what its index adds.
func (r ref) element(at []int) int {
	o := r.off
	for d, i := range at {
		o += r.strides[d] * i
	}
	return o
}

// at moves a reference to the point lo.
func (r ref) at(lo []int) ref {
	r.off = r.element(lo)
	if r.ix != nil {
		ix := r.ix.at(lo)
		r.ix = &ix
	}
	return r
}

// follows says whether dimension d walks on where dimension d+1, of the given size, ends.
func (r ref) follows(d, size int) bool {
	return r.strides[d] == r.strides[d+1]*size && (r.ix == nil || r.ix.follows(d, size))
}

// merge makes dimensions d and d+1 one.
func (r ref) merge(d int) ref {
	return r.with(func(s []int) []int { return slices.Delete(slices.Clone(s), d, d+1) })
}

// contiguous are the strides of a contiguous array.
func contiguous(sizes []int) []int {
	s := make([]int, len(sizes))
	step := 1
	for d := len(sizes) - 1; d >= 0; d-- {
		s[d] = step
		step *= max(sizes[d], 1)
	}
	return s
}

// graph holds the values of one evaluation. Equal values are one.
type graph struct {
	values []*value
	byKey  map[string]*value
	notes  []string // loops over time that stay as they are, with the reasons
	site   string   // of the model, where it is known
}

func newGraph() *graph { return &graph{byKey: map[string]*value{}} }

// add makes a value, or gives the equal one that there is.
func (g *graph) add(v value) *value {
	if v.kind != constant {
		for _, from := range madeOf(&v) {
			v.stage = max(v.stage, from.stage)
		}
		if v.stage == known {
			v.stage = perRun // what was not folded is computed with the batch
		}
	}
	key := v.key()
	if old, ok := g.byKey[key]; ok {
		return old
	}
	v.id, v.site = len(g.values), g.site
	out := &v
	g.values = append(g.values, out)
	g.byKey[key] = out
	return out
}

// key identifies a value by all that it is made of.
func (v *value) key() string {
	var b []byte
	num := func(xs ...int) {
		for _, x := range xs {
			b = binary.AppendVarint(b, int64(x))
		}
	}
	list := func(xs []int) { num(len(xs)); num(xs...) }
	flags := func(all ...bool) {
		for _, f := range all {
			num(map[bool]int{true: 1}[f])
		}
	}
	var reference func(r ref)
	reference = func(r ref) {
		num(r.v.id, r.off, r.scale)
		list(r.strides)
		if r.ix != nil {
			reference(*r.ix)
		}
		num(-1)
	}
	num(int(v.kind), int(v.op), v.n, v.slot, v.limit, len(v.args), len(v.cells))
	list(v.sizes)
	for _, r := range v.args {
		reference(r)
	}
	flags(v.keep...)
	for _, c := range v.cells {
		list(c.lo)
		list(c.sizes)
		reference(c.ref)
	}
	if v.kind == scatter {
		list(v.place.strides)
		num(v.place.off, v.place.scale)
		list(v.step.Sizes)
	}
	if v.kind == matrices {
		s := v.step
		num(int(s.Kind), s.M, s.N, s.K)
		flags(s.Upper, s.Unit, s.Right, s.Lower, s.Product)
	}
	for _, x := range v.data {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
	}
	return string(b)
}

// number is a constant over a space of some rank.
func (g *graph) number(x float64, rank int) ref {
	return ref{v: g.add(value{kind: constant, n: 1, data: []float64{x}}), strides: make([]int, rank)}
}

// constant is an array of constants.
func (g *graph) constant(data []float64) *value {
	return g.add(value{kind: constant, n: len(data), data: data})
}

// whole refers to a value in its own layout.
func whole(v *value, sizes []int) ref { return ref{v: v, strides: contiguous(sizes)} }

// numbers are the elements that a reference to a constant reads, in the order of the space; nil for no constant.
func (r ref) numbers(sizes []int) []float64 {
	if r.v.kind != constant || r.ix != nil && r.ix.v.data == nil {
		return nil
	}
	out := make([]float64, 0, ir.Iterations(sizes))
	walk(sizes, func(at []int) {
		o := r.element(at)
		if r.ix != nil {
			o += r.scale * int(r.ix.v.data[r.ix.element(at)])
		}
		out = append(out, r.v.data[o])
	})
	return out
}
