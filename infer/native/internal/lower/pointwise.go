package lower

import (
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
)

// copyOf is the operation of a pointwise value that is its operand, in a layout of its own.
const copyOf = ir.Load

const (
	foldable = 1 << 20 // constants of at most so many elements are computed when the plan is made
	relayout = 8       // operands of so many elements or more are laid out for unit stride
)

// pointwise is op at every point of a space. The value has only the dimensions along which an operand varies.
func (g *graph) pointwise(op ir.Op, sizes []int, args ...ref) ref {
	if r, ok := g.simplify(op, sizes, args); ok {
		return r
	}
	var dims []int
	for d, n := range sizes {
		if n > 1 && slices.ContainsFunc(args, func(r ref) bool { return r.varies(d) }) {
			dims = append(dims, d)
		}
	}
	if r, ok := leader(args, dims); ok {
		slices.SortStableFunc(dims, func(a, b int) int { return abs(r.strides[b]) - abs(r.strides[a]) })
	}
	space, own := picked(sizes, dims), make([]ref, len(args))
	for i, r := range args {
		own[i] = r.pick(dims)
	}
	result := ref{strides: make([]int, len(sizes))}
	for k, s := range contiguous(space) {
		result.strides[dims[k]] = s
	}
	space, own = collapse(space, own)
	result.v = g.elementwise(op, space, own)
	return result
}

// elementwise makes the value of pointwise, or folds it.
func (g *graph) elementwise(op ir.Op, space []int, args []ref) *value {
	n := ir.Iterations(space)
	if n <= foldable {
		in := make([][]float64, 3)
		folds := true
		for i, r := range args {
			if in[i] = r.numbers(space); in[i] == nil {
				folds = false
				break
			}
		}
		if folds {
			data := in[0]
			if op != copyOf {
				data = make([]float64, n)
				for k := range data {
					var x [3]float64
					for i := range args {
						x[i] = in[i][k]
					}
					data[k] = ir.Apply(op, x[0], x[1], x[2])
				}
			}
			return g.constant(data)
		}
	}
	if slices.ContainsFunc(args, func(r ref) bool { return r.v.stage == perPoint }) {
		for i, r := range args {
			args[i] = g.unitStride(r, space)
		}
	}
	return g.add(value{kind: pointwise, op: op, n: n, sizes: space, args: args})
}

// unitStride copies what is known before the evaluation and read in steps, such as a column of a matrix, into an array
// that is read element by element.
func (g *graph) unitStride(r ref, space []int) ref {
	if r.v.stage == perPoint || r.fixed() || len(space) == 0 || ir.Iterations(space) < relayout {
		return r
	}
	last := r.strides[len(space)-1]
	if r.ix == nil && (last == 0 || last == 1) && r.v.kind != input {
		return r
	}
	if r.v.kind == input && r.ix == nil && (last == 0 || last == 1) && r.v.elem == ir.F64 {
		return r
	}
	return g.pointwise(copyOf, space, r)
}

// leader is the operand whose order in memory a value takes over: one that changes along all dimensions, of the latest
// stage.
func leader(args []ref, dims []int) (best ref, ok bool) {
	for _, r := range args {
		full := r.ix == nil
		for _, d := range dims {
			full = full && r.strides[d] != 0
		}
		if full && (!ok || r.v.stage > best.v.stage) {
			best, ok = r, true
		}
	}
	return best, ok
}

// collapse makes neighbouring dimensions one where all operands allow it.
func collapse(space []int, args []ref) ([]int, []ref) {
	space = slices.Clone(space)
	for d := len(space) - 2; d >= 0; d-- {
		if slices.ContainsFunc(args, func(r ref) bool { return !r.follows(d, space[d+1]) }) {
			continue
		}
		for i := range args {
			args[i] = args[i].merge(d)
		}
		space[d] *= space[d+1]
		space = slices.Delete(space, d+1, d+2)
	}
	return space, args
}

func abs(x int) int { return max(x, -x) }

