package lower

import (
	"slices"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
)

// array is what a tensor holds: boxes of its index space, each with a reference of its own. Most have one box. A
// concatenation or a padding has several, and no memory of its own unless it is needed as a whole.
type array struct {
	sizes []int
	cells []cell
}

// cell is a box: the points from lo on, of the given sizes. The reference starts at lo.
type cell struct {
	lo, sizes []int
	ref       ref
}

func single(sizes []int, r ref) array {
	return array{sizes, []cell{{make([]int, len(sizes)), sizes, r}}}
}

// scalar is a number as an array of no dimensions.
func (g *graph) scalar(x float64) array { return single(nil, g.number(x, 0)) }

// fill is one number everywhere.
func (g *graph) fill(sizes []int, x float64) array { return single(sizes, g.number(x, len(sizes))) }

func (a array) n() int { return ir.Iterations(a.sizes) }

// broadcast expands an array as libtorch does: missing dimensions come in front.
func (a array) broadcast(sizes []int) array {
	if slices.Equal(a.sizes, sizes) {
		return a
	}
	lead := len(sizes) - len(a.sizes)
	if lead < 0 {
		refuse("sizes %v do not broadcast to %v", a.sizes, sizes)
	}
	out := array{sizes: sizes}
	for _, c := range a.cells {
		e := cell{make([]int, len(sizes)), slices.Clone(sizes), c.ref}
		e.ref = c.ref.lead(lead)
		for d, n := range a.sizes {
			switch {
			case n == sizes[lead+d]:
				e.lo[lead+d], e.sizes[lead+d] = c.lo[d], c.sizes[d]
			case n == 1:
				e.ref = e.ref.still(lead + d)
			default:
				refuse("sizes %v do not broadcast to %v", a.sizes, sizes)
			}
		}
		out.cells = append(out.cells, e)
	}
	return out
}

// lead puts dimensions in front, along which the reference stays.
func (r ref) lead(n int) ref {
	return r.with(func(s []int) []int { return append(make([]int, n), s...) })
}

// still makes a reference stay along a dimension.
func (r ref) still(d int) ref {
	return r.times(d, 0)
}

// times makes the strides along a dimension so many times as large.
func (r ref) times(d, by int) ref {
	return r.with(func(s []int) []int {
		s = slices.Clone(s)
		s[d] *= by
		return s
	})
}

// broadcastSizes are the sizes that arrays have in common.
func broadcastSizes(arrays ...array) []int {
	var out []int
	for _, a := range arrays {
		if len(a.sizes) > len(out) {
			out = append(slices.Repeat([]int{1}, len(a.sizes)-len(out)), out...)
		}
		for d, n := range a.sizes {
			if k := len(out) - len(a.sizes) + d; out[k] == 1 {
				out[k] = n
			}
		}
	}
	return out
}

// dim counts a dimension from the end where it is negative.
func (a array) dim(d int) int {
	if d < 0 {
		d += len(a.sizes)
	}
	return d
}

// narrow is the part of an array from lo on, of n indices, along a dimension.
func (a array) narrow(d, lo, n int) array {
	out := array{sizes: slices.Clone(a.sizes)}
	out.sizes[d] = n
	for _, c := range a.cells {
		if from, to := max(c.lo[d], lo), min(c.lo[d]+c.sizes[d], lo+n); from < to {
			e := c.part(d, from, to)
			e.lo[d] -= lo
			out.cells = append(out.cells, e)
		}
	}
	return out
}

// drop removes a dimension of size 1.
func (a array) drop(d int) array {
	dims := make([]int, 0, len(a.sizes))
	for k := range a.sizes {
		if k != d {
			dims = append(dims, k)
		}
	}
	return a.permute(dims)
}

// permute gives the dimensions a new order; those that are left out have size 1.
func (a array) permute(dims []int) array {
	out := array{sizes: picked(a.sizes, dims)}
	for _, c := range a.cells {
		out.cells = append(out.cells, cell{picked(c.lo, dims), picked(c.sizes, dims), c.ref.pick(dims)})
	}
	return out
}

// at selects one index of a dimension, and removes the dimension.
func (a array) at(d, i int) array { return a.narrow(d, i, 1).drop(d) }

