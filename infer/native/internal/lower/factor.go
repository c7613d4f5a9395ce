package lower

import (
	"slices"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
)

// depth is how far the factors of a product are looked for.
const depth = 8

// product is a number times some factors times what is left.
type product struct {
	negative bool
	factors  []ref
	core     ref
	some     bool // there is a core
}

// factored takes out of a product what does not change along some dimensions: a sum is then over what is left alone.
// Sums that differ in such factors only, such as those of a regression's gradient, become one.
func (g *graph) factored(r ref, sizes, along []int, deep int) product {
	if !slices.ContainsFunc(along, r.varies) {
		return product{factors: []ref{r}}
	}
	whole := product{core: r, some: true}
	v := r.v
	if deep == 0 || v.kind != pointwise || v.stage != perPoint {
		return whole
	}
	switch v.op {
	case ir.Neg:
		if in, ok := operands(r, sizes); ok {
			p := g.factored(in[0], sizes, along, deep-1)
			p.negative = !p.negative
			return p
		}
	case ir.Mul, ir.Div:
		in, ok := operands(r, sizes)
		if !ok {
			return whole
		}
		a := g.factored(in[0], sizes, along, deep-1)
		if v.op == ir.Div {
			if !a.some {
				return whole
			}
			a.core = g.pointwise(ir.Div, sizes, a.core, in[1])
			return a
		}
		b := g.factored(in[1], sizes, along, deep-1)
		out := product{negative: a.negative != b.negative, factors: append(a.factors, b.factors...), some: true}
		switch {
		case a.some && b.some:
			x, y := a.core, b.core
			if y.v.id < x.v.id { // so that equal products are one
				x, y = y, x
			}
			out.core = g.pointwise(ir.Mul, sizes, x, y)
		case a.some:
			out.core = a.core
		default:
			out.core = b.core
		}
		return out
	}
	return whole
}

// operands are the operands of a pointwise value in the space of a reference to it.
func operands(r ref, sizes []int) ([]ref, bool) {
	if r.ix != nil {
		return nil, false
	}
	var out []ref
	for _, in := range r.v.args {
		a, ok := single(r.v.sizes, in).view(r.off, sizes, r.strides)
		if !ok || len(a.cells) != 1 {
			return nil, false
		}
		out = append(out, a.cells[0].ref)
	}
	return out, true
}

// sum is a sum along some dimensions. It takes out the factors that do not change along them.
func (g *graph) sum(sizes []int, r ref, inner, outer, outSizes []int) ref {
	p := g.factored(r, sizes, inner, depth)
	if !p.some || len(p.factors) == 0 && !p.negative {
		return g.reduction(ir.Sum, sizes, r, inner, outer)
	}
	varying := slices.DeleteFunc(slices.Clone(outer), func(d int) bool { return !p.core.varies(d) })
	out := g.reduction(ir.Sum, sizes, p.core, inner, varying)
	// The factors first: other sums have the same.
	by := g.number(1, len(sizes))
	for _, f := range p.factors {
		for _, d := range inner {
			f = f.still(d)
		}
		by = g.pointwise(ir.Mul, outSizes, by, f)
	}
	if p.negative {
		by = g.pointwise(ir.Neg, outSizes, by)
	}
	return g.pointwise(ir.Mul, outSizes, out, by)
}
