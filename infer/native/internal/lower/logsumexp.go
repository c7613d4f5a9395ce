package lower

import "github.com/kelvin-ppl/kelvin/infer/native/internal/ir"

// Gradients of log-sum-exp hold exp(x - lse), where lse = m + l, l = log S and S = Σ exp(x - m): the exponential of
// each term is there already, and
//
//	exp(x - lse) = exp(x - m)/S · (1 + (l - (lse - m)))
//
// The last factor is how far lse was rounded, to first order. It matters where m is large: the gradient is that of the
// rounded value, as it is in eager evaluation.
//
// Of two terms one is exp(0): with m the larger one, unless that is infinite, their exponentials are 1 and the one of
// the smaller term. A mixture of two components then has one exponential for each datum where it had four.

// exponential finds an exponential that needs none of its own.
func (g *graph) exponential(sizes []int, x ref) (ref, bool) {
	d, ok := g.madeBy(x, sizes, ir.Sub)
	if !ok {
		return ref{}, false
	}
	if r, ok := g.ofTwo(sizes, d[0], d[1]); ok {
		return r, true
	}
	does := func(op ir.Op, args ...ref) ref { return g.pointwise(op, sizes, args...) }
	one := g.number(1, len(sizes))
	term, log, rounded := d[0], d[1], one
	if l, ok := g.madeBy(d[1], sizes, ir.Add); ok {
		log = l[0]
		term = does(ir.Sub, d[0], l[1])
		off := does(ir.Sub, log, does(ir.Sub, d[1], l[1]))
		off = does(ir.Select, does(ir.Lt, off, one), off, g.number(0, len(sizes))) // NaN where lse is infinite
		rounded = does(ir.Add, off, one)
	}
	s, ok := g.madeBy(log, sizes, ir.Log)
	if !ok {
		return ref{}, false
	}
	before := len(g.values)
	e := does(ir.Exp, term)
	if e.v.id >= before {
		return ref{}, false // the sum was of something else
	}
	return does(ir.Mul, e, does(ir.Mul, does(ir.Div, one, s[0]), rounded)), true
}

// ofTwo is exp(x - m), where m is the larger of x and another number, and 0 where that is infinite.
func (g *graph) ofTwo(sizes []int, x, m ref) (ref, bool) {
	c, ok := g.madeBy(m, sizes, ir.Select)
	if !ok {
		return ref{}, false
	}
	top := c[2]
	if zero, is := c[1].number(); !is || zero != 0 {
		return ref{}, false
	}
	if q, ok := g.madeBy(c[0], sizes, ir.IsInf); !ok || !same(q[0], top) {
		return ref{}, false
	}
	two, ok := g.madeBy(top, sizes, ir.Max)
	if !ok || !same(two[0], x) && !same(two[1], x) {
		return ref{}, false
	}
	other := two[0]
	if same(other, x) {
		other = two[1]
	}
	does := func(op ir.Op, args ...ref) ref { return g.pointwise(op, sizes, args...) }
	small := does(ir.Exp, does(ir.Sub, does(ir.Min, two[0], two[1]), m))
	// The exponential of the larger term less m: 1, or that of an infinity, or NaN.
	large := does(ir.Select, does(ir.Eq, top, m), g.number(1, len(sizes)), does(ir.Max, top, g.number(0, len(sizes))))
	return does(ir.Select, does(ir.Lt, x, other), small, large), true
}

// madeBy are the operands of a value that changes from evaluation to evaluation and is made by an operation.
func (g *graph) madeBy(r ref, sizes []int, op ir.Op) ([]ref, bool) {
	if r.v.kind != pointwise || r.v.op != op || r.v.stage != perPoint {
		return nil, false
	}
	return operands(r, sizes)
}

// same says whether two references read the same elements.
func same(a, b ref) bool {
	if a.v != b.v || a.off != b.off || a.ix != nil || b.ix != nil {
		return false
	}
	for d := range a.strides {
		if a.strides[d] != b.strides[d] {
			return false
		}
	}
	return true
}
