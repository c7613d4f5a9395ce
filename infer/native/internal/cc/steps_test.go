package cc

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir/irtest"
	"github.com/stretchr/testify/require"
)

// draft puts plans together for tests: constants of normal numbers, and outputs.
type draft struct {
	ir.Plan
	rng *rand.Rand
}

func newDraft(seed uint64) *draft {
	d := &draft{rng: rand.New(rand.NewPCG(seed, 5))}
	d.Dim = 3
	d.Buffers = []ir.Buffer{{Kind: ir.X, Len: 3}, {Kind: ir.Value, Len: 1}, {Kind: ir.Grad, Len: 3}}
	d.step(nil, ir.Instr{Op: ir.Num, Num: 1}, ir.Instr{Op: ir.Store, At: ir.Address{Buf: 1}})
	d.step([]int{3}, ir.Instr{Op: ir.Coord}, ir.Instr{Op: ir.Store, At: ir.Address{Buf: 2, Strides: []int{1}}})
	return d
}

func (d *draft) step(sizes []int, body ...ir.Instr) {
	d.Steps = append(d.Steps, ir.Step{Sizes: sizes, Body: body})
}

func (d *draft) buffer(b ir.Buffer) int {
	d.Buffers = append(d.Buffers, b)
	return len(d.Buffers) - 1
}

func (d *draft) normals(n int) int {
	data := make([]float64, n)
	for i := range data {
		data[i] = d.rng.NormFloat64()
	}
	return d.buffer(ir.Buffer{Kind: ir.Const, Len: n, Data: data})
}

func (d *draft) work(n int) int { return d.buffer(ir.Buffer{Kind: ir.Work, Len: n}) }

func (d *draft) out(n int) int {
	d.Outputs = append(d.Outputs, ir.Slot{Name: fmt.Sprint("out", len(d.Outputs)), Shape: []int{n}})
	return d.buffer(ir.Buffer{Kind: ir.Aux, Len: n, Slot: len(d.Outputs) - 1})
}

// copy makes work visible.
func (d *draft) copy(buf int) {
	n := d.Buffers[buf].Len
	one := []int{1}
	d.step([]int{n}, read(buf, 0, 1), ir.Instr{Op: ir.Store, At: ir.Address{Buf: d.out(n), Strides: one}})
}

func read(buf, off int, strides ...int) ir.Instr {
	return ir.Instr{Op: ir.Load, At: ir.Address{Buf: buf, Off: off, Strides: strides}}
}

func write(op ir.Op, a, buf, off int, strides ...int) ir.Instr {
	return ir.Instr{Op: op, A: a, At: ir.Address{Buf: buf, Off: off, Strides: strides}}
}

func op(o ir.Op, operands ...int) ir.Instr {
	in := ir.Instr{Op: o}
	for i, to := range []*int{&in.A, &in.B, &in.C} {
		if i < len(operands) {
			*to = operands[i]
		}
	}
	return in
}

// reductions keeps any subset of three dimensions and reduces the others, in one loop.
func reductions() *ir.Plan {
	d := newDraft(1)
	sizes := []int{5, 1, 6, 9}
	a := d.normals(5 * 6 * 9)
	body := []ir.Instr{read(a, 0, 54, 0, 9, 1), read(0, 1, 0, 0, 0, 0), op(ir.Mul, 0, 1)}
	for keep := range 8 {
		strides, n := make([]int, 4), 1
		for q, dim := range []int{3, 2, 0} {
			if keep>>q&1 > 0 {
				strides[dim] = n
				n *= sizes[dim]
			}
		}
		for _, o := range []ir.Op{ir.Sum, ir.Prod, ir.MaxOf} {
			body = append(body, write(o, 2, d.out(n), 0, strides...))
		}
	}
	d.step(sizes, body...)
	return &d.Plan
}

