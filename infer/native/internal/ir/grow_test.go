package ir_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
)

// sums is a plan of Σ x·c over n equal constants c, with numbers that grow by a power of n.
func sums(n int, c float64, power int) *ir.Plan {
	size := n
	if power == 2 {
		size = n * n
	}
	return &ir.Plan{Dim: 1, Notes: []string{"a note"},
		Buffers: []ir.Buffer{{Kind: ir.X, Len: 1}, {Kind: ir.Const, Len: size, Data: slices.Repeat([]float64{c}, size)},
			{Kind: ir.Value, Len: 1}},
		Steps: []ir.Step{{Kind: ir.Loop, Sizes: []int{size}, Body: []ir.Instr{
			{Op: ir.Load, At: ir.Address{Buf: 0, Strides: []int{0}}},
			{Op: ir.Load, At: ir.Address{Buf: 1, Strides: []int{1}}},
			{Op: ir.Mul, A: 0, B: 1},
			{Op: ir.Sum, A: 2, At: ir.Address{Buf: 2, Strides: []int{0}}}}}}}
}

// A plan of 100 numbers follows from those of 5, 7 and 8, and is that which is made for 100. Nothing follows where a
// size grows by more than a number each, where constants differ, or where there is another step.
func TestGrow(t *testing.T) {
	at := [3]int{5, 7, 8}
	of := func(c float64, power int) (out [3]*ir.Plan) {
		for i, n := range at {
			out[i] = sums(n, c, power)
		}
		return out
	}
	got, err := ir.Grow(of(2, 1), at, 100)
	require.NoError(t, err)
	require.Equal(t, sums(100, 2, 1), got)
	m, err := ir.NewMachine(got, nil)
	require.NoError(t, err)
	require.Equal(t, 600.0, m.Eval([]float64{3}, 0, nil, nil))

	_, err = ir.Grow(of(2, 2), at, 100)
	require.Error(t, err)
	other := of(2, 1)
	other[1] = sums(7, 3, 1)
	_, err = ir.Grow(other, at, 100)
	require.Error(t, err)
	more := of(2, 1)
	more[2].Steps = append(more[2].Steps, more[2].Steps[0])
	_, err = ir.Grow(more, at, 100)
	require.Error(t, err)
	_, err = ir.Grow(of(2, 1), at, -100) // sizes that no plan has
	require.Error(t, err)
}
