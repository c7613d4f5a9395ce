package ir

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"
)

// normal is -½ Σ (y_i - x_0)² with its gradient, where y is data.
func normal(y []float64) *Plan {
	n := len(y)
	return &Plan{Dim: 1, Buffers: []Buffer{{Kind: X, Len: 1}, {Kind: Const, Len: n, Data: y}, {Kind: Work, Len: 1},
		{Kind: Value, Len: 1}, {Kind: Grad, Len: 1}},
		Steps: []Step{
			{Sizes: []int{n}, Body: []Instr{
				{Op: Load, At: Address{Buf: 1, Strides: []int{1}}},
				{Op: Load, At: Address{Buf: 0, Strides: []int{0}}},
				{Op: Sub, A: 0, B: 1},
				{Op: Mul, A: 2, B: 2},
				{Op: Sum, A: 3, At: Address{Buf: 2, Strides: []int{0}}},
				{Op: Sum, A: 2, At: Address{Buf: 4, Strides: []int{0}}},
			}},
			{Body: []Instr{
				{Op: Num, Num: -0.5},
				{Op: Load, At: Address{Buf: 2}},
				{Op: Mul, A: 0, B: 1},
				{Op: Store, A: 2, At: Address{Buf: 3}},
			}},
		}}
}

func TestMachineLoop(t *testing.T) {
	p := normal([]float64{1, 2, 4})
	require.NoError(t, p.Check())
	grad := make([]float64, 1)
	m, err := NewMachine(p, nil)
	require.NoError(t, err)
	value := m.Eval([]float64{3}, 0, grad, nil)
	assert.Equal(t, -0.5*(4+1+1), value)
	assert.Equal(t, -2.0-1+1, grad[0])
}

func TestCheckRefuses(t *testing.T) {
	for name, spoil := range map[string]func(*Plan){
		"an element outside":    func(p *Plan) { p.Steps[0].Body[0].At.Strides[0] = 2 },
		"an element before":     func(p *Plan) { p.Steps[0].Body[0].At.Off = -1 },
		"a later operand":       func(p *Plan) { p.Steps[0].Body[2].B = 3 },
		"a store as an operand": func(p *Plan) { p.Steps[0].Body[5].A = 4 },
		"a write to x":          func(p *Plan) { p.Steps[1].Body[3].At.Buf = 0 },
		"a write to a constant": func(p *Plan) { p.Steps[1].Body[3].At.Buf = 1 },
		"missing data":          func(p *Plan) { p.Buffers[1].Len = 4 },
		"an empty loop":         func(p *Plan) { p.Steps[0].Sizes[0] = 0 },
		"x in the prologue":     func(p *Plan) { p.Prologue = p.Steps[:1] },
		"no dimension":          func(p *Plan) { p.Dim = 0 },
		"a missing stride":      func(p *Plan) { p.Steps[0].Body[0].At.Strides = nil },
		"an unknown buffer":     func(p *Plan) { p.Steps[0].Body[0].At.Buf = 9 },
	} {
		p := normal([]float64{1, 2, 4})
		spoil(p)
		assert.Error(t, p.Check(), name)
	}
}

// output is the one output of a plan of one parameter.
func output(t *testing.T, p *Plan) []float64 {
	require.NoError(t, p.Check())
	m, err := NewMachine(p, nil)
	require.NoError(t, err)
	out := [][]float64{make([]float64, p.Outputs[0].Len())}
	m.Eval([]float64{0}, 0, []float64{0}, out)
	return out[0]
}

