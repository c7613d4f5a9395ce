package lower

import (
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
)

// indexRules read and add at places that a tensor of whole numbers says.
var indexRules = map[string]rule{
	"index_select": func(l *lowering, c *Call) {
		a := l.in(c, 0)
		l.move(c, l.take(a, a.dim(c.int(1, 0)), l.in(c, 2)), c.Args[0].Tensor)
	},
	"gather": func(l *lowering, c *Call) {
		a, ix := l.in(c, 0), l.in(c, 2)
		l.move(c, l.gather(a, a.dim(c.int(1, 0)), ix), c.Args[0].Tensor)
	},
	"index_add": func(l *lowering, c *Call) {
		a, src := l.in(c, 0), l.in(c, 3)
		src = l.scale(src, c.number(4, 1))
		l.out(c, 0, l.addAt(a, a.dim(c.int(1, 0)), l.in(c, 2), src))
	},
	"scatter_add": func(l *lowering, c *Call) {
		a, ix, src := l.in(c, 0), l.in(c, 2), l.in(c, 3)
		d := a.dim(c.int(1, 0))
		for k, n := range ix.sizes {
			src = src.narrow(k, 0, n)
		}
		l.out(c, 0, l.scatterAdd(a, d, ix, src))
	},
	"index": func(l *lowering, c *Call) {
		a := l.in(c, 0)
		d, ix := l.oneIndex(c, a)
		l.move(c, l.take(a, d, ix), c.Args[0].Tensor)
	},
	"index_put": func(l *lowering, c *Call) {
		a := l.in(c, 0)
		d, ix := l.oneIndex(c, a)
		if !c.flag(3) {
			refuse("an assignment by an index is not understood; adding is")
		}
		rank := len(ix.sizes)
		sizes := slices.Concat(a.sizes[:d], ix.sizes, a.sizes[d+1:])
		src := l.in(c, 2).broadcast(sizes)
		if rank != 1 {
			src, ix = l.flatten(src, d, rank), l.flatten(ix, 0, rank)
		}
		l.out(c, 0, l.addAt(a, d, ix, src))
	},
	"_index_put_impl": func(l *lowering, c *Call) { rules["index_put"](l, c) },
	"embedding": func(l *lowering, c *Call) {
		l.move(c, l.take(l.in(c, 0), 0, l.in(c, 1)), c.Args[0].Tensor)
	},
	"embedding_dense_backward": func(l *lowering, c *Call) {
		grad, ix := l.in(c, 0), l.in(c, 1)
		if c.flag(4) {
			refuse("gradients scaled by frequency are not understood")
		}
		rank := len(ix.sizes)
		if rank != 1 {
			grad, ix = l.flatten(grad, 0, rank), l.flatten(ix, 0, rank)
		}
		if pad := c.int(3, -1); pad >= 0 {
			keep := l.of(ir.Ne, ix, l.num(float64(pad))).insert(1)
			grad = l.of(ir.Select, keep, grad, l.num(0))
		}
		sizes := []int{c.int(2, 0), grad.sizes[1]}
		l.out(c, 0, l.addAt(l.g.fill(sizes, 0), 0, ix, grad))
	},
}

// oneIndex is the one tensor that advanced indexing has, with the dimension that it indexes. Negative indices count
// from the end.
func (l *lowering) oneIndex(c *Call, a array) (int, array) {
	d := -1
	var t *Tensor
	for k, x := range c.Args[1].List {
		if x.Kind == TensorKind {
			if t != nil {
				refuse("indexing by several tensors is not understood")
			}
			d, t = k, x.Tensor
		}
	}
	if t == nil {
		refuse("it has no index")
	}
	if t.Type == Boolean || t.Type == Uint8 {
		refuse("indexing by a mask is not understood: its result has as many elements as the mask is true")
	}
	ix := l.read(t)
	return d, l.choose(l.less(ix, l.num(0)), l.add(ix, l.num(float64(a.sizes[d]))), ix)
}

// flatten makes some dimensions one.
func (l *lowering) flatten(a array, d, count int) array {
	n := 1
	for _, s := range a.sizes[d : d+count] {
		n *= s
	}
	sizes := slices.Concat(a.sizes[:d], []int{n}, a.sizes[d+count:])
	v := l.g.value(a)
	return single(sizes, whole(v, sizes))
}

// indices are whole numbers in [0, n), checked: when the plan is made, or with the batch.
func (l *lowering) indices(a array, n int) ref {
	r := l.g.ref(a)
	if r.ix != nil {
		refuse("an index is not resolved")
	}
	if r.v.stage == perPoint {
		refuse("an index depends on the parameters")
	}
	dims, space := varying(r, a.sizes)
	own := r.pick(dims)
	var v *value
	if data := own.numbers(space); data != nil {
		for _, x := range data {
			if x != math.Trunc(x) || x < 0 || x >= float64(n) {
				refuse("the index %v is not in [0, %d)", x, n)
			}
		}
		v = l.g.add(value{kind: index, n: len(data), sizes: space, data: data, limit: n})
	} else {
		v = l.g.add(value{kind: index, n: ir.Iterations(space), sizes: space, args: []ref{own}, limit: n})
	}
	out := ref{v: v, strides: make([]int, len(a.sizes))}
	for k, s := range contiguous(space) {
		out.strides[dims[k]] = s
	}
	return out
}

