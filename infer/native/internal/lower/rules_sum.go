package lower

import (
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
)

// sumRules are reductions, scans and what is made of them.
var sumRules = map[string]rule{
	"sum": func(l *lowering, c *Call) { l.reduced(c, ir.Sum, l.in(c, 0), dimsOf(c, 1), keepOf(c, 2)) },
	"mean": func(l *lowering, c *Call) {
		a, dims := l.in(c, 0), dimsOf(c, 1)
		l.out(c, 0, l.div(l.g.reduce(ir.Sum, a, dims, keepOf(c, 2)), l.num(float64(a.count(dims)))))
	},
	"prod": func(l *lowering, c *Call) { l.reduced(c, ir.Prod, l.in(c, 0), dimsOf(c, 1), keepOf(c, 2)) },
	"amax": func(l *lowering, c *Call) { l.reduced(c, ir.MaxOf, l.in(c, 0), allWhereEmpty(c.ints(1)), c.flag(2)) },
	"amin": func(l *lowering, c *Call) {
		l.out(c, 0, l.neg(l.g.reduce(ir.MaxOf, l.neg(l.in(c, 0)), allWhereEmpty(c.ints(1)), c.flag(2))))
	},
	"max": func(l *lowering, c *Call) { l.extreme(c, 1) },
	"min": func(l *lowering, c *Call) { l.extreme(c, -1) },
	"argmax": func(l *lowering, c *Call) {
		if !c.has(1) {
			refuse("the place in all dimensions at once is not understood")
		}
		a := l.in(c, 0)
		d := a.dim(c.int(1, 0))
		sizes, places := make([]int, len(a.sizes)), make([]float64, a.sizes[d])
		for i := range sizes {
			sizes[i] = 1
		}
		sizes[d] = len(places)
		for i := range places {
			places[i] = -float64(i)
		}
		// The first of the largest, of which NaN is one.
		largest := l.of(ir.Or, l.of(ir.Eq, a, l.g.reduce(ir.MaxOf, a, []int{d}, true)), l.of(ir.IsNaN, a))
		first := l.choose(largest, single(sizes, whole(l.g.constant(places), sizes)), l.num(math.Inf(-1)))
		l.out(c, 0, l.neg(l.g.reduce(ir.MaxOf, first, []int{d}, c.flag(2))))
	},
	"any": func(l *lowering, c *Call) {
		hits := l.g.reduce(ir.MaxOf, l.of(ir.Ne, l.in(c, 0), l.num(0)), dimsOf(c, 1), keepOf(c, 2))
		l.out(c, 0, hits)
	},
	"all": func(l *lowering, c *Call) {
		misses := l.g.reduce(ir.MaxOf, l.of(ir.Eq, l.in(c, 0), l.num(0)), dimsOf(c, 1), keepOf(c, 2))
		l.out(c, 0, l.of(ir.Not, misses))
	},
	"logsumexp": func(l *lowering, c *Call) {
		a, dims := l.in(c, 0), c.ints(1)
		if len(a.sizes) == 0 {
			l.out(c, 0, a)
			return
		}
		top := l.g.reduce(ir.MaxOf, a, dims, true)
		top = l.choose(l.of(ir.IsInf, top), l.num(0), top)
		sum := l.log(l.g.reduce(ir.Sum, l.exp(l.sub(a, top)), dims, true))
		sum = l.add(sum, top)
		if !c.flag(2) {
			sum = sum.dropAll(dims)
		}
		l.out(c, 0, sum)
	},
	"_softmax": func(l *lowering, c *Call) {
		a, d := l.in(c, 0), []int{c.int(1, 0)}
		e := l.exp(l.sub(a, l.g.reduce(ir.MaxOf, a, d, true)))
		l.out(c, 0, l.div(e, l.g.reduce(ir.Sum, e, d, true)))
	},
	"_log_softmax": func(l *lowering, c *Call) {
		a, d := l.in(c, 0), []int{c.int(1, 0)}
		moved := l.sub(a, l.g.reduce(ir.MaxOf, a, d, true))
		l.out(c, 0, l.sub(moved, l.log(l.g.reduce(ir.Sum, l.exp(moved), d, true))))
	},
	"_softmax_backward_data": func(l *lowering, c *Call) {
		grad, y, d := l.in(c, 0), l.in(c, 1), []int{c.int(2, 0)}
		weighted := l.mul(grad, y)
		l.out(c, 0, l.sub(weighted, l.mul(y, l.g.reduce(ir.Sum, weighted, d, true))))
	},
	"_log_softmax_backward_data": func(l *lowering, c *Call) {
		grad, y, d := l.in(c, 0), l.in(c, 1), []int{c.int(2, 0)}
		l.out(c, 0, l.sub(grad, l.mul(l.exp(y), l.g.reduce(ir.Sum, grad, d, true))))
	},
	"cumsum":  func(l *lowering, c *Call) { l.out(c, 0, l.scan(l.in(c, 0), c.int(1, 0), false)) },
	"cumprod": func(l *lowering, c *Call) { l.out(c, 0, l.scan(l.in(c, 0), c.int(1, 0), true)) },
	"linalg_vector_norm": func(l *lowering, c *Call) {
		dims := c.ints(2)
		l.norm(c, c.number(1, 2), allWhereEmpty(dims), c.flag(3))
	},
	"norm": func(l *lowering, c *Call) {
		l.norm(c, c.number(1, 2), allWhereEmpty(c.ints(2)), len(c.Args) > 3 && c.flag(3))
	},
	"var": func(l *lowering, c *Call) { l.variance(c, false) },
	"std": func(l *lowering, c *Call) { l.variance(c, true) },
	"trace": func(l *lowering, c *Call) {
		a := l.in(c, 0)
		sum := l.num(0)
		for i := range min(a.sizes[0], a.sizes[1]) {
			sum = l.of(ir.Add, sum, a.at(0, i).at(0, i))
		}
		l.out(c, 0, sum)
	},
}

