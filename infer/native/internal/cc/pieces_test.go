package cc

import (
	"strings"
	"testing"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir/irtest"
	"github.com/stretchr/testify/require"
)

// A plan of many functions is what it was: buffers that several of them use are shared, and so is what a turn of a
// Repeat leaves to the next.
func TestPieces(t *testing.T) {
	defer func(long, one int) { longPart, onePiece = long, one }(longPart, onePiece)
	longPart, onePiece = 0, 2
	cases := []irtest.Case{turns(), irtest.EightSchools(), irtest.Logistic(300, 5)}
	for seed := range uint64(8) {
		cases = append(cases, irtest.Random(seed))
	}
	text, err := emitPlan(cases[0].Plan, "")
	require.NoError(t, err)
	require.Equal(t, 4, strings.Count(text, "__attribute__((cold))"), "one before the turns, and three behind them")
	require.Equal(t, 2, strings.Count(text, "const long turn"))
	differential(t, cases)
}

// turns is a plan of two steps that come again: each turn adds x to an element, and hands its half on.
func turns() irtest.Case {
	const times = 20
	b := irtest.NewBuilder("turns", 0.3, 0.7)
	state, half, out := b.Work(2*(times+1)), b.Work(2), b.Aux(2)
	b.Loop([]int{2}, func(k *irtest.Body) { k.Write(ir.Store, k.Num(1), state, 0, 1) })
	inner := irtest.NewBuilder("")
	inner.Loop([]int{2}, func(k *irtest.Body) {
		k.Write(ir.Store, k.Op(ir.Mul, k.Load(state, 0, 1), k.Num(0.5)), half, 0, 1)
	})
	inner.Loop([]int{2}, func(k *irtest.Body) {
		k.Write(ir.Store, k.Op(ir.Add, k.Load(half, 0, 1), k.Load(0, 0, 1)), state, 2, 1)
	})
	inner.Plan.Steps[0].Body[0].At.Turn = 2
	inner.Plan.Steps[1].Body[3].At.Turn = 2
	b.Step(ir.Step{Kind: ir.Repeat, Times: times, Inner: inner.Plan.Steps})
	b.Loop([]int{2}, func(k *irtest.Body) { k.Write(ir.Store, k.Load(state, 2*times, 1), out, 0, 1) })
	return b.Finish()
}
