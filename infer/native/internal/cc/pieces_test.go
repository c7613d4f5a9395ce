package cc

import (
	"math"
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

// Parts of a Repeat that add up in memory of their own leave their sums to what follows, beside buffers that other
// functions share.
func TestParts(t *testing.T) {
	text, err := emitPlan(parts().Plan, "")
	require.NoError(t, err)
	require.Contains(t, text, "kelvin_in_parts(c, 3, main_part1, shared)")
	differential(t, []irtest.Case{parts()})
	large := parts()
	large.Plan.Buffers[8].Len = partBytes/8 + 1
	_, err = emitPlan(large.Plan, "")
	require.ErrorContains(t, err, "its parts have too much memory of their own")
	shared := parts()
	shared.Plan.Steps = append(shared.Plan.Steps, shared.Plan.Steps[1].Before...)
	require.ErrorContains(t, shared.Plan.Check(), "buffer 8 is the own of parts of a repeat, and step")
}

// parts is a plan whose 10 turns, of 4 data each, fall into 3 parts: out is Σ (x₀ d + x₁)² for data d, and each (x₀ d +
// x₁)² besides.
func parts() irtest.Case {
	const times, rows, n = 10, 4, 3
	data := make([]float64, times*rows)
	for i := range data {
		data[i] = math.Sin(float64(i))
	}
	b := irtest.NewBuilder("parts", 0.3, 0.7)
	d, twice, each, out, sums := b.Input(ir.F64, data...), b.Work(2), b.Aux(times*rows), b.Aux(1), b.Work(n)
	total, sum := b.Work(1), b.Work(1)
	b.Loop([]int{2}, func(k *irtest.Body) {
		k.Write(ir.Store, k.Op(ir.Mul, k.Load(0, 0, 1), k.Num(2)), twice, 0, 1)
	})
	inner := irtest.NewBuilder("")
	inner.Loop(nil, func(k *irtest.Body) { k.Write(ir.Store, k.Num(0), total, 0) })
	inner.Loop([]int{rows}, func(k *irtest.Body) {
		z := k.Op(ir.Add, k.Op(ir.Mul, k.Load(d, 0, 1), k.Load(twice, 0, 0)), k.Load(twice, 1, 0))
		half := k.Op(ir.Mul, z, k.Num(0.5))
		square := k.Op(ir.Mul, half, half)
		k.Write(ir.Store, square, each, 0, 1)
		k.Write(ir.Sum, square, sum, 0, 0)
	})
	inner.Loop(nil, func(k *irtest.Body) {
		k.Write(ir.Store, k.Op(ir.Add, k.Load(total, 0), k.Load(sum, 0)), total, 0)
	})
	inner.Loop(nil, func(k *irtest.Body) { k.Write(ir.Store, k.Load(total, 0), sums, 0) })
	s := inner.Plan.Steps
	s[1].Body[0].At.Turn, s[1].Body[8].At.Turn, s[3].Body[1].At.Turn = rows, rows, 1
	b.Step(ir.Step{Kind: ir.Repeat, Times: times, Parts: n, Before: s[:1], Inner: s[1:3], After: s[3:]})
	b.Loop([]int{n}, func(k *irtest.Body) { k.Write(ir.Sum, k.Load(sums, 0, 1), out, 0, 0) })
	return b.Finish()
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
