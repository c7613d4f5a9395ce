package lower

import (
	"slices"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
)

// matrixRules are products and factorisations.
var matrixRules = map[string]rule{
	"mm":  func(l *lowering, c *Call) { l.out(c, 0, l.product(l.in(c, 0), l.in(c, 1))) },
	"bmm": func(l *lowering, c *Call) { l.out(c, 0, l.product(l.in(c, 0), l.in(c, 1))) },
	"mv":  func(l *lowering, c *Call) { l.out(c, 0, l.product(l.in(c, 0), l.in(c, 1).insert(1)).drop(1)) },
	"dot": dot, "vdot": dot,
	"addmv":   func(l *lowering, c *Call) { l.scaled(c, l.product(l.in(c, 1), l.in(c, 2).insert(1)).drop(1)) },
	"addmm":   func(l *lowering, c *Call) { l.scaled(c, l.product(l.in(c, 1), l.in(c, 2))) },
	"baddbmm": func(l *lowering, c *Call) { l.scaled(c, l.product(l.in(c, 1), l.in(c, 2))) },
	"addr": func(l *lowering, c *Call) {
		l.scaled(c, l.of(ir.Mul, l.in(c, 1).insert(1), l.in(c, 2).insert(0)))
	},
	"linalg_cholesky_ex": func(l *lowering, c *Call) {
		f := l.cholesky(l.in(c, 0), c.flag(1))
		l.out(c, 0, f)
		if last := f.sizes[len(f.sizes)-1] - 1; last >= 0 {
			// No factor exists where the last element of its diagonal is NaN. Which minor fails is not computed.
			l.out(c, 1, l.of(ir.IsNaN, f.at(len(f.sizes)-1, last).at(len(f.sizes)-2, last)))
		}
	},
	"cholesky": func(l *lowering, c *Call) { l.out(c, 0, l.cholesky(l.in(c, 0), c.flag(1))) },
	"linalg_solve_triangular": func(l *lowering, c *Call) {
		l.out(c, 0, l.solve(l.in(c, 0), l.in(c, 1), c.flag(2), c.flag(4), !c.flag(3)))
	},
	"triangular_solve": func(l *lowering, c *Call) {
		b, a := l.in(c, 0), l.in(c, 1)
		upper := c.flag(2)
		if c.flag(3) {
			a, upper = a.transposed(), !upper
		}
		l.out(c, 0, l.solve(a, b, upper, c.flag(4), false))
		if t := c.result(1); t != nil && len(t.Sizes) > 0 {
			l.out(c, 1, l.in(c, 1))
		}
	},
	"cholesky_solve": func(l *lowering, c *Call) {
		b, f := l.in(c, 0), l.in(c, 1)
		if c.flag(2) {
			f = f.transposed()
		}
		half := l.solve(f, b, false, false, false)
		l.out(c, 0, l.solve(f.transposed(), half, true, false, false))
	},
	"cholesky_inverse": func(l *lowering, c *Call) {
		f := l.in(c, 0)
		if c.flag(1) {
			f = f.transposed()
		}
		half := l.solve(f, l.identity(f.sizes), false, false, false)
		l.out(c, 0, l.solve(f.transposed(), half, true, false, false))
	},
}

// scaled is beta·self + alpha·product.
func (l *lowering) scaled(c *Call, product array) {
	if beta := c.number(3, 1); beta != 0 {
		l.out(c, 0, l.add(l.scale(l.in(c, 0), beta), l.scale(product, c.number(4, 1))))
		return
	}
	l.out(c, 0, l.scale(product, c.number(4, 1)))
}

func dot(l *lowering, c *Call) {
	l.out(c, 0, l.g.reduce(ir.Sum, l.of(ir.Mul, l.in(c, 0), l.in(c, 1)), nil, false))
}

const (
	smallOut  = 64   // products of so few elements are reductions, which join the loops that make their operands
	smallStep = 4096 // products of fewer terms are sums inside a loop

	// A product of so large a matrix with a vector, in bytes, is a step: loops over its columns would lay it out anew.
	hugeMatrix = 1 << 26
)