// gathers reads and adds through indices that the prologue checks.
func gathers() *ir.Plan {
	d := newDraft(2)
	d.Inputs = []ir.Slot{{Name: "which", Elem: ir.I64, Shape: []int{40}}, {Name: "y", Elem: ir.F32, Shape: []int{40}},
		{Name: "mask", Elem: ir.U8, Shape: []int{40}}}
	which := d.buffer(ir.Buffer{Kind: ir.Input, Elem: ir.I64, Len: 40})
	y := d.buffer(ir.Buffer{Kind: ir.Input, Elem: ir.F32, Len: 40, Slot: 1})
	mask := d.buffer(ir.Buffer{Kind: ir.Input, Elem: ir.U8, Len: 40, Slot: 2})
	index := d.buffer(ir.Buffer{Kind: ir.Prepared, Elem: ir.I32, Len: 40})
	mean := d.buffer(ir.Buffer{Kind: ir.Prepared, Len: 1})
	d.Prologue = []ir.Step{{Sizes: []int{40}, Body: []ir.Instr{read(which, 0, 1),
		{Op: ir.StoreIndex, A: 0, Limit: 7, At: ir.Address{Buf: index, Strides: []int{1}}}}},
		{Sizes: []int{40}, Body: []ir.Instr{read(y, 0, 1), write(ir.Sum, 0, mean, 0, 0)}}}
	table, sums := d.normals(21), d.work(21)
	through := func(o ir.Op, a, buf, off int, extra ...int) ir.Instr {
		return ir.Instr{Op: o, A: a, At: ir.Address{Buf: buf, Off: off, Strides: append(extra, 0), Scale: 3,
			Index: &ir.Address{Buf: index, Strides: append(make([]int, len(extra)), 1)}}}
	}
	d.step([]int{21}, ir.Instr{Op: ir.Num}, write(ir.Store, 0, sums, 0, 1))
	d.step([]int{3, 40}, through(ir.Load, 0, table, 0, 1), read(y, 0, 0, 1), read(mask, 0, 0, 1), op(ir.Mul, 0, 1),
		ir.Instr{Op: ir.Num, Num: -2}, op(ir.Select, 2, 3, 4), read(mean, 0, 0, 0), op(ir.Div, 5, 6),
		through(ir.ScatterAdd, 7, sums, 0, 1), write(ir.Sum, 7, d.out(3), 0, 1, 0))
	d.copy(sums)
	return &d.Plan
}

// orders has loads and stores of one buffer in one loop, which must keep their order.
func orders() *ir.Plan {
	d := newDraft(3)
	a := d.normals(20)
	w := d.work(40)
	d.step([]int{40}, ir.Instr{Op: ir.Coord}, write(ir.Store, 0, w, 0, 1))
	// a running sum, an exchange, and overlapping stores
	d.step([]int{19}, read(w, 0, 1), read(a, 0, 1), op(ir.Add, 0, 1), write(ir.Store, 2, w, 1, 1))
	d.step([]int{10}, read(w, 20, 1), read(w, 30, 1), write(ir.Store, 1, w, 20, 1), write(ir.Store, 0, w, 30, 1))
	d.step([]int{9}, read(a, 0, 1), read(a, 1, 1), write(ir.Store, 0, w, 20, 1), write(ir.Store, 1, w, 21, 1))
	last, kept := d.out(1), d.out(6)
	d.step([]int{6, 20}, read(a, 0, 0, 1), write(ir.Store, 0, last, 0, 0, 0), ir.Instr{Op: ir.Coord, Dim: 0},
		op(ir.Mul, 0, 2), write(ir.Store, 3, kept, 0, 1, 0)) // the last iteration counts
	d.step([]int{20}, read(w, 0, 1), op(ir.Exp, 0), op(ir.Neg, 1), write(ir.Store, 2, w, 0, 1),
		read(w, 0, 1), op(ir.Cos, 4), write(ir.Store, 5, w, 0, 1)) // in place, twice
	d.copy(w)
	return &d.Plan
}

// products multiplies matrices of several layouts and sizes, also more than the library's limit.
func products() *ir.Plan {
	d := newDraft(4)
	for _, s := range [][4]int{{1, 1, 1, 1}, {2, 3, 4, 1}, {1, 7, 9, 3}, {8, 1, 30, 2}, {30, 9, 1, 1}, {25, 20, 18, 1},
		{5, 6, 7, 2}, {3, 2, 40, 1}, {40, 3, 5, 1}, {3, 40, 5, 2}, {20, 20, 19, 1}} {
		m, n, k, r := s[0], s[1], s[2], s[3]
		a, b := d.normals(r*m*k), d.normals(r*k*n)
		for form := range 8 {
			out := d.out(r * m * n)
			step := ir.Step{Kind: ir.MatMul, Sizes: []int{r}, M: m, N: n, K: k}
			matrix := func(buf, rows, cols int, transposed bool) ir.Matrix {
				if transposed {
					return ir.Matrix{Buf: buf, Row: 1, Col: rows, Strides: []int{rows * cols}}
				}
				return ir.Matrix{Buf: buf, Row: cols, Col: 1, Strides: []int{rows * cols}}
			}
			step.A, step.B, step.Out = matrix(a, m, k, form&1 > 0), matrix(b, k, n, form&2 > 0), matrix(out, m, n, form&4 > 0)
			d.Steps = append(d.Steps, step)
		}
	}
	return &d.Plan
}

