package lower

import (
	"slices"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
)

// shapeRules move elements, or make tensors of one number.
var shapeRules = map[string]rule{
	"empty": nothing, "empty_like": nothing, "empty_strided": nothing, "new_empty": nothing,
	"new_empty_strided": nothing, "_empty_affine_quantized": nothing,

	"zeros": filled(0), "zeros_like": filled(0), "new_zeros": filled(0), "zero": filled(0),
	"_efficientzerotensor": filled(0),
	"ones":                 filled(1), "ones_like": filled(1), "new_ones": filled(1),
	"full":          func(l *lowering, c *Call) { l.constant(c, c.number(1, 0)) },
	"full_like":     func(l *lowering, c *Call) { l.constant(c, c.number(1, 0)) },
	"new_full":      func(l *lowering, c *Call) { l.constant(c, c.number(2, 0)) },
	"scalar_tensor": func(l *lowering, c *Call) { l.constant(c, c.number(0, 0)) },
	"fill": func(l *lowering, c *Call) {
		if t := c.result(0); t != nil {
			l.write(t, l.in(c, 1).broadcast(t.Sizes))
		}
	},
	"arange":   arange,
	"linspace": linspace,
	"eye": func(l *lowering, c *Call) {
		t := c.result(0)
		data := make([]float64, t.Sizes[0]*t.Sizes[1])
		for i := range min(t.Sizes[0], t.Sizes[1]) {
			data[i*t.Sizes[1]+i] = 1
		}
		l.constants(c, data)
	},

	"copy": func(l *lowering, c *Call) {
		from, to := c.Args[1].Tensor, c.Args[0].Tensor
		if from == nil || to == nil {
			refuse("its arguments are no tensors")
		}
		l.write(to, l.convert(l.read(from), from.Type, to.Type).broadcast(to.Sizes))
	},
	"clone":    func(l *lowering, c *Call) { l.move(c, l.in(c, 0), tensors(c.Args)...) },
	"_to_copy": func(l *lowering, c *Call) { l.move(c, l.in(c, 0), c.Args[0].Tensor) },

	"cat":         func(l *lowering, c *Call) { l.concatenate(c, false) },
	"concat":      func(l *lowering, c *Call) { l.concatenate(c, false) },
	"_cat":        func(l *lowering, c *Call) { l.concatenate(c, false) },
	"concatenate": func(l *lowering, c *Call) { l.concatenate(c, false) },
	"stack":       func(l *lowering, c *Call) { l.concatenate(c, true) },
	"_stack":      func(l *lowering, c *Call) { l.concatenate(c, true) },

	"slice_backward": func(l *lowering, c *Call) {
		sizes, d, start, end, step := c.ints(1), c.int(2, 0), c.int(3, 0), c.int(4, 0), c.int(5, 1)
		d = at(d, len(sizes))
		start, end = clip(start, sizes[d]), clip(end, sizes[d])
		grad := l.in(c, 0)
		if end <= start || grad.n() == 0 {
			l.out(c, 0, l.g.fill(sizes, 0))
			return
		}
		lo := make([]int, len(sizes))
		out := l.g.fill(sizes, 0)
		if step == 1 {
			lo[d] = start
			out = l.g.overlay(out, lo, grad)
		} else {
			for k := range grad.sizes[d] {
				lo[d] = start + k*step
				out = l.g.overlay(out, lo, grad.narrow(d, k, 1))
			}
		}
		l.out(c, 0, out)
	},
	"select_backward": func(l *lowering, c *Call) {
		sizes := c.ints(1)
		d := at(c.int(2, 0), len(sizes))
		lo := make([]int, len(sizes))
		lo[d] = at(c.int(3, 0), sizes[d])
		l.out(c, 0, l.g.put(sizes, lo, l.in(c, 0).insert(d)))
	},
	"diagonal_backward": func(l *lowering, c *Call) {
		l.out(c, 0, l.diagonal(l.in(c, 0), c.ints(1), c.int(2, 0), c.int(3, 0), c.int(4, 1)))
	},
	"diag_embed": func(l *lowering, c *Call) {
		l.out(c, 0, l.diagonal(l.in(c, 0), c.result(0).Sizes, c.int(1, 0), c.int(2, -2), c.int(3, -1)))
	},
	"unfold_backward": func(l *lowering, c *Call) { refuse("the gradient of unfold is not understood") },
	"constant_pad_nd": func(l *lowering, c *Call) {
		a, pads := l.in(c, 0), c.ints(1)
		sizes, lo := slices.Clone(a.sizes), make([]int, len(a.sizes))
		for k := 0; 2*k+1 < len(pads); k++ {
			d := len(sizes) - 1 - k
			before, after := pads[2*k], pads[2*k+1]
			if before < 0 {
				a = a.narrow(d, -before, a.sizes[d]+before)
			}
			if after < 0 {
				a = a.narrow(d, 0, a.sizes[d]+after)
			}
			sizes[d] += before + after
			lo[d] = max(before, 0)
		}
		l.out(c, 0, l.g.overlay(l.g.fill(sizes, c.number(2, 0)), lo, a))
	},

	"flip": func(l *lowering, c *Call) {
		a := l.in(c, 0)
		for _, d := range c.ints(1) {
			a = a.flip(a.dim(d))
		}
		l.move(c, a, c.Args[0].Tensor)
	},
	"roll": func(l *lowering, c *Call) {
		a, shifts, dims := l.in(c, 0), c.ints(1), c.ints(2)
		if len(dims) != len(shifts) {
			refuse("a roll of the flattened tensor is not understood")
		}
		for k, d := range dims {
			d = a.dim(d)
			n := a.sizes[d]
			s := ((shifts[k] % n) + n) % n
			if s == 0 {
				continue
			}
			lo := make([]int, len(a.sizes))
			out := l.g.overlay(array{sizes: a.sizes}, lo, a.narrow(d, n-s, s))
			lo[d] = s
			a = l.g.overlay(out, lo, a.narrow(d, 0, n-s))
		}
		l.move(c, a, c.Args[0].Tensor)
	},
	"repeat": func(l *lowering, c *Call) {
		a, times := l.in(c, 0), c.ints(1)
		for len(a.sizes) < len(times) {
			a = a.insert(0)
		}
		sizes := make([]int, len(times))
		for d, k := range times {
			sizes[d] = a.sizes[d] * k
		}
		out := array{sizes: sizes}
		walk(times, func(k []int) {
			lo := make([]int, len(times))
			for d := range k {
				lo[d] = k[d] * a.sizes[d]
			}
			out = l.g.overlay(out, lo, a)
		})
		l.move(c, out, c.Args[0].Tensor)
	},
	"tril": triangle(func(row, col, k int) bool { return col-row <= k }),
	"triu": triangle(func(row, col, k int) bool { return col-row >= k }),
}