// product is the product of matrices [..., m, k] and [..., k, n].
func (l *lowering) product(a, b array) array {
	r := len(a.sizes)
	m, k, n := a.sizes[r-2], a.sizes[r-1], b.sizes[r-1]
	sizes := slices.Clone(a.sizes)
	sizes[r-1] = n
	outer := ir.Iterations(sizes)
	if outer == 0 {
		return array{sizes: sizes}
	}
	if k == 0 {
		return l.g.fill(sizes, 0)
	}
	switch {
	case (n == 1 || m == 1) && 8*outer*k >= hugeMatrix:
	case k <= unrolled && (n == 1 || m == 1 || outer*k <= smallStep) && outer > 1 || k == 1:
		var sum array
		for i := range k {
			term := l.of(ir.Mul, a.narrow(r-1, i, 1), b.narrow(r-2, i, 1))
			if i > 0 {
				term = l.of(ir.Add, sum, term)
			}
			sum = term
		}
		return sum
	case outer <= smallOut && (n == 1 && across(a, r-1) || m == 1 && across(b, r-2)):
		return l.g.reduce(ir.Sum, l.of(ir.Mul, a.transposed(), b), []int{r - 2}, true).along(n == 1)
	case outer <= smallOut:
		out := array{sizes: sizes}
		walk(sizes, func(at []int) {
			x, y := a, b
			lo := slices.Clone(at)
			for d := range r - 2 {
				x, y = x.narrow(d, at[d], 1), y.narrow(d, at[d], 1)
			}
			x, y = x.narrow(r-2, at[r-2], 1), y.narrow(r-1, at[r-1], 1)
			term := l.of(ir.Mul, x, y.transposed())
			out = l.g.overlay(out, lo, l.g.reduce(ir.Sum, term, []int{r - 1}, true))
		})
		return out
	}
	x, y := l.g.memory(l.g.ref(a), a.sizes), l.g.memory(l.g.ref(b), b.sizes)
	return l.step(ir.Step{Kind: ir.MatMul, M: m, N: n, K: k, Upper: m >= triangular && upperFactor(x)}, sizes, x, y)
}

// triangular is from how many rows on products leave out what is 0 in a triangle.
const triangular = 32

// upperFactor says whether a reference is a whole transposed Cholesky factor.
func upperFactor(r ref) bool {
	n := len(r.strides)
	return r.v.kind == matrices && r.v.step.Kind == ir.Cholesky && r.ix == nil && r.off == 0 && r.strides[n-2] == 1 &&
		r.strides[n-1] == r.v.step.N
}

// lowerPart is the lower triangle of a product, which is computed alone, where an array is a product.
func (l *lowering) lowerPart(a array) (array, bool) {
	if len(a.cells) != 1 {
		return array{}, false
	}
	r := a.cells[0].ref
	s := r.v.step
	if r.v.kind != matrices || s.Kind != ir.MatMul || s.M != s.N || s.M < triangular || r.ix != nil || r.off != 0 ||
		!slices.Equal(r.strides, contiguous(a.sizes)) {
		return array{}, false
	}
	s.Lower = true
	return l.step(s, a.sizes, r.v.args...), true
}

// across says whether what the evaluation makes lies across a dimension, so that neighbours along it are apart.
func across(a array, d int) bool {
	r := a.cells[0].ref
	return len(a.cells) == 1 && r.v.stage == perPoint && r.ix == nil && abs(r.strides[d]) > 1 && a.sizes[d] > unrolled
}

// along is a row, turned into a column where column is set.
func (a array) along(column bool) array {
	if column {
		return a.transposed()
	}
	return a
}

// step makes the value of a step on matrices whose result has the given sizes.
func (l *lowering) step(s ir.Step, sizes []int, args ...ref) array {
	v := l.g.add(value{kind: matrices, n: ir.Iterations(sizes), sizes: sizes[:len(sizes)-2], args: args, step: s})
	return single(sizes, whole(v, sizes))
}

// cholesky is the lower factor of a symmetric matrix, or its transpose.
func (l *lowering) cholesky(a array, upper bool) array {
	if a.n() == 0 {
		return a
	}
	n := a.sizes[len(a.sizes)-1]
	if upper {
		a = a.transposed()
	}
	out := l.step(ir.Step{Kind: ir.Cholesky, N: n}, a.sizes, l.g.memory(l.g.ref(a), a.sizes))
	if upper {
		return out.transposed()
	}
	return out
}

// solve solves a·x = b for a triangular a, or x·a = b.
func (l *lowering) solve(a, b array, upper, unit, right bool) array {
	sizes := broadcastSizes(array{sizes: a.sizes[:len(a.sizes)-2]}, array{sizes: b.sizes[:len(b.sizes)-2]})
	n, m := len(a.sizes), len(b.sizes)
	a = a.broadcast(append(slices.Clone(sizes), a.sizes[n-2:]...))
	b = b.broadcast(append(slices.Clone(sizes), b.sizes[m-2:]...))
	if b.n() == 0 {
		return b
	}
	r := len(b.sizes)
	s := ir.Step{Kind: ir.Solve, M: b.sizes[r-2], N: b.sizes[r-1], Upper: upper, Unit: unit, Right: right}
	return l.step(s, b.sizes, l.g.memory(l.g.ref(a), a.sizes), l.g.memory(l.g.ref(b), b.sizes))
}

func (l *lowering) identity(sizes []int) array {
	n := sizes[len(sizes)-1]
	data := make([]float64, n*n)
	for i := range n {
		data[i*n+i] = 1
	}
	return single([]int{n, n}, whole(l.g.constant(data), []int{n, n})).broadcast(sizes)
}
