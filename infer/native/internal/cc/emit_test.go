package cc

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/cc/cctest"
	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
	"github.com/stretchr/testify/require"
)

// compileAll makes functions of many plans with one run of the compiler.
func compileAll(t testing.TB, plans []*ir.Plan) []*cctest.Function {
	t.Helper()
	c, err := Find()
	if err != nil {
		t.Skip(err)
	}
	var text strings.Builder
	text.WriteString(preamble())
	for i, p := range plans {
		require.NoError(t, p.Check(), "plan %d", i)
		suffix := fmt.Sprint("_", i)
		if i == 0 {
			suffix = ""
		}
		body, err := emitPlan(p, suffix)
		require.NoError(t, err, "plan %d", i)
		text.WriteString(body)
	}
	object, err := c.object(text.String(), 5*time.Minute)
	require.NoError(t, err)
	program, err := load(object)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, program.Close()) })
	functions := make([]*cctest.Function, len(plans))
	for i, p := range plans {
		prologue, main := program.Prologue, program.Main
		if i > 0 {
			prologue, err = program.symbol(fmt.Sprint("kelvin_prologue_", i))
			require.NoError(t, err)
			main, err = program.symbol(fmt.Sprint("kelvin_main_", i))
			require.NoError(t, err)
		}
		functions[i] = cctest.New(p, prologue, main, i%2 > 0)
		t.Cleanup(functions[i].Free)
	}
	return functions
}

// outputs are all numbers that an evaluation gives.
type evaluator interface {
	Prepare([][]float64) error
	Eval(x []float64, weight float64, grad []float64, aux [][]float64) (float64, error)
}

func outputs(t testing.TB, p *ir.Plan, e evaluator, inputs [][]float64, x []float64, weight float64) []float64 {
	t.Helper()
	require.NoError(t, e.Prepare(inputs))
	grad := make([]float64, p.Dim)
	var aux [][]float64
	for _, s := range p.Outputs {
		n := 1
		for _, k := range s.Shape {
			n *= int(k)
		}
		aux = append(aux, make([]float64, n))
	}
	v, err := e.Eval(x, weight, grad, aux)
	require.NoError(t, err)
	all := []float64{v}
	has := false
	for _, b := range p.Buffers {
		has = has || b.Kind == ir.Grad
	}
	if has {
		all = append(all, grad...)
	}
	for _, a := range aux {
		all = append(all, a...)
	}
	return all
}

// agree compares two evaluations: equal infinities and NaN, numbers to a tolerance relative to the largest of them.
func agree(t testing.TB, want, got []float64, tolerance float64, name string) {
	t.Helper()
	require.Len(t, got, len(want))
	scale := 0.0
	for _, w := range want {
		if w-w == 0 {
			scale = math.Max(scale, math.Abs(w))
		}
	}
	for i, w := range want {
		g := got[i]
		switch {
		case w != w && g != g, w == g:
		case w-w != 0 || g-g != 0 || math.Abs(w-g) > tolerance*scale:
			t.Errorf("%s: element %d is %v, want %v", name, i, g, w)
		}
	}
}

// special are points where functions have their corners.
var special = []float64{0, math.Copysign(0, -1), 1, -1, 2, -2, 0.5, -0.5, 3, 1e-8, -1e-8, 1e-300, 5e-324, 30, -30, 700, -700, 800,
	-800, 1e10, -1e10, 1e200, -1e200, 1e308, math.Inf(1), math.Inf(-1), math.NaN(), 1.5, 2.5, -1.5, -2.5, 0.999, 8, 1e-160}

// pointwise is a plan that applies an operation to constants, in a loop and outside of one.
func pointwise(op ir.Op, args [][3]float64) *ir.Plan {
	n := len(args)
	p := &ir.Plan{Dim: 1, Outputs: []ir.Slot{{Name: "y", Shape: []int64{int64(n)}}, {Name: "z", Shape: []int64{int64(n)}}}}
	load := func(buf int, at ir.Address) ir.Instr { at.Buf = buf; return ir.Instr{Op: ir.Load, At: at} }
	for c := range 3 {
		data := make([]float64, n)
		for i, a := range args {
			data[i] = a[c]
		}
		p.Buffers = append(p.Buffers, ir.Buffer{Kind: ir.Const, Len: n, Data: data})
	}
	p.Buffers = append(p.Buffers, ir.Buffer{Kind: ir.Aux, Len: n}, ir.Buffer{Kind: ir.Aux, Len: n, Slot: 1},
		ir.Buffer{Kind: ir.Value, Len: 1}, ir.Buffer{Kind: ir.Grad, Len: 1})
	one := ir.Address{Strides: []int{1}}
	p.Steps = append(p.Steps, ir.Step{Sizes: []int{n}, Body: []ir.Instr{load(0, one), load(1, one), load(2, one),
		{Op: op, A: 0, B: 1, C: 2}, {Op: ir.Store, A: 3, At: ir.Address{Buf: 3, Strides: []int{1}}}}})
	for i := range n {
		at := ir.Address{Off: i}
		p.Steps = append(p.Steps, ir.Step{Body: []ir.Instr{load(0, at), load(1, at), load(2, at),
			{Op: op, A: 0, B: 1, C: 2}, {Op: ir.Store, A: 3, At: ir.Address{Buf: 4, Off: i}}}})
	}
	p.Steps = append(p.Steps, ir.Step{Body: []ir.Instr{{Op: ir.Num, Num: 1}, {Op: ir.Store, At: ir.Address{Buf: 5}},
		{Op: ir.Store, At: ir.Address{Buf: 6}}}})
	return p
}

// Every operation gives in C what the interpreter gives, corners included.
func TestPointwise(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var plans []*ir.Plan
	var ops []ir.Op
	for op := ir.Neg; op <= ir.Select; op++ {
		if (op == ir.Digamma || op == ir.Trigamma || op == ir.Erfcx || op == ir.Erfinv || op == ir.I0e || op == ir.I1e) && testing.Short() {
			continue
		}
		var args [][3]float64
		binary := op >= ir.Add
		for _, a := range special {
			if !binary {
				args = append(args, [3]float64{a})
				continue
			}
			for range 4 {
				args = append(args, [3]float64{a, special[rng.IntN(len(special))], rng.NormFloat64()})
			}
		}
		for range 20 {
			args = append(args, [3]float64{3 * rng.NormFloat64(), 3 * rng.NormFloat64(), rng.NormFloat64()})
		}
		plans, ops = append(plans, pointwise(op, args)), append(ops, op)
	}
	for i, f := range compileAll(t, plans) {
		want := outputs(t, plans[i], ir.NewMachine(plans[i]), nil, []float64{0}, 0)
		got := outputs(t, plans[i], f, nil, []float64{0}, 0)
		n := len(plans[i].Buffers[0].Data)
		for k, w := range want[2:] {
			g, arg := got[2+k], k%n
			if w != w && g != g || w == g || math.Abs(w-g) <= 1e-14*math.Abs(w) {
				continue
			}
			t.Errorf("op %d (%v, %v, %v): %v, want %v (in a loop: %v)", ops[i], plans[i].Buffers[0].Data[arg],
				plans[i].Buffers[1].Data[arg], plans[i].Buffers[2].Data[arg], g, w, k < n)
		}
	}
}