func at(i, n int) int {
	if i < 0 {
		i += n
	}
	return i
}

// clip is an end of a slice: counted from the back where it is negative, and inside.
func clip(i, n int) int { return min(max(at(i, n), 0), n) }

// nothing leaves the memory of a new tensor unwritten.
func nothing(l *lowering, c *Call) {}

func filled(x float64) rule { return func(l *lowering, c *Call) { l.constant(c, x) } }

// constant fills the result with a number, of any type.
func (l *lowering) constant(c *Call, x float64) {
	if t := c.result(0); t != nil {
		if t.Type == Float32 {
			x = float64(float32(x))
		}
		l.write(t, l.g.fill(t.Sizes, x))
	}
}

// constants fills the result with numbers.
func (l *lowering) constants(c *Call, data []float64) {
	if t := c.result(0); t != nil && len(data) > 0 {
		l.out(c, 0, single(t.Sizes, whole(l.g.constant(data), t.Sizes)))
	}
}

func arange(l *lowering, c *Call) {
	start, step := 0.0, 1.0
	switch c.Overload {
	case "start", "start_step", "start_out":
		start = c.number(0, 0)
		if c.Overload != "start" {
			step = c.number(2, 1)
		}
	}
	t := c.result(0)
	if t == nil || len(t.Sizes) != 1 {
		refuse("its result is no vector")
	}
	data := make([]float64, t.Sizes[0])
	for i := range data {
		data[i] = start + float64(i)*step
	}
	l.constants(c, data)
}