// insert puts a dimension of size 1 before dimension d.
func (a array) insert(d int) array {
	inserted := func(list []int, n int) []int { return slices.Insert(slices.Clone(list), d, n) }
	out := array{sizes: inserted(a.sizes, 1)}
	for _, c := range a.cells {
		r := c.ref.with(func(s []int) []int { return inserted(s, 0) })
		out.cells = append(out.cells, cell{inserted(c.lo, 0), inserted(c.sizes, 1), r})
	}
	return out
}

// transposed exchanges the last two dimensions.
func (a array) transposed() array {
	dims := make([]int, len(a.sizes))
	for k := range dims {
		dims[k] = k
	}
	n := len(dims)
	dims[n-1], dims[n-2] = dims[n-2], dims[n-1]
	return a.permute(dims)
}

// put places an array inside a larger one of zeros.
func (g *graph) put(sizes, lo []int, a array) array {
	out := g.fill(sizes, 0)
	return g.overlay(out, lo, a)
}

// overlay replaces a box of an array.
func (g *graph) overlay(base array, lo []int, a array) array {
	if a.n() == 0 {
		return base
	}
	out := array{sizes: base.sizes}
	for _, c := range base.cells {
		out.cells = append(out.cells, without(c, lo, a.sizes)...)
	}
	for _, c := range a.cells {
		e := cell{slices.Clone(c.lo), c.sizes, c.ref}
		for d := range lo {
			e.lo[d] += lo[d]
		}
		out.cells = append(out.cells, e)
	}
	out.cells = join(out.cells)
	return out
}

// without is what a box of a cell leaves of it.
func without(c cell, lo, sizes []int) []cell {
	for d := range lo {
		if lo[d] >= c.lo[d]+c.sizes[d] || lo[d]+sizes[d] <= c.lo[d] {
			return []cell{c}
		}
	}
	var out []cell
	for d := range lo {
		from, to := c.lo[d], c.lo[d]+c.sizes[d]
		if lo[d] > from {
			out = append(out, c.part(d, from, lo[d]))
			c = c.part(d, lo[d], to)
		}
		if end := lo[d] + sizes[d]; end < to {
			out = append(out, c.part(d, end, to))
			c = c.part(d, c.lo[d], end)
		}
	}
	return out
}

// part is a cell from one index to another of a dimension.
func (c cell) part(d, from, to int) cell {
	move := make([]int, len(c.lo))
	move[d] = from - c.lo[d]
	e := cell{slices.Clone(c.lo), slices.Clone(c.sizes), c.ref.at(move)}
	e.lo[d], e.sizes[d] = from, to-from
	return e
}

// join makes neighbouring cells one where the reference of the one walks on into the other.
func join(cells []cell) []cell {
	if len(cells) < 2 {
		return cells
	}
	for d := range cells[0].lo {
		slices.SortStableFunc(cells, func(a, b cell) int {
			for k := range a.lo {
				if k != d && a.lo[k] != b.lo[k] {
					return a.lo[k] - b.lo[k]
				}
			}
			return a.lo[d] - b.lo[d]
		})
		out := cells[:1]
		for _, c := range cells[1:] {
			if p := &out[len(out)-1]; joins(*p, c, d) {
				if p.sizes[d] == 1 {
					p.ref.strides = slices.Clone(p.ref.strides)
					p.ref.strides[d] = c.ref.off - p.ref.off
				}
				p.sizes = slices.Clone(p.sizes)
				p.sizes[d] += c.sizes[d]
				continue
			}
			out = append(out, c)
		}
		cells = out
	}
	return cells
}

func joins(a, b cell, d int) bool {
	for k := range a.lo {
		if k == d && a.lo[k]+a.sizes[k] != b.lo[k] || k != d && (a.lo[k] != b.lo[k] || a.sizes[k] != b.sizes[k]) {
			return false
		}
	}
	if a.ref.v != b.ref.v || a.ref.ix != nil || b.ref.ix != nil {
		return false
	}
	for k := range a.lo {
		if k != d && a.sizes[k] > 1 && a.ref.strides[k] != b.ref.strides[k] {
			return false
		}
	}
	step := b.ref.off - a.ref.off
	if b.sizes[d] > 1 && (a.sizes[d] > 1 && a.ref.strides[d] != b.ref.strides[d] ||
		a.sizes[d] == 1 && b.ref.strides[d] != step) {
		return false
	}
	return a.sizes[d] == 1 && step >= 0 || a.sizes[d] > 1 && step == a.ref.strides[d]*a.sizes[d]
}
