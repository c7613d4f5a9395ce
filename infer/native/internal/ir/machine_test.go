//go:build cgo

package ir_test

import (
	"testing"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir/irtest"
	"github.com/kelvin-ppl/kelvin/infer/native/internal/vm"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// agree compares the machine with the virtual machine, and with itself at a second evaluation. Sums are added up in
// another order.
func agree(t *testing.T, c irtest.Case) {
	p, err := vm.Compile(c.Plan)
	require.NoError(t, err, c.Name)
	defer p.Close()
	want, err := irtest.Run(irtest.Entry{Prologue: p.Prologue(), Main: p.Main(), Self: p.Self(), Extra: p.Work()}, c)
	require.NoError(t, err, c.Name)
	m, err := ir.NewMachine(c.Plan, c.Inputs)
	require.NoError(t, err, c.Name)
	var first irtest.Result
	for again := range 2 {
		got := irtest.Result{Grad: make([]float64, len(c.X))}
		for _, s := range c.Plan.Outputs {
			got.Aux = append(got.Aux, make([]float64, s.Len()))
		}
		got.Value = m.Eval(c.X, c.Weight, got.Grad, got.Aux)
		if again == 0 {
			first = got
		}
		require.NoError(t, irtest.Differ(got, first, 0), c.Name)
	}
	require.NoError(t, irtest.Differ(first, want, 2e-11), c.Name)
}

func TestCases(t *testing.T) {
	for _, c := range append(irtest.Cases(), irtest.Divergent()) {
		t.Run(c.Name, func(t *testing.T) { agree(t, c) })
	}
}

func TestRandom(t *testing.T) {
	for seed := range uint64(2000) {
		agree(t, irtest.Random(seed))
	}
}

// Many evaluations at once are those one by one. Sums may be added up in another order.
func TestMany(t *testing.T) {
	cases := append(irtest.Cases(), irtest.Divergent())
	for seed := range uint64(500) {
		cases = append(cases, irtest.Random(seed))
	}
	compared := 0
	for _, c := range cases {
		const n = 3
		many := c.Plan.Many(n)
		require.NoError(t, many.Check(), c.Name)
		one, err := ir.NewMachine(c.Plan, c.Inputs)
		require.NoError(t, err, c.Name)
		all, err := ir.NewMachine(many, c.Inputs)
		require.NoError(t, err, c.Name)
		room := func(p *ir.Plan) (aux [][]float64) {
			for _, s := range p.Outputs {
				aux = append(aux, make([]float64, s.Len()))
			}
			return aux
		}
		x, want := make([]float64, n*len(c.X)), room(many)
		for k := range n {
			at, aux := make([]float64, len(c.X)), room(c.Plan)
			for i, v := range c.X {
				at[i] = v * (1 + 0.01*float64(k))
			}
			one.Eval(at, c.Weight, make([]float64, len(at)), aux)
			for i, v := range at {
				x[i*n+k] = v
			}
			for i, a := range aux {
				compared += copy(want[i][k*len(a):], a)
			}
		}
		got := room(many)
		all.Eval(x, c.Weight, make([]float64, len(x)), got)
		require.NoError(t, irtest.Differ(irtest.Result{Aux: got}, irtest.Result{Aux: want}, 2e-11), c.Name)
	}
	require.Greater(t, compared, 1000)
}

// Round reaches what each kind of step computes: with a larger number in the place of each, outputs differ.
func TestRound(t *testing.T) {
	for _, c := range irtest.Cases() {
		want, err := irtest.Reference(c)
		require.NoError(t, err)
		m, err := ir.NewMachine(c.Plan, c.Inputs)
		require.NoError(t, err)
		m.Round = func(x float64) float64 { return x * (1 + 0x1p-40) }
		aux := make([][]float64, len(c.Plan.Outputs))
		for i, s := range c.Plan.Outputs {
			aux[i] = make([]float64, s.Len())
		}
		m.Eval(c.X, c.Weight, make([]float64, len(c.X)), aux)
		for _, s := range c.Plan.Steps {
			b := c.Plan.Buffers[s.Out.Buf]
			if s.Kind == ir.Loop || s.N == 1 || b.Kind != ir.Aux {
				continue
			}
			got, had := irtest.Result{Aux: aux[b.Slot : b.Slot+1]}, irtest.Result{Aux: want.Aux[b.Slot : b.Slot+1]}
			assert.Error(t, irtest.Differ(got, had, 0), "%s: a step of kind %d", c.Name, s.Kind)
		}
	}
}

func BenchmarkModels(b *testing.B) {
	for name, c := range map[string]irtest.Case{"eight-schools": irtest.EightSchools(),
		"logistic": irtest.Logistic(768, 8), "log-linear": irtest.LogLinear(1192)} {
		b.Run(name, func(b *testing.B) {
			m, err := ir.NewMachine(c.Plan, c.Inputs)
			require.NoError(b, err)
			grad := make([]float64, len(c.X))
			for b.Loop() {
				m.Eval(c.X, 1, grad, nil)
			}
		})
	}
}
