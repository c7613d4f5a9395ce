package cc

import (
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir/irtest"
)

// The sign of a zero is that of the infinity which is its reciprocal: with a = b, 1/-expm1(-(a - b)) is plus infinity,
// and it is minus infinity where the compiler makes b - a of -(a - b).
func TestSignOfZero(t *testing.T) {
	b := irtest.NewBuilder("reciprocals of zeros", 0.3)
	in, out := b.Const(0.3, 0.3), b.Aux(3)
	b.Loop(nil, func(k *irtest.Body) {
		zero := k.Op(ir.Sub, k.Load(in, 0), k.Load(in, 1))
		for i, v := range []int{zero, k.Op(ir.Min, zero, k.Num(1)), k.Op(ir.Mul, zero, k.Num(2))} {
			v = k.Op(ir.Neg, k.Op(ir.Expm1, k.Op(ir.Neg, v)))
			k.Write(ir.Store, k.Op(ir.Div, k.Num(1), v), out, i)
		}
	})
	differential(t, []irtest.Case{b.Finish()})
}

// A difference of large numbers that is 0 leaves what is added to it as it is. Added to one of the numbers first, as in
// vectorised code that has lost its barriers, it would vanish.
func TestLargeNumbersCancel(t *testing.T) {
	b := irtest.NewBuilder("a difference of large numbers in a long sum", 0.3)
	large := []float64{2.3e26, 1e26, 7e25, 3e26, 2.3e26, 1e26, 7e25, 3e26}
	a, c, out := b.Const(large...), b.Const(large...), b.Aux(8)
	b.Loop([]int{8}, func(k *irtest.Body) {
		x, y := k.Load(a, 0, 1), k.Load(c, 0, 1)
		over := k.Op(ir.Sub, x, y)
		v := k.Op(ir.Sub, k.Op(ir.Mul, y, k.Op(ir.Log1p, k.Op(ir.Div, over, y))), over)
		v = k.Op(ir.Sub, k.Op(ir.Sub, v, k.Op(ir.Log, y)), k.Num(1))
		other := k.Op(ir.Sub, k.Op(ir.Log, x), x)
		k.Write(ir.Store, k.Op(ir.Select, k.Op(ir.Lt, y, k.Num(10)), other, v), out, 0, 1)
	})
	differential(t, []irtest.Case{b.Finish()})
}

// What is added and taken away again stays added: x + a - a is no number where a is infinite, and has lost the digits
// of x that x + a has not. In vectors, too, where a loop reads what another has stored, and behind a choice.
func TestAddedAndTakenAway(t *testing.T) {
	const size = 16
	var x, large []float64
	for i := range size {
		x = append(x, 0.3+float64(i))
		large = append(large, []float64{1e15, math.Inf(1), 3, -1e17}[i%4])
	}
	b := irtest.NewBuilder("what is added and taken away", 0.3)
	in, far, sums, out := b.Const(x...), b.Const(large...), b.Work(size), b.Aux(7*size)
	b.Loop([]int{size}, func(k *irtest.Body) {
		v, a := k.Load(in, 0, 1), k.Load(far, 0, 1)
		sum := k.Op(ir.Add, v, a)
		back := k.Op(ir.Neg, k.Op(ir.Sub, a, sum))
		other := k.Op(ir.Sub, sum, k.Op(ir.Add, a, k.Num(2)))
		twice := k.Op(ir.Sub, k.Op(ir.Add, v, k.Num(1e16)), k.Num(1e16))
		chosen := k.Op(ir.Sub, k.Op(ir.Select, k.Op(ir.Lt, v, k.Num(7)), sum, k.Op(ir.Add, k.Num(5), a)), a)
		for i, w := range []int{k.Op(ir.Sub, sum, a), back, other, twice, chosen} {
			k.Write(ir.Store, w, out, i*size, 1)
		}
		k.Write(ir.Store, sum, sums, 0, 1)
	})
	b.Loop([]int{size}, func(k *irtest.Body) {
		k.Write(ir.Store, k.Op(ir.Sub, k.Load(sums, 0, 1), k.Load(far, 0, 1)), out, 5*size, 1)
		k.Write(ir.Store, k.Op(ir.Exp, k.Op(ir.Sub, k.Load(far, 0, 1), k.Load(sums, 0, 1))), out, 6*size, 1)
	})
	differential(t, []irtest.Case{b.Finish()})
}