// varying are the dimensions along which a reference changes, and their sizes.
func varying(r ref, sizes []int) (dims, space []int) {
	for d, n := range sizes {
		if n > 1 && r.varies(d) {
			dims = append(dims, d)
			space = append(space, n)
		}
	}
	return dims, space
}

// take reads an array at the indices of a dimension, which the dimensions of the index replace.
func (l *lowering) take(a array, d int, ix array) array {
	rank := len(ix.sizes)
	sizes := slices.Concat(a.sizes[:d], ix.sizes, a.sizes[d+1:])
	if slices.Contains(sizes, 0) {
		return array{sizes: sizes}
	}
	if l.moves(ix) {
		for range d {
			ix = ix.insert(0)
		}
		for range len(a.sizes) - d {
			ix = ix.insert(len(ix.sizes))
		}
		for range rank {
			a = a.insert(d)
		}
		return l.chosen(a, d+rank, ix)
	}
	r := l.g.ref(a)
	if r.ix != nil {
		refuse("an index is not resolved")
	}
	at := l.indices(ix, a.sizes[d])
	out := ref{v: r.v, off: r.off, scale: r.strides[d],
		strides: slices.Concat(r.strides[:d], make([]int, rank), r.strides[d+1:])}
	at.strides = slices.Concat(make([]int, d), at.strides, make([]int, len(a.sizes)-d-1))
	if r.strides[d] != 0 {
		out.ix = &at
	}
	return single(sizes, l.g.pointwise(copyOf, sizes, out))
}

// gather reads, at each point of the index, the element of a line along a dimension.
func (l *lowering) gather(a array, d int, ix array) array {
	if len(a.sizes) == 0 {
		return a
	}
	if ix.n() == 0 {
		return array{sizes: ix.sizes}
	}
	if l.moves(ix) {
		for k, n := range ix.sizes {
			if k != d {
				a = a.narrow(k, 0, n)
			}
		}
		return l.chosen(a.insert(d), d+1, ix.insert(d+1))
	}
	r := l.g.ref(a)
	at := l.indices(ix, a.sizes[d])
	out := ref{v: r.v, off: r.off, scale: r.strides[d], strides: slices.Clone(r.strides)}
	out.strides[d] = 0
	if r.strides[d] != 0 {
		out.ix = &at
	}
	return single(ix.sizes, l.g.pointwise(copyOf, ix.sizes, out))
}

// moves says whether an index depends on the point.
func (l *lowering) moves(ix array) bool { return l.g.ref(ix).v.stage == perPoint }

// mostChosen is from how many elements an index that depends on the point may choose.
const mostChosen = 1 << 10

// chosen are the elements of the lines of a, along dimension d, that an index says which has one element there: the sum
// over the line of what is at the index. It is NaN where the index is none of the line's.
func (l *lowering) chosen(a array, d int, ix array) array {
	n := a.sizes[d]
	if n > mostChosen {
		refuse("an index depends on the parameters, and chooses from %d elements; from %d it may", n, mostChosen)
	}
	sizes, places := slices.Repeat([]int{1}, len(a.sizes)), make([]float64, n)
	for i := range places {
		places[i] = float64(i)
	}
	sizes[d] = n
	here := l.of(ir.Eq, ix, single(sizes, whole(l.g.constant(places), sizes)))
	sum := l.g.reduce(ir.Sum, l.choose(here, a, l.num(0)), []int{d}, false)
	none := l.of(ir.Not, l.g.reduce(ir.MaxOf, here, []int{d}, false))
	return l.choose(none, l.num(math.NaN()), sum)
}

// addAt adds slices of src to those of a that an index of one dimension says.
func (l *lowering) addAt(a array, d int, ix, src array) array {
	if src.n() == 0 {
		return a
	}
	if len(ix.sizes) == 0 {
		ix = ix.insert(0)
	}
	for k := range a.sizes {
		if k < d {
			ix = ix.insert(0)
		} else if k > d {
			ix = ix.insert(len(ix.sizes))
		}
	}
	return l.scatterAdd(a, d, ix.broadcast(src.sizes), src)
}

// scatterAdd adds each element of src to that of a's line along a dimension which the index says.
func (l *lowering) scatterAdd(a array, d int, ix, src array) array {
	if len(a.sizes) == 0 {
		return l.of(ir.Add, a, src)
	}
	if src.n() == 0 {
		return a
	}
	at, from := l.indices(ix, a.sizes[d]), l.g.ref(src)
	place := whole(nil, a.sizes)
	place.scale, place.strides[d] = place.strides[d], 0
	var dims, space []int
	for k, n := range src.sizes {
		if n > 1 {
			dims, space = append(dims, k), append(space, n)
		}
	}
	from, at = from.pick(dims), at.pick(dims)
	place = place.pick(dims)
	place.ix = &at
	v := l.g.add(value{kind: scatter, n: a.n(), sizes: space, cells: a.complete().cells, step: ir.Step{Sizes: a.sizes},
		args: []ref{from, at}, place: place})
	return single(a.sizes, whole(v, a.sizes))
}
