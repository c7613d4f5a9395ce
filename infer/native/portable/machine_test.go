//go:build cgo

package portable

import (
	"testing"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir/irtest"
	"github.com/stretchr/testify/require"
)

// calls says whether a plan has a step that calls a function in C.
func calls(p *ir.Plan) bool {
	for _, s := range append(ir.Leaves(p.Prologue), ir.Leaves(p.Steps)...) {
		if s.Kind == ir.Call {
			return true
		}
	}
	return false
}

// run evaluates a case on a machine, twice.
func run(t *testing.T, c irtest.Case) (out irtest.Result) {
	p, err := NewPlan(c.Plan, c.Inputs)
	require.NoError(t, err, c.Name)
	m, err := p.Machine()
	require.NoError(t, err, c.Name)
	for again := range 2 {
		got := irtest.Result{Grad: make([]float64, len(c.X))}
		for _, s := range c.Plan.Outputs {
			got.Aux = append(got.Aux, make([]float64, s.Len()))
		}
		got.Value = m.Eval(c.X, c.Weight, got.Grad, got.Aux)
		if again == 1 {
			require.NoError(t, irtest.Differ(got, out, 0), c.Name)
		}
		out = got
	}
	return out
}

// agree compares a machine with the interpreter. Sums are added up in another order.
func agree(t *testing.T, c irtest.Case) {
	if calls(c.Plan) {
		return
	}
	want, err := irtest.Reference(c)
	require.NoError(t, err, c.Name)
	require.NoError(t, irtest.Differ(run(t, c), want, 1e-12), c.Name)
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

func BenchmarkModels(b *testing.B) {
	for name, c := range map[string]irtest.Case{"eight-schools": irtest.EightSchools(),
		"logistic": irtest.Logistic(768, 8), "log-linear": irtest.LogLinear(1192)} {
		b.Run(name, func(b *testing.B) {
			p, err := NewPlan(c.Plan, c.Inputs)
			require.NoError(b, err)
			m, err := p.Machine()
			require.NoError(b, err)
			grad := make([]float64, len(c.X))
			for b.Loop() {
				m.Eval(c.X, 1, grad, nil)
			}
		})
	}
}
