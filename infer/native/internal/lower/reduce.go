package lower

import (
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
)

// unrolled is the longest reduction, and the longest inner sum, that is written out term by term where there are many.
const unrolled = 32

// reduce combines an array over some dimensions; nil means all of them. op is Sum, Prod or MaxOf.
func (g *graph) reduce(op ir.Op, a array, dims []int, keep bool) array {
	if dims == nil {
		for d := range a.sizes {
			dims = append(dims, d)
		}
	}
	over := make([]bool, len(a.sizes))
	for _, d := range dims {
		over[a.dim(d)] = true
	}
	var out array
	switch {
	case a.n() == 0:
		if op == ir.MaxOf {
			refuse("the maximum of nothing")
		}
		out = g.fill(replaced(a.sizes, over, 1), map[ir.Op]float64{ir.Sum: 0, ir.Prod: 1}[op])
	case len(a.cells) == 1:
		out = g.reduceCell(op, a.cells[0], over)
	default:
		out = g.reduceCells(op, a, over)
	}
	if keep {
		return out
	}
	for d := len(over) - 1; d >= 0; d-- {
		if over[d] {
			out = out.drop(d)
		}
	}
	return out
}

// reduceCells reduces cell by cell where the cells that overlap along the other dimensions do so wholly.
func (g *graph) reduceCells(op ir.Op, a array, over []bool) array {
	type group struct {
		lo, sizes []int
		total     array
		some      bool
	}
	var groups []group
	for _, c := range a.cells {
		lo, sizes := replaced(c.lo, over, 0), replaced(c.sizes, over, 1)
		k := slices.IndexFunc(groups, func(h group) bool {
			return slices.Equal(h.lo, lo) && slices.Equal(h.sizes, sizes)
		})
		if k < 0 {
			for _, h := range groups {
				if overlap(h.lo, h.sizes, lo, sizes) {
					return g.reduceCell(op, g.together(a).cells[0], over)
				}
			}
			groups = append(groups, group{lo: lo, sizes: sizes, total: g.fill(sizes, 0)})
			k = len(groups) - 1
		}
		if x, ok := c.ref.number(); ok && x == 0 && op == ir.Sum {
			continue
		}
		part := g.reduceCell(op, cell{make([]int, len(c.lo)), c.sizes, c.ref}, over)
		if groups[k].some {
			part = g.apply(combiner(op), groups[k].total, part)
		}
		groups[k].total, groups[k].some = part, true
	}
	out := array{sizes: replaced(a.sizes, over, 1)}
	for _, h := range groups {
		out = g.overlay(out, h.lo, h.total)
	}
	return out
}

// replaced is a list with another number where dimensions are reduced.
func replaced(list []int, over []bool, x int) []int {
	out := slices.Clone(list)
	for d := range over {
		if over[d] {
			out[d] = x
		}
	}
	return out
}

func overlap(alo, asizes, blo, bsizes []int) bool {
	for d := range alo {
		if alo[d] >= blo[d]+bsizes[d] || blo[d] >= alo[d]+asizes[d] {
			return false
		}
	}
	return true
}

// combiner is the operation on two numbers of a reduction.
func combiner(op ir.Op) ir.Op {
	switch op {
	case ir.Sum:
		return ir.Add
	case ir.Prod:
		return ir.Mul
	}
	return ir.Max
}

