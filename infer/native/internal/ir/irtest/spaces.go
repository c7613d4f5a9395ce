package irtest

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
)

// addresses: strides of every kind, types of elements, and indices.
func addresses() []Case {
	var all []Case
	for _, sizes := range [][]int{{3, 5}, {40, 30}, {1, 7}, {7, 1}, {300, 3}, {3, 300}, {2, 3, 4}, {5, 7, 31}, {31, 2, 33},
		{2, 300, 2}, {4, 3, 2, 5}, {1, 1, 1}, {900}, {17, 257}} {
		b := NewBuilder(fmt.Sprint("addresses ", sizes), 2, 3)
		n := ir.Iterations(sizes)
		dims := len(sizes)
		rows, columns, back, none := contiguous(sizes), make([]int, dims), make([]int, dims), make([]int, dims)
		s := 1
		for d := range dims {
			columns[d], back[d] = s, -rows[d]
			s *= sizes[d]
		}
		data := b.Const(numbers(7, 2*n+3)...)
		f32 := numbers(8, n)
		truths, whole := numbers(9, n), numbers(10, n)
		for i := range f32 {
			f32[i] = float64(float32(f32[i]))
			truths[i] = float64(i * i % 3 / 2)
			whole[i] = math.Round(1e6 * whole[i])
		}
		single, integer, truth := b.Input(ir.F32, f32...), b.Input(ir.I64, whole...), b.Input(ir.U8, truths...)
		double := b.Input(ir.F64, numbers(12, n)...)
		double2 := make([]int, dims)
		for d := range dims {
			double2[d] = 2 * rows[d]
		}
		b.Loop(sizes, func(k *Body) {
			values := []int{k.Load(data, 0, rows...), k.Load(data, 3, rows...), k.Load(data, 0, columns...),
				k.Load(data, n-1, back...), k.Load(data, 2, none...), k.Load(data, 1, double2...), k.Load(single, 0, rows...),
				k.Load(single, 0, columns...), k.Load(integer, 0, rows...), k.Load(truth, 0, columns...), k.Load(truth, 0, rows...),
				k.Load(double, n-1, back...), k.Load(integer, 0, none...)}
			for d := range dims {
				one, only := append([]int{}, rows...), append([]int{}, none...)
				one[d], only[d] = 0, 2
				values = append(values, k.Coord(d), k.Load(data, 0, one...), k.Load(data, 1, only...))
			}
			for i, v := range values {
				to := [][]int{rows, columns, back}[i%3]
				off := []int{0, 0, n - 1}[i%3]
				k.Write(ir.Store, v, b.Aux(n), off, to...)
			}
			sum := values[0]
			for _, v := range values[1:] {
				sum = k.Op(ir.Add, k.Op(ir.Mul, k.Num(0.5), sum), v)
			}
			k.Write(ir.Store, sum, b.Aux(2*n), 1, double2...)
			k.Write(ir.Store, k.Load(data, 2, none...), b.Aux(n), 0, columns...)
			k.Write(ir.Store, sum, b.Aux(1), 0, none...)
		})
		all = append(all, fill(b.Case), indices(sizes, rows, columns, none))
	}
	return all
}

// contiguous are the strides of a space that lies row by row.
func contiguous(sizes []int) []int {
	strides, s := make([]int, len(sizes)), 1
	for d := len(sizes) - 1; d >= 0; d-- {
		strides[d] = s
		s *= sizes[d]
	}
	return strides
}