func linspace(l *lowering, c *Call) {
	from, to := c.number(0, 0), c.number(1, 0)
	n := c.result(0).Sizes[0]
	data := make([]float64, n)
	step := (to - from) / float64(max(n-1, 1))
	for i := range data {
		if i < n/2 {
			data[i] = from + step*float64(i)
		} else {
			data[i] = to - step*float64(n-1-i)
		}
	}
	l.constants(c, data)
}

// concatenate puts arrays one after another along a dimension; stacked, along a new one.
func (l *lowering) concatenate(c *Call, stacked bool) {
	t := c.result(0)
	if t == nil {
		return
	}
	var parts []array
	for _, in := range c.Args[0].List {
		if in.Kind != TensorKind {
			refuse("an argument is no tensor")
		}
		if in.Tensor.Type != t.Type && in.Tensor.Type.size() == 0 {
			refuse("elements of type %v are not understood", in.Tensor.Type)
		}
		parts = append(parts, l.convert(l.read(in.Tensor), in.Tensor.Type, t.Type))
	}
	d := at(c.int(1, 0), len(t.Sizes))
	out := array{sizes: t.Sizes}
	lo := make([]int, len(t.Sizes))
	for _, a := range parts {
		if stacked {
			a = a.insert(d)
		}
		if len(a.sizes) != len(t.Sizes) || a.n() == 0 {
			continue // an empty vector goes with everything
		}
		out = l.g.overlay(out, lo, a)
		lo[d] += a.sizes[d]
	}
	l.write(t, out)
}

// diagonal puts the last dimension of an array on a diagonal of two dimensions; elsewhere is zero.
func (l *lowering) diagonal(a array, sizes []int, offset, d1, d2 int) array {
	d1, d2 = at(d1, len(sizes)), at(d2, len(sizes))
	last := len(a.sizes) - 1
	if n := a.sizes[last]; n > unrolled && offset == 0 && min(d1, d2) == last && sizes[last] == n && sizes[last+1] == n {
		return l.of(ir.Select, l.identity([]int{n, n}), a.insert(last+1), l.num(0)) // one loop, not n boxes
	}
	out := l.g.fill(sizes, 0)
	first, second := min(d1, d2), max(d1, d2)
	lo := make([]int, len(sizes))
	for k := range a.sizes[last] {
		lo[d1], lo[d2] = k-min(offset, 0), k+max(offset, 0)
		out = l.g.overlay(out, lo, a.at(last, k).insert(first).insert(second))
	}
	return out
}

// flip reverses a dimension.
func (a array) flip(d int) array {
	out := array{sizes: a.sizes}
	for _, c := range a.cells {
		move := make([]int, len(a.sizes))
		move[d] = c.sizes[d] - 1
		e := cell{slices.Clone(c.lo), c.sizes, c.ref.at(move).times(d, -1)}
		e.lo[d] = a.sizes[d] - c.lo[d] - c.sizes[d]
		out.cells = append(out.cells, e)
	}
	return out
}

// triangle keeps a triangle of the last two dimensions.
func triangle(keeps func(row, col, k int) bool) rule {
	return func(l *lowering, c *Call) {
		a := l.in(c, 0)
		if part, ok := l.lowerPart(a); ok && keeps(1, 0, 0) && c.int(1, 0) == 0 {
			l.out(c, 0, part)
			return
		}
		n := len(a.sizes)
		rows, cols := a.sizes[n-2], a.sizes[n-1]
		mask := make([]float64, rows*cols)
		for i := range mask {
			if keeps(i/cols, i%cols, c.int(1, 0)) {
				mask[i] = 1
			}
		}
		if a.n() == 0 {
			return
		}
		sizes := []int{rows, cols}
		l.out(c, 0, l.of(ir.Select, single(sizes, whole(l.g.constant(mask), sizes)), a, l.num(0)))
	}
}
