package lower

import (
	"slices"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
)

// image is what a storage holds at one moment, as a contiguous array: an operation that writes makes a new one.
type image struct {
	typ    Type
	array  array
	poison *Refusal // why it cannot be read
}

// read is the array of a tensor.
func (l *lowering) read(t *Tensor) array {
	sizes := t.Sizes
	if t.Device != 0 {
		refuse("a tensor is on another device than main memory")
	}
	if slices.Contains(sizes, 0) {
		return array{sizes: sizes}
	}
	img := l.images[t.Storage]
	if img == nil {
		img = l.external(t)
		l.images[t.Storage] = img
	}
	if img.poison != nil {
		panic(img.poison)
	}
	if img.typ != t.Type {
		refuse("memory that holds %v is read as %v", img.typ, t.Type)
	}
	if a, ok := img.array.view(t.Offset, sizes, t.Strides); ok {
		return a
	}
	img.array = flat(single([]int{img.array.n()}, ref{v: l.g.value(img.array), strides: []int{1}}))
	a, ok := img.array.view(t.Offset, sizes, t.Strides)
	if !ok {
		refuse("a tensor lies outside its storage")
	}
	return a
}

// value is an array as one contiguous value.
func (g *graph) value(a array) *value {
	r := g.ref(a)
	if r.ix == nil && r.off == 0 && r.v.n == a.n() && slices.Equal(r.strides, contiguous(a.sizes)) {
		return r.v
	}
	return g.assembled(a).v
}

// view reads an array, which lies contiguous in memory, by an offset and strides; false where the view does not go
// along its dimensions.
func (a array) view(off int, sizes, strides []int) (array, bool) {
	layout := contiguous(a.sizes)
	decode := func(o int) []int {
		at := make([]int, len(layout))
		for d, s := range layout {
			if a.sizes[d] > 1 {
				at[d] = o / s
				o %= s
			}
		}
		return at
	}
	lo := decode(off)
	last := slices.Clone(lo)
	steps := make([][]int, len(sizes)) // of each dimension of the view, along each of the array
	aligned := true
	users := make([]int, len(layout))
	for t, n := range sizes {
		steps[t] = make([]int, len(layout))
		if n == 1 || strides[t] == 0 {
			continue
		}
		steps[t] = decode(strides[t])
		used := 0
		for d, c := range steps[t] {
			last[d] += c * (n - 1)
			if c != 0 {
				used++
				users[d]++
			}
		}
		aligned = aligned && used == 1
	}
	for d, n := range a.sizes {
		if last[d] >= n {
			return array{}, false
		}
		aligned = aligned && users[d] <= 1
	}
	out := array{sizes: sizes}
	for _, c := range a.cells {
		if e, ok := c.through(lo, last, steps, sizes); ok {
			out.cells = []cell{e}
			return out, true
		}
	}
	if !aligned {
		return array{}, false
	}
	for _, c := range a.cells {
		if e, ok := c.cut(lo, steps, sizes); ok {
			out.cells = append(out.cells, e)
		}
	}
	return out, true
}

// through is a view as one cell, where this one holds all of it.
func (c cell) through(lo, last []int, steps [][]int, sizes []int) (cell, bool) {
	move := make([]int, len(lo))
	for d := range lo {
		if lo[d] < c.lo[d] || last[d] >= c.lo[d]+c.sizes[d] {
			return cell{}, false
		}
		move[d] = lo[d] - c.lo[d]
	}
	return cell{make([]int, len(sizes)), sizes, c.ref.at(move).stepped(steps)}, true
}

// stepped is a reference along other dimensions. Each of these steps along those of this one.
func (r ref) stepped(steps [][]int) ref {
	return r.with(func(s []int) []int {
		strides := make([]int, len(steps))
		for t, step := range steps {
			for d, k := range step {
				strides[t] += k * s[d]
			}
		}
		return strides
	})
}

// cut is the part of a view that lies in a cell. Each dimension of the view goes along one dimension of the array.
func (c cell) cut(lo []int, steps [][]int, sizes []int) (cell, bool) {
	out := cell{make([]int, len(sizes)), slices.Clone(sizes), ref{}}
	move := make([]int, len(lo))
	along := make([]bool, len(lo))
	for t, step := range steps {
		for d, k := range step {
			if k == 0 {
				continue
			}
			along[d] = true
			// Indices i with c.lo <= lo + k·i < c.lo + c.sizes.
			from := max(0, (c.lo[d]-lo[d]+k-1)/k)
			if c.lo[d] <= lo[d] {
				from = 0
			}
			end := c.lo[d] + c.sizes[d] - lo[d]
			if end <= 0 {
				return cell{}, false
			}
			to := min(sizes[t], (end+k-1)/k)
			if from >= to {
				return cell{}, false
			}
			out.lo[t], out.sizes[t] = from, to-from
			move[d] = lo[d] + k*from - c.lo[d]
		}
	}
	for d := range lo {
		if !along[d] {
			if lo[d] < c.lo[d] || lo[d] >= c.lo[d]+c.sizes[d] {
				return cell{}, false
			}
			move[d] = lo[d] - c.lo[d]
		}
	}
	out.ref = c.ref.at(move).stepped(steps)
	return out, true
}

