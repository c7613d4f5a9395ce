package lower

import (
	"slices"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
)

const (
	mostCells  = 4096 // an operation is done box by box up to so many boxes,
	mostNew    = 16   // if so many of them or fewer need a value of their own; else the operands are put together first
	mostSingle = 8    // if most of these have one element, fewer may
	fewBoxes   = 16   // from so many cells on, boxes are added to them one by one
)

// apply is a pointwise operation on arrays that broadcast. It is done box by box.
func (g *graph) apply(op ir.Op, arrays ...array) array {
	sizes := broadcastSizes(arrays...)
	ins := make([]array, len(arrays))
	for i, a := range arrays {
		ins[i] = a.broadcast(sizes)
	}
	if slices.Contains(sizes, 0) {
		return array{sizes: sizes}
	}
	if op == ir.Add {
		for i := range ins {
			if out, ok := g.addBoxes(ins[1-i], ins[i]); ok {
				return out
			}
		}
	}
	grid := g.grid(op, sizes, ins)
	if grid == nil {
		for i := range ins {
			ins[i] = g.together(ins[i])
		}
		grid = [][]ref{refsAt(ins, make([]int, len(sizes)), sizes)}
		return array{sizes, []cell{{make([]int, len(sizes)), sizes, g.pointwise(op, sizes, grid[0]...)}}}
	}
	cuts := bounds(sizes, ins)
	out := array{sizes: sizes}
	k := 0
	boxes(cuts, func(lo, size []int) {
		out.cells = append(out.cells, cell{lo, size, g.pointwise(op, size, grid[k]...)})
		k++
	})
	out.cells = join(out.cells)
	return out
}

// grid are the operands in each box between the bounds of all cells; nil where there are too many boxes.
func (g *graph) grid(op ir.Op, sizes []int, ins []array) [][]ref {
	cuts := bounds(sizes, ins)
	n := 1
	for _, c := range cuts {
		if n *= len(c) - 1; n > mostCells {
			return nil
		}
	}
	var out [][]ref
	fresh := 0
	boxes(cuts, func(lo, size []int) {
		refs := refsAt(ins, lo, size)
		out = append(out, refs)
		if !free(op, refs) {
			fresh++
		}
	})
	if n > 1 && (fresh > mostNew || fresh >= mostSingle && ir.Iterations(sizes) <= 2*fresh) {
		return nil
	}
	return out
}

// free says whether an operation needs no value: an operand is zero, or all are constant.
func free(op ir.Op, refs []ref) bool {
	constants := 0
	for _, r := range refs {
		x, ok := r.number()
		if ok {
			constants++
		}
		if ok && x == 0 && (op == ir.Add || op == ir.Sub) {
			return true
		}
	}
	return constants == len(refs)
}

// bounds are where the cells of some arrays begin and end, along each dimension.
func bounds(sizes []int, arrays []array) [][]int {
	cuts := make([][]int, len(sizes))
	for d, n := range sizes {
		cuts[d] = []int{0, n}
		for _, a := range arrays {
			if len(a.cells) > 1 {
				for _, c := range a.cells {
					cuts[d] = append(cuts[d], c.lo[d], c.lo[d]+c.sizes[d])
				}
			}
		}
		slices.Sort(cuts[d])
		cuts[d] = slices.Compact(cuts[d])
	}
	return cuts
}

// boxes calls f with every box between bounds.
func boxes(cuts [][]int, f func(lo, sizes []int)) {
	counts := make([]int, len(cuts))
	for d, c := range cuts {
		counts[d] = len(c) - 1
	}
	walk(counts, func(at []int) {
		lo, sizes := make([]int, len(cuts)), make([]int, len(cuts))
		for d, k := range at {
			lo[d], sizes[d] = cuts[d][k], cuts[d][k+1]-cuts[d][k]
		}
		f(lo, sizes)
	})
}

// refsAt are the references of arrays in a box that no cell's bound cuts.
func refsAt(arrays []array, lo, sizes []int) []ref {
	out := make([]ref, len(arrays))
	for i, a := range arrays {
		out[i] = a.box(lo, sizes)
	}
	return out
}

// box is the reference of the cell that holds a box.
func (a array) box(lo, sizes []int) ref {
	for _, c := range a.cells {
		inside := true
		move := make([]int, len(lo))
		for d := range lo {
			inside = inside && lo[d] >= c.lo[d] && lo[d]+sizes[d] <= c.lo[d]+c.sizes[d]
			move[d] = lo[d] - c.lo[d]
		}
		if inside {
			return c.ref.at(move)
		}
	}
	refuse(unwritten)
	return ref{}
}

const unwritten = "elements are read that no recorded operation has written"

// complete makes sure that every element of an array was written.
func (a array) complete() array {
	n := 0
	for _, c := range a.cells {
		n += ir.Iterations(c.sizes)
	}
	if n != a.n() {
		refuse(unwritten)
	}
	return a
}

// together is an array of one cell: where there are several they are copied into memory.
func (g *graph) together(a array) array {
	if len(a.cells) == 1 || a.n() == 0 {
		return a
	}
	return single(a.sizes, g.assembled(a))
}

// ref is the one reference of an array, which is put together where need be.
func (g *graph) ref(a array) ref { return g.together(a).cells[0].ref }

// assembled copies the cells of an array into one value.
func (g *graph) assembled(a array) ref {
	folds := a.complete().n() <= foldable
	for _, c := range a.cells {
		folds = folds && c.ref.v.kind == constant && c.ref.ix == nil
	}
	strides := contiguous(a.sizes)
	if folds {
		data := make([]float64, a.n())
		for _, c := range a.cells {
			numbers := c.ref.numbers(c.sizes)
			place := ref{v: &value{}, strides: strides}.at(c.lo)
			k := 0
			walk(c.sizes, func(at []int) {
				data[place.element(at)] = numbers[k]
				k++
			})
		}
		return ref{v: g.constant(data), strides: strides}
	}
	v := g.add(value{kind: assemble, n: a.n(), sizes: a.sizes, cells: a.cells})
	return ref{v: v, strides: strides}
}

// walk calls f with every point of a space.
func walk(sizes []int, f func(at []int)) {
	if slices.Contains(sizes, 0) {
		return
	}
	at := make([]int, len(sizes))
	for {
		f(at)
		if !ir.Next(at, sizes) {
			return
		}
	}
}

// addBoxes adds an array that is zero but for a few boxes to one of many cells: only those change. Gradients of the
// elements of a vector come one by one, and each of their sums would go through all cells otherwise.
func (g *graph) addBoxes(a, b array) (array, bool) {
	if len(a.cells) < fewBoxes {
		return array{}, false
	}
	var boxes []cell
	for _, c := range b.cells {
		if x, ok := c.ref.number(); !ok || x != 0 {
			if slices.Equal(c.sizes, a.sizes) { // a box of all is the sum itself, and would come back here for ever
				return array{}, false
			}
			boxes = append(boxes, c)
		}
	}
	if len(boxes) > mostNew || 4*len(boxes) > len(a.cells) {
		return array{}, false
	}
	for _, c := range boxes {
		part := a
		for d := range c.lo {
			part = part.narrow(d, c.lo[d], c.sizes[d])
		}
		a = g.overlay(a, c.lo, g.apply(ir.Add, part, single(c.sizes, c.ref)))
	}
	return a, true
}