// dimsOf are the dimensions of a reduction; nil for all.
func dimsOf(c *Call, i int) []int {
	if c.Overload == "" || i >= len(c.Args) ||
		c.Args[i].Kind != List && c.Overload != "dim" && c.Overload != "dim_int" && c.Overload != "int_out" {
		return nil
	}
	return allWhereEmpty(c.ints(i))
}

func keepOf(c *Call, i int) bool {
	return c.Overload != "" && i < len(c.Args) && c.Args[i].Kind == Bool && c.flag(i)
}

func allWhereEmpty(dims []int) []int {
	if len(dims) == 0 {
		return nil
	}
	return dims
}

// count is how many elements a reduction combines.
func (a array) count(dims []int) int {
	if dims == nil {
		return a.n()
	}
	n := 1
	for _, d := range dims {
		n *= a.sizes[a.dim(d)]
	}
	return n
}

// dropAll removes dimensions of size 1.
func (a array) dropAll(dims []int) array {
	var all []int
	for _, d := range dims {
		all = append(all, a.dim(d))
	}
	slices.Sort(all)
	for k := len(all) - 1; k >= 0; k-- {
		a = a.drop(all[k])
	}
	return a
}

func (l *lowering) reduced(c *Call, op ir.Op, a array, dims []int, keep bool) {
	if len(a.sizes) == 0 {
		l.out(c, 0, a)
		return
	}
	l.out(c, 0, l.g.reduce(op, a, dims, keep))
}