// simplify finds an operation that needs no value of its own, or a cheaper one.
func (g *graph) simplify(op ir.Op, sizes []int, args []ref) (ref, bool) {
	var c [3]float64
	var is [3]bool
	all := op != copyOf
	for i, r := range args {
		c[i], is[i] = r.number()
		all = all && is[i]
	}
	num := func(x float64) (ref, bool) { return g.number(x, len(sizes)), true }
	same := func(r ref) (ref, bool) { return r, true }
	does := func(op ir.Op, args ...ref) (ref, bool) { return g.pointwise(op, sizes, args...), true }
	if all {
		return num(ir.Apply(op, c[0], c[1], c[2]))
	}
	switch op {
	case ir.Add:
		if is[0] && !is[1] {
			return does(op, args[1], args[0])
		}
		if is[1] && c[1] == 0 {
			return same(args[0])
		}
	case ir.Sub:
		if is[1] && c[1] == 0 {
			return same(args[0])
		}
		if is[0] && c[0] == 0 {
			return does(ir.Neg, args[1])
		}
	case ir.Mul, ir.Div:
		return g.simpleProduct(op, sizes, args, c, is)
	case ir.Neg:
		if v := args[0].v; v.kind == pointwise && v.op == ir.Neg {
			if r, ok := through(args[0], sizes); ok {
				return same(r)
			}
		}
	case ir.Exp:
		return g.exponential(sizes, args[0])
	case ir.Pow:
		if is[1] {
			return g.power(sizes, args[0], c[1])
		}
	case ir.Select:
		if is[0] && c[0] != 0 {
			return same(args[1])
		}
		if is[0] {
			return same(args[2])
		}
		if is[1] && is[2] && (c[1] == c[2] || c[1] != c[1] && c[2] != c[2]) {
			return num(c[1])
		}
	case ir.Ne:
		if is[1] && c[1] == 0 && args[0].v.kind == pointwise && truth(args[0].v.op) {
			return same(args[0])
		}
	}
	return ref{}, false
}

// simpleProduct is simplify for products and quotients; c are the operands that are numbers.
func (g *graph) simpleProduct(op ir.Op, sizes []int, args []ref, c [3]float64, is [3]bool) (ref, bool) {
	does := func(op ir.Op, args ...ref) (ref, bool) { return g.pointwise(op, sizes, args...), true }
	switch {
	case op == ir.Mul && is[0] && !is[1]:
		return does(op, args[1], args[0])
	case is[1] && c[1] == 1:
		return args[0], true
	case is[1] && c[1] == -1:
		return does(ir.Neg, args[0])
	case op == ir.Mul:
	case is[1] && c[1] != 0 && normal(1/c[1]) && normal(c[1]):
		return does(ir.Mul, args[0], g.number(1/c[1], len(sizes)))
	case !is[1] && args[1].fixed() && !args[0].fixed():
		// One division for all points.
		return does(ir.Mul, args[0], g.pointwise(ir.Div, sizes, g.number(1, len(sizes)), args[1]))
	}
	return ref{}, false
}

func normal(x float64) bool { return !math.IsInf(x, 0) && math.Abs(x) > 0x1p-1000 }

// truth says whether an operation gives 0 or 1 alone.
func truth(op ir.Op) bool {
	switch op {
	case ir.IsNaN, ir.IsInf, ir.Not, ir.Lt, ir.Le, ir.Eq, ir.Ne, ir.And, ir.Or:
		return true
	}
	return false
}

// through is the operand of a pointwise value of one operand, where the reference reads the whole value in order.
func through(r ref, sizes []int) (ref, bool) {
	v := r.v
	if len(v.args) != 1 || r.ix != nil {
		return ref{}, false
	}
	if len(v.sizes) == 0 {
		out := v.args[0]
		out.strides = make([]int, len(sizes))
		return out, out.ix == nil
	}
	if len(v.sizes) != 1 {
		return ref{}, false
	}
	in := v.args[0]
	if in.ix != nil {
		return ref{}, false
	}
	out := ref{v: in.v, off: in.off + in.strides[0]*r.off, strides: make([]int, len(sizes))}
	for d, s := range r.strides {
		out.strides[d] = s * in.strides[0]
	}
	return out, true
}

// power is x to a power that is known.
func (g *graph) power(sizes []int, x ref, p float64) (ref, bool) {
	one := func() ref { return g.number(1, len(sizes)) }
	square := func() ref { return g.pointwise(ir.Mul, sizes, x, x) }
	switch p {
	case 0:
		return one(), true
	case 1:
		return x, true
	case 2:
		return square(), true
	case 3:
		return g.pointwise(ir.Mul, sizes, square(), x), true
	case 4:
		return g.pointwise(ir.Mul, sizes, square(), square()), true
	case 0.5:
		return g.pointwise(ir.Sqrt, sizes, x), true
	case -0.5:
		return g.pointwise(ir.Div, sizes, one(), g.pointwise(ir.Sqrt, sizes, x)), true
	case -1:
		return g.pointwise(ir.Div, sizes, one(), x), true
	case -2:
		return g.pointwise(ir.Div, sizes, one(), square()), true
	}
	return ref{}, false
}