// triangles factors two matrices, one without a factor, solves in all forms, and scans.
func triangles(n int) *ir.Plan {
	d := newDraft(5)
	g, a := d.normals(2*n*n), d.work(2*n*n)
	d.Steps = append(d.Steps, ir.Step{Kind: ir.MatMul, Sizes: []int{2}, M: n, N: n, K: n,
		A:   ir.Matrix{Buf: g, Row: n, Col: 1, Strides: []int{n * n}},
		B:   ir.Matrix{Buf: g, Row: 1, Col: n, Strides: []int{n * n}},
		Out: ir.Matrix{Buf: a, Row: n, Col: 1, Strides: []int{n * n}}})
	d.step(nil, ir.Instr{Op: ir.Num, Num: -1}, write(ir.Store, 0, a, n*n+(n-1)*(n+1)))
	factor := d.out(2 * n * n)
	d.Steps = append(d.Steps, ir.Step{Kind: ir.Cholesky, Sizes: []int{2}, N: n,
		A:   ir.Matrix{Buf: a, Row: n, Col: 1, Strides: []int{n * n}},
		Out: ir.Matrix{Buf: factor, Row: n, Col: 1, Strides: []int{n * n}}})
	shifted := d.work(n * n)
	d.step([]int{n, n}, read(g, 0, n, 1), ir.Instr{Op: ir.Coord, Dim: 0}, ir.Instr{Op: ir.Coord, Dim: 1}, op(ir.Eq, 1, 2),
		ir.Instr{Op: ir.Num, Num: float64(n)}, op(ir.Mul, 3, 4), op(ir.Add, 0, 5), write(ir.Store, 6, shifted, 0, n, 1))
	for form := range 8 {
		for _, lines := range []int{1, 3, 8, 19} {
			s := ir.Step{Kind: ir.Solve, Upper: form&1 > 0, Unit: form&2 > 0, Right: form&4 > 0, M: n, N: lines}
			if s.Right {
				s.M, s.N = lines, n
			}
			s.A = ir.Matrix{Buf: shifted, Row: n, Col: 1}
			s.B = ir.Matrix{Buf: d.normals(n * lines), Row: s.N, Col: 1}
			s.Out = ir.Matrix{Buf: d.out(n * lines), Row: 1, Col: s.M}
			d.Steps = append(d.Steps, s)
		}
	}
	for _, product := range []bool{false, true} {
		d.Steps = append(d.Steps, ir.Step{Kind: ir.Scan, Sizes: []int{2}, N: n, Product: product,
			A: ir.Matrix{Buf: g, Col: 2, Strides: []int{1}}, Out: ir.Matrix{Buf: d.out(2 * n), Col: 1, Strides: []int{n}}})
	}
	return &d.Plan
}

// Every kind of step gives in C what ir.Machine gives.
func TestSteps(t *testing.T) {
	plans := []*ir.Plan{reductions(), gathers(), orders(), products(), triangles(2), triangles(7), triangles(20)}
	inputs := make([][][]float64, len(plans))
	rng := rand.New(rand.NewPCG(8, 9))
	for range 3 {
		inputs[1] = append(inputs[1], make([]float64, 40))
	}
	for i := range 40 {
		inputs[1][0][i], inputs[1][2][i] = float64(rng.IntN(7)), float64(rng.IntN(2))
		inputs[1][1][i] = float64(float32(rng.NormFloat64()))
	}
	x := []float64{0.3, -1.2, 2}
	var cases []irtest.Case
	for i, p := range plans {
		c := irtest.Case{Name: fmt.Sprint("plan ", i), Plan: p, X: x, Weight: 0.5, Inputs: inputs[i]}
		cases = append(cases, c)
		c.X = []float64{0.3, math.NaN(), 2} // which reaches every sum of the first plan
		cases = append(cases, c)
	}
	differential(t, cases)
}

// An index out of range is found by the prologue, which says where.
func TestIndexOutOfRange(t *testing.T) {
	p := gathers()
	e := compileAll(t, []*ir.Plan{p})[0]
	for _, bad := range []float64{-1, 7, 1 << 40} {
		inputs := [][]float64{make([]float64, 40), make([]float64, 40), make([]float64, 40)}
		inputs[0][17] = bad
		m := irtest.NewMemory(e, irtest.Case{Plan: p, X: make([]float64, 3), Inputs: inputs})
		require.ErrorContains(t, m.Prepare(), "step 0", "the index %v", bad)
		m.Close()
	}
}

func TestRefused(t *testing.T) {
	d := newDraft(1)
	w := d.work(1)
	d.step([]int{4}, read(0, 0, 0), write(ir.Sum, 0, w, 0, 0), read(w, 0, 0), write(ir.Store, 2, d.out(1), 0, 0))
	_, err := Emit(&d.Plan)
	var unsupported *UnsupportedError
	require.ErrorAs(t, err, &unsupported)
	require.Equal(t, 2, unsupported.Step)

	d = newDraft(1)
	for range maxInstructions {
		d.step([]int{3}, read(0, 0, 1), write(ir.Sum, 0, 1, 0, 0))
	}
	_, err = Emit(&d.Plan)
	var large *TooLargeError
	require.ErrorAs(t, err, &large)
}