// The factor times its transpose is the matrix, and solving undoes multiplying, for every form of a triangle.
func TestMachineMatrices(t *testing.T) {
	const n, m = 5, 3
	rng := rand.New(rand.NewPCG(1, 2))
	g := mat.NewDense(n, n, nil)
	for i := range n {
		for j := range n {
			g.Set(i, j, rng.NormFloat64())
		}
	}
	var spd mat.Dense
	spd.Mul(g, g.T())
	square := func(buf int) Matrix { return Matrix{Buf: buf, Row: n, Col: 1} }
	p := &Plan{Dim: 1, Buffers: []Buffer{{Kind: Const, Len: n * n, Data: spd.RawMatrix().Data}, {Kind: Aux, Len: n * n}},
		Outputs: []Slot{{Shape: []int{n, n}}},
		Steps:   []Step{{Kind: Cholesky, N: n, A: square(0), Out: square(1)}}}
	factor := mat.NewDense(n, n, output(t, p))
	var back mat.Dense
	back.Mul(factor, factor.T())
	assert.True(t, mat.EqualApprox(&back, &spd, 1e-13))

	for form := range 8 {
		upper, unit, right := form&1 > 0, form&2 > 0, form&4 > 0
		a := mat.NewDense(n, n, nil)
		for i := range n {
			for j := range n {
				switch {
				case i == j && unit:
					a.Set(i, j, 1)
				case i == j, (i < j) == upper:
					a.Set(i, j, 2+rng.Float64())
				}
			}
		}
		rows, cols := n, m
		if right {
			rows, cols = m, n
		}
		x := mat.NewDense(rows, cols, nil)
		for i := range rows {
			for j := range cols {
				x.Set(i, j, rng.NormFloat64())
			}
		}
		var b mat.Dense
		if right {
			b.Mul(x, a)
		} else {
			b.Mul(a, x)
		}
		// What lies outside the triangle must not be read.
		for i := range n {
			for j := range n {
				if i != j && (i < j) != upper || i == j && unit {
					a.Set(i, j, math.NaN())
				}
			}
		}
		wide := Matrix{Row: cols, Col: 1}
		in, out := wide, wide
		in.Buf, out.Buf = 1, 2
		p := &Plan{Dim: 1, Buffers: []Buffer{{Kind: Const, Len: n * n, Data: a.RawMatrix().Data},
			{Kind: Const, Len: n * m, Data: b.RawMatrix().Data}, {Kind: Aux, Len: n * m}},
			Outputs: []Slot{{Shape: []int{n, m}}},
			Steps: []Step{{Kind: Solve, M: rows, N: cols, A: square(0), B: in, Out: out,
				Upper: upper, Unit: unit, Right: right}}}
		assert.InDeltaSlice(t, x.RawMatrix().Data, output(t, p), 1e-12, "form %d", form)
	}
}

// References are of DLMF: ψ(1) = -γ, ψ'(1) = π²/6, ψ'(½) = π²/2, ψ'(-½) = π²/2 + 4, and tables of erfcx and of the
// scaled Bessel functions made with 50 digits.
func TestSpecialFunctions(t *testing.T) {
	for _, c := range []struct {
		op      Op
		x, want float64
	}{
		{Digamma, 1, -0.57721566490153286}, {Trigamma, 1, math.Pi * math.Pi / 6}, {Trigamma, 0.5, math.Pi * math.Pi / 2},
		{Trigamma, -0.5, math.Pi*math.Pi/2 + 4}, {Erfcx, 1, 0.42758357615580700}, {Erfcx, 30, 0.018795888861416751},
		{I0e, 1, 0.46575960759364044}, {I1e, 1, 0.20791041534970845}, {I1e, -1, -0.20791041534970845},
		{I0e, 50, 0.056561626647454193},
	} {
		assert.InEpsilon(t, c.want, Apply(c.op, c.x, 0, 0), 1e-14, "op %d at %v", c.op, c.x)
	}
	nan := math.NaN()
	assert.True(t, math.IsNaN(Apply(Max, nan, 1, 0)))
	assert.True(t, math.IsNaN(Apply(Min, 1, nan, 0)))
	assert.Equal(t, 1.0, Apply(Rem, -5, 3, 0))
	assert.InEpsilon(t, -1074*math.Ln2, Apply(Log, 5e-324, 0, 0), 1e-15)
	assert.InEpsilon(t, math.Exp2(-107.4), Apply(Pow, 5e-324, 0.1, 0), 1e-14)
	assert.Equal(t, -math.Pi, Apply(Atan2, -1e-300, -1e300, 0))
}