// write gives a tensor new elements.
func (l *lowering) write(t *Tensor, a array) {
	if t.Device != 0 {
		refuse("a tensor is on another device than main memory")
	}
	n := ir.Iterations(t.Sizes)
	if n == 0 {
		return
	}
	s := &l.rec.Storages[t.Storage]
	if l.origin[t.Storage] == before {
		refuse("it writes into a tensor that was there before the evaluation: a tensor kept between calls, or data")
	}
	if t.Type.size() == 0 {
		refuse("elements of type %v are not understood", t.Type)
	}
	a = a.broadcast(t.Sizes)
	total := s.Bytes / t.Type.size()
	order, layout, ok := dense(t)
	if ok && t.Offset == 0 && n >= total {
		p := a.permute(order)
		p.sizes = layout
		l.images[t.Storage] = &image{typ: t.Type, array: flat(p)}
		return
	}
	l.writePart(t, a, total)
}

// dense is the order of the dimensions of a tensor in memory, without those of size 1, and their sizes; false where it
// leaves gaps or overlaps.
func dense(t *Tensor) (order, layout []int, ok bool) {
	for d, n := range t.Sizes {
		if n > 1 {
			order = append(order, d)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return t.Strides[b] - t.Strides[a] })
	for _, d := range order {
		layout = append(layout, t.Sizes[d])
	}
	for k, s := range contiguous(layout) {
		if t.Strides[order[k]] != s {
			return nil, nil, false
		}
	}
	return order, layout, true
}

// writePart writes into a part of a storage.
func (l *lowering) writePart(t *Tensor, a array, total int) {
	img := l.images[t.Storage]
	if img != nil && img.poison != nil {
		panic(img.poison)
	}
	if img == nil {
		img = &image{typ: t.Type, array: array{sizes: []int{total}}}
	}
	if img.typ != t.Type {
		refuse("memory that holds %v is written as %v", img.typ, t.Type)
	}
	lo, order, ok := region(img.array.sizes, t)
	base := img.array
	if !ok {
		// The layout that the region asks for, in which it is a box.
		sizes := layoutFor(t, total)
		if sizes == nil {
			refuse("it writes a part of a tensor that is no box")
		}
		if len(base.cells) > 0 {
			base = flat(single([]int{total}, ref{v: l.g.value(base), strides: []int{1}}))
			base = single(sizes, base.cells[0].ref.stepped(stepsOf(contiguous(sizes))))
		} else {
			base = array{sizes: sizes}
		}
		if lo, order, ok = region(sizes, t); !ok {
			refuse("it writes a part of a tensor that is no box")
		}
	}
	part := a.spread(order)
	out := l.g.overlay(base, lo, part)
	l.images[t.Storage] = &image{typ: t.Type, array: flat(out)}
}

func stepsOf(strides []int) [][]int {
	out := make([][]int, len(strides))
	for d, s := range strides {
		out[d] = []int{s}
	}
	return out
}

// spread gives an array the dimensions of a layout: order[d] is its own dimension, or -1 for one of size 1.
func (a array) spread(order []int) array {
	out := a
	var dims []int
	for _, d := range order {
		if d < 0 {
			out = out.insert(len(out.sizes))
			dims = append(dims, len(out.sizes)-1)
		} else {
			dims = append(dims, d)
		}
	}
	return out.permute(dims)
}

// region is a tensor as a box of a contiguous layout: where it starts, and which of its dimensions goes along each.
func region(sizes []int, t *Tensor) (lo, order []int, ok bool) {
	layout := contiguous(sizes)
	lo, order = make([]int, len(sizes)), make([]int, len(sizes))
	o := t.Offset
	for d, s := range layout {
		lo[d], o = o/s, o%s
		order[d] = -1
	}
	for k, n := range t.Sizes {
		if n == 1 {
			continue
		}
		found := false
		for d, s := range layout {
			if s == t.Strides[k] && sizes[d] > 1 && order[d] < 0 && lo[d]+n <= sizes[d] {
				order[d], found = k, true
				break
			}
		}
		if !found {
			return nil, nil, false
		}
	}
	return lo, order, true
}

// layoutFor are the sizes of a contiguous layout that has a dimension for each of a tensor's.
func layoutFor(t *Tensor, total int) []int {
	strides := []int{1}
	for d, n := range t.Sizes {
		if n > 1 {
			strides = append(strides, t.Strides[d])
		}
	}
	slices.Sort(strides)
	strides = slices.Compact(strides)
	var sizes []int
	above := total
	for k := len(strides) - 1; k >= 0; k-- {
		if strides[k] == 0 || above%strides[k] != 0 {
			return nil
		}
		sizes = append(sizes, above/strides[k])
		above = strides[k]
	}
	return sizes
}

// flat makes the dimensions of an image of one cell as few as they can be.
func flat(a array) array {
	if len(a.cells) != 1 || len(a.sizes) == 0 {
		return a
	}
	sizes, refs := collapse(a.sizes, []ref{a.cells[0].ref})
	return single(sizes, refs[0])
}