// extreme is max (sign 1) or min (-1): of all elements, of two tensors, or along a dimension. Where the extreme lies is
// not computed.
func (l *lowering) extreme(c *Call, sign float64) {
	a := l.in(c, 0)
	switch c.Overload {
	case "other", "out":
		op := ir.Max
		if sign < 0 {
			op = ir.Min
		}
		l.out(c, 0, l.of(op, a, l.in(c, 1)))
		return
	case "":
		l.out(c, 0, l.scale(l.g.reduce(ir.MaxOf, l.scale(a, sign), nil, false), sign))
		return
	}
	if len(a.sizes) > 0 {
		a = l.scale(l.g.reduce(ir.MaxOf, l.scale(a, sign), []int{c.int(1, 0)}, c.flag(2)), sign)
	}
	l.out(c, 0, a)
	if t := c.result(1); t != nil {
		r := &Refusal{Op: c.Name, Site: l.site, Reason: "the place of an extreme is not understood"}
		l.images[t.Storage] = &image{typ: t.Type, poison: r}
	}
}

// norm is the p-norm.
func (l *lowering) norm(c *Call, p float64, dims []int, keep bool) {
	a := l.in(c, 0)
	switch {
	case p == 2:
		l.out(c, 0, l.of(ir.Sqrt, l.g.reduce(ir.Sum, l.mul(a, a), dims, keep)))
	case p == 1:
		l.out(c, 0, l.g.reduce(ir.Sum, l.of(ir.Abs, a), dims, keep))
	case math.IsInf(p, 1):
		l.out(c, 0, l.g.reduce(ir.MaxOf, l.of(ir.Abs, a), dims, keep))
	default:
		refuse("the norm of order %v is not understood", p)
	}
}

// variance is the sum of squared deviations over the count less a correction.
func (l *lowering) variance(c *Call, root bool) {
	a := l.in(c, 0)
	dims, correction, keep := dimsOf(c, 1), 1.0, false
	switch c.Overload {
	case "correction", "correction_out":
		correction, keep = c.number(2, 1), c.flag(3)
	case "dim":
		correction, keep = c.number(2, 1), c.flag(3)
	case "":
		correction = c.number(1, 1)
	default:
		refuse("the form %q is not understood", c.Overload)
	}
	n := float64(a.count(dims))
	center := l.div(l.g.reduce(ir.Sum, a, dims, true), l.num(n))
	off := l.sub(a, center)
	v := l.div(l.g.reduce(ir.Sum, l.mul(off, off), dims, keep), l.num(max(n-correction, 0)))
	if root {
		v = l.of(ir.Sqrt, v)
	}
	l.out(c, 0, v)
}

// scan is the running sum or product along a dimension.
func (l *lowering) scan(a array, d int, product bool) array {
	if len(a.sizes) == 0 || a.n() == 0 {
		return a
	}
	d = a.dim(d)
	if n := a.sizes[d]; n <= 4 {
		op := ir.Add
		if product {
			op = ir.Mul
		}
		out, sum := array{sizes: a.sizes}, array{}
		lo := make([]int, len(a.sizes))
		for i := range n {
			part := a.narrow(d, i, 1)
			if i > 0 {
				part = l.of(op, sum, part)
			}
			sum = part
			lo[d] = i
			out = l.g.overlay(out, lo, part)
		}
		return out
	}
	in := l.g.ref(a)
	var dims []int
	for k := range a.sizes {
		if k != d {
			dims = append(dims, k)
		}
	}
	dims = append(dims, d)
	space := picked(a.sizes, dims)
	in = l.g.memory(in.pick(dims), space)
	last := len(space) - 1
	v := l.g.add(value{kind: matrices, n: a.n(), sizes: space[:last], args: []ref{in},
		step: ir.Step{Kind: ir.Scan, N: space[last], Product: product}})
	out := ref{v: v, strides: make([]int, len(dims))}
	for k, s := range contiguous(space) {
		out.strides[dims[k]] = s
	}
	return single(a.sizes, out)
}

// memory is a reference that a step on matrices can read: float64 numbers in memory, without an index.
func (g *graph) memory(r ref, space []int) ref {
	if r.ix == nil && (r.v.kind != input || r.v.elem == ir.F64) {
		return r
	}
	out := g.pointwise(copyOf, space, r)
	if out.ix != nil {
		refuse("an index is not resolved")
	}
	return out
}