// reduceCell reduces a whole cell. The dimensions that are reduced have size 1 in the result.
func (g *graph) reduceCell(op ir.Op, c cell, over []bool) array {
	r := c.ref
	times := 1 // how often each term counts: along dimensions where the cell is the same
	outSizes := replaced(c.sizes, over, 1)
	var inner, outer []int
	for d, n := range c.sizes {
		switch {
		case n == 1:
		case over[d] && !r.varies(d):
			times *= n
		case over[d]:
			inner = append(inner, d)
		case r.varies(d):
			outer = append(outer, d)
		}
	}
	if times > 1 && op != ir.MaxOf {
		by := ir.Mul
		if op == ir.Prod {
			by = ir.Pow
		}
		if len(inner) == 0 || op == ir.Prod {
			r = g.pointwise(by, c.sizes, r, g.number(float64(times), len(c.sizes)))
			times = 1
		}
	}
	count, kept := 1, 1
	for _, d := range inner {
		count *= c.sizes[d]
	}
	for _, d := range outer {
		kept *= c.sizes[d]
	}
	var out ref
	switch {
	case count == 1:
		out = r
		for d := range over {
			if over[d] {
				out = out.still(d)
			}
		}
	case kept > 1 && count <= unrolled || count <= 2 || count*kept <= 4:
		out = g.chain(combiner(op), c, r, inner, outSizes)
	case op == ir.Sum:
		out = g.sum(c.sizes, r, inner, outer, outSizes)
	default:
		out = g.reduction(op, c.sizes, r, inner, outer)
	}
	if times > 1 && op == ir.Sum {
		out = g.pointwise(ir.Mul, outSizes, out, g.number(float64(times), len(outSizes)))
	}
	return single(outSizes, out)
}

// chain writes a reduction out term by term.
func (g *graph) chain(op ir.Op, c cell, r ref, inner, outSizes []int) ref {
	var out ref
	first := true
	walk(picked(c.sizes, inner), func(at []int) {
		move := make([]int, len(c.sizes))
		for k, d := range inner {
			move[d] = at[k]
		}
		term := r.at(move)
		for _, d := range inner {
			term = term.still(d)
		}
		for d, n := range outSizes {
			if n == 1 {
				term = term.still(d)
			}
		}
		if first {
			out, first = term, false
			return
		}
		out = g.pointwise(op, outSizes, out, term)
	})
	return out
}

// reduction makes the value of a reduction in a loop.
func (g *graph) reduction(op ir.Op, sizes []int, r ref, inner, outer []int) ref {
	dims := append(slices.Clone(outer), inner...)
	if r.v.kind == pointwise || r.v.kind == constant || r.v.kind == point {
		// The order in which the operand lies, so that the loop can compute it.
		slices.SortStableFunc(dims, func(a, b int) int { return abs(r.strides[b]) - abs(r.strides[a]) })
	}
	space, keep := picked(sizes, dims), make([]bool, len(dims))
	var kept []int
	for k, d := range dims {
		keep[k] = slices.Contains(outer, d)
		if keep[k] {
			kept = append(kept, d)
		}
	}
	own := r.pick(dims)
	for d := len(space) - 2; d >= 0; d-- {
		if keep[d] == keep[d+1] && own.follows(d, space[d+1]) {
			own = own.merge(d)
			space[d] *= space[d+1]
			space, keep = slices.Delete(space, d+1, d+2), slices.Delete(keep, d+1, d+2)
		}
	}
	keptSizes := picked(sizes, kept)
	out := ref{strides: make([]int, len(sizes))}
	for k, s := range contiguous(keptSizes) {
		out.strides[kept[k]] = s
	}
	n := ir.Iterations(keptSizes)
	if data := own.numbers(space); data != nil && len(data) <= foldable {
		out.v = g.constant(fold(op, space, keep, data))
		return out
	}
	if own.v.stage == perPoint {
		own = g.unitStride(own, space)
	}
	out.v = g.add(value{kind: reduce, op: op, n: n, sizes: space, keep: keep, args: []ref{own}})
	return out
}

// fold reduces constants.
func fold(op ir.Op, space []int, keep []bool, data []float64) []float64 {
	strides := keptStrides(space, keep)
	n := 1
	for d, k := range keep {
		if k {
			n *= space[d]
		}
	}
	out := make([]float64, n)
	start := map[ir.Op]float64{ir.Sum: 0, ir.Prod: 1, ir.MaxOf: math.Inf(-1)}[op]
	for i := range out {
		out[i] = start
	}
	k := 0
	walk(space, func(at []int) {
		o := ref{strides: strides}.element(at)
		out[o] = ir.Apply(combiner(op), out[o], data[k], 0)
		k++
	})
	return out
}

// keptStrides are the strides of a reduction's result in the space of its operand.
func keptStrides(space []int, keep []bool) []int {
	strides := make([]int, len(space))
	step := 1
	for d := len(space) - 1; d >= 0; d-- {
		if keep[d] {
			strides[d] = step
			step *= space[d]
		}
	}
	return strides
}