func indices(sizes, rows, columns, none []int) Case {
	n := ir.Iterations(sizes)
	b := NewBuilder(fmt.Sprint("indices ", sizes), 2, 3)
	const limit = 11
	list := make([]float64, n)
	for i := range list {
		list[i] = float64(i * 7 % limit)
	}
	fixed := b.Index(list...)
	in, prepared, far := b.Input(ir.I64, list...), b.PreparedIndex(n), b.PreparedIndex(n)
	b.Before([]int{n}, func(k *Body) {
		v := k.Load(in, 0, 1)
		k.StoreIndex(v, prepared, limit, 0, 1)
		k.StoreIndex(k.Op(ir.Sub, k.Num(limit-1), v), far, limit, n-1, -1)
	})
	table := b.Const(numbers(13, 4*limit+n)...)
	single := b.Input(ir.F32, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
	counts, sums := b.Aux(limit), b.Aux(4*limit)
	b.Loop([]int{limit}, func(k *Body) { k.Write(ir.Store, k.Num(0), counts, 0, 1) })
	b.Loop([]int{4 * limit}, func(k *Body) { k.Write(ir.Store, k.Coord(0), sums, 0, 1) })
	b.Loop(sizes, func(k *Body) {
		values := []int{k.Gather(table, 0, none, 1, at(fixed, 0, rows)), k.Gather(table, 0, none, 3, at(prepared, 0, rows)),
			k.Gather(table, 1, rows, 4, at(far, 0, columns)), k.Gather(table, 0, columns, 2, at(fixed, 0, none)),
			k.Gather(single, 0, none, 1, at(far, 0, rows)), k.Gather(table, 4*(limit-1), none, -4, at(far, 0, rows)),
			k.Load(far, 0, columns...), k.Load(fixed, 0, rows...)}
		for _, v := range values {
			k.Write(ir.Store, v, b.Aux(n), 0, rows...)
		}
		k.Scatter(k.Num(1), counts, 0, none, 1, at(prepared, 0, rows))
		k.Scatter(values[2], sums, 2, none, 4, at(far, 0, columns))
	})
	return b.Finish()
}

// reductions: every choice of kept dimensions of spaces of up to four, their order in memory, and all three kinds.
func reductions() []Case {
	var all []Case
	for _, sizes := range [][]int{{700}, {3, 5}, {5, 3}, {300, 4}, {4, 300}, {50, 50}, {2, 3, 4}, {70, 3, 5}, {5, 3, 70},
		{3, 70, 5}, {2, 257, 3}, {3, 2, 513}, {2, 3, 4, 5}, {1, 6, 1, 50}, {768, 8}, {300, 16}, {20, 300}} {
		dims := len(sizes)
		n := ir.Iterations(sizes)
		b := NewBuilder(fmt.Sprint("reductions ", sizes), 1.5)
		data := b.Const(numbers(14, n)...)
		rows, none := contiguous(sizes), make([]int, dims)
		for kept := range 1 << dims {
			for order := range 2 {
				strides := make([]int, dims)
				length := 1
				for q := range dims {
					d := q
					if order == 0 {
						d = dims - 1 - q
					}
					if kept>>d&1 == 1 {
						if sizes[d] > 1 {
							strides[d] = length
						}
						length *= sizes[d]
					}
				}
				b.Loop(sizes, func(k *Body) {
					v, w := k.Load(data, 0, rows...), k.Load(b.x, 0, none...)
					k.Write(ir.Sum, v, b.Aux(length), 0, strides...)
					k.Write(ir.Sum, k.Op(ir.Mul, v, k.Op(ir.Sin, v)), b.Aux(length), 0, strides...)
					k.Write(ir.Sum, w, b.Aux(length), 0, strides...)
					k.Write(ir.Prod, k.Op(ir.Cos, k.Op(ir.Mul, v, k.Num(0.01))), b.Aux(length), 0, strides...)
					k.Write(ir.MaxOf, v, b.Aux(length), 0, strides...)
					most := k.Op(ir.Select, k.Op(ir.Lt, v, k.Num(2.5)), v, k.Num(math.NaN()))
					k.Write(ir.MaxOf, most, b.Aux(length), 0, strides...)
				})
			}
		}
		all = append(all, b.Finish())
	}
	return all
}

// matrices: products, factors, triangular systems and scans, in all forms and some layouts.
func matrices() []Case {
	var all []Case
	for _, d := range [][3]int{{1, 1, 1}, {2, 3, 4}, {5, 1, 7}, {1, 6, 5}, {768, 1, 8}, {8, 1, 768}, {1, 8, 768},
		{17, 19, 23}, {64, 64, 64}, {33, 70, 130}, {9, 2, 300}, {2, 9, 300}, {100, 3, 3}, {50, 27, 600}} {
		b := NewBuilder(fmt.Sprint("product ", d), 1)
		m, n, k := d[0], d[1], d[2]
		a, c := b.Const(numbers(15, 2*m*k)...), b.Const(numbers(16, 2*k*n)...)
		for form := range 8 {
			left := ir.Matrix{Buf: a, Row: k, Col: 1, Strides: []int{m * k}}
			right := ir.Matrix{Buf: c, Row: n, Col: 1, Strides: []int{k * n}}
			out := ir.Matrix{Buf: b.Aux(2 * m * n), Row: n, Col: 1, Strides: []int{m * n}}
			if form&1 > 0 {
				left.Row, left.Col = 1, m
			}
			if form&2 > 0 {
				right.Row, right.Col = 1, k
			}
			if form&4 > 0 {
				out.Row, out.Col = 1, m
			}
			b.Step(ir.Step{Kind: ir.MatMul, Sizes: []int{2}, M: m, N: n, K: k, A: left, B: right, Out: out})
		}
		all = append(all, b.Finish())
	}
	for _, n := range []int{1, 2, 3, 5, 8, 11, 16, 33, 70} {
		all = append(all, factor(n), triangles(n, 3))
	}
	for _, n := range []int{3, 24, 50, 300} {
		all = append(all, triangularProducts(n))
	}
	for _, n := range []int{24, 50, 300} { // large ones have kernels of their own, which work on chunks of 256
		all = append(all, factor(n), triangles(n, 8), triangles(n, 43))
	}
	for _, n := range []int{1, 2, 9, 100} {
		b := NewBuilder(fmt.Sprint("scan ", n), 1)
		a := b.Const(numbers(17, 3*n)...)
		for _, product := range []bool{false, true} {
			b.Step(ir.Step{Kind: ir.Scan, Sizes: []int{3}, N: n, Product: product,
				A:   ir.Matrix{Buf: a, Col: 1, Strides: []int{n}},
				Out: ir.Matrix{Buf: b.Aux(3 * n), Off: n - 1, Col: -1, Strides: []int{n}}})
			b.Step(ir.Step{Kind: ir.Scan, Sizes: []int{3}, N: n, Product: product,
				A:   ir.Matrix{Buf: a, Col: 3, Strides: []int{1}},
				Out: ir.Matrix{Buf: b.Aux(3 * n), Col: 3, Strides: []int{1}}})
		}
		all = append(all, b.Finish())
	}
	return all
}

// definite is the symmetric matrix with elements exp(-(i-j)²/8) and 1.1 on the diagonal. Its upper triangle is NaN.
func definite(n int) []float64 {
	v := make([]float64, n*n)
	for i := range n {
		for j := range n {
			v[i*n+j] = math.Exp(-float64((i-j)*(i-j)) / 8)
			if i == j {
				v[i*n+j] = 1.1
			} else if j > i {
				v[i*n+j] = math.NaN()
			}
		}
	}
	return v
}

func factor(n int) Case {
	b := NewBuilder(fmt.Sprint("factor ", n), 1)
	good, bad := definite(n), definite(n)
	bad[n/2*n+n/2] = -1
	a := b.Const(append(good, bad...)...)
	b.Step(ir.Step{Kind: ir.Cholesky, Sizes: []int{2}, N: n, A: ir.Matrix{Buf: a, Row: n, Col: 1, Strides: []int{n * n}},
		Out: ir.Matrix{Buf: b.Aux(2 * n * n), Row: n, Col: 1, Strides: []int{n * n}}})
	b.Step(ir.Step{Kind: ir.Cholesky, N: n, A: ir.Matrix{Buf: a, Row: n, Col: 1},
		Out: ir.Matrix{Buf: b.Aux(n * n), Row: 1, Col: n}})
	return b.Finish()
}

// triangularProducts are products of an upper triangle, of which the lower one is wanted, and both.
func triangularProducts(n int) Case {
	b := NewBuilder(fmt.Sprint("triangular products ", n), 1)
	a := numbers(21, n*n)
	for i := range n {
		clear(a[i*n : i*n+i])
	}
	left, right := b.Const(a...), b.Const(numbers(22, n*n)...)
	for form := range 4 {
		b.Step(ir.Step{Kind: ir.MatMul, M: n, N: n, K: n, A: ir.Matrix{Buf: left, Row: n, Col: 1},
			B: ir.Matrix{Buf: right, Row: 1, Col: n}, Out: ir.Matrix{Buf: b.Aux(n * n), Row: n, Col: 1},
			Upper: form&1 > 0, Lower: form&2 > 0})
	}
	return b.Finish()
}

func triangles(n, lines int) Case {
	b := NewBuilder(fmt.Sprint("triangles ", n, " ", lines), 1)
	for form := range 32 {
		upper, unit, right := form&1 > 0, form&2 > 0, form&4 > 0
		a := make([]float64, 2*n*n)
		for s := range 2 {
			for i := range n {
				for j := range n {
					v := &a[s*n*n+i*n+j]
					switch {
					case i == j && !unit:
						*v = 2 + 0.1*float64(i)
					case i != j && (i < j) == upper:
						*v = math.Sin(float64(1+i+3*j+s)) / float64(n)
					default:
						*v = math.NaN() // must not be read
					}
				}
			}
		}
		rows, cols := n, lines
		if right {
			rows, cols = lines, n
		}
		square := ir.Matrix{Buf: b.Const(a...), Row: n, Col: 1, Strides: []int{n * n}}
		if form&8 > 0 {
			for s := range 2 {
				for i := range n {
					for j := range i {
						p, q := &a[s*n*n+i*n+j], &a[s*n*n+j*n+i]
						*p, *q = *q, *p
					}
				}
			}
			square.Row, square.Col = 1, n
		}
		in := ir.Matrix{Buf: b.Const(numbers(18, rows*cols)...), Row: cols, Col: 1, Strides: []int{0}}
		out := ir.Matrix{Buf: b.Aux(2 * rows * cols), Row: cols, Col: 1, Strides: []int{rows * cols}}
		if form&16 > 0 {
			out.Row, out.Col = 1, rows
		}
		b.Step(ir.Step{Kind: ir.Solve, Sizes: []int{2}, M: rows, N: cols, A: square, B: in, Out: out,
			Upper: upper, Unit: unit, Right: right})
	}
	return b.Finish()
}
