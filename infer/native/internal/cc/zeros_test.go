package cc

import (
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
