package vm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir/irtest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// singles is a plan of n instructions on single numbers in some loops, with operands from the results just before and
// from every kind of memory, and results that go everywhere. Numbers stay between -4 and 4, but for those that are made
// of infinities and NaN, which go nowhere else.
func singles(seed uint64, n int) irtest.Case {
	rng := rand.New(rand.NewPCG(seed, 7))
	data := func(n int) []float64 {
		out := make([]float64, n)
		for i := range out {
			out[i] = 2*rng.Float64() - 1
		}
		return out
	}
	b := irtest.NewBuilder(fmt.Sprintf("%d numbers, seed %d", n, seed), data(5)...)
	b.Weight = 0.5
	special := b.Input(ir.F64, math.NaN(), math.Inf(1), math.Inf(-1), 0, math.Copysign(0, -1), 1)
	weight := len(b.Plan.Buffers)
	b.Plan.Buffers = append(b.Plan.Buffers, ir.Buffer{Kind: ir.Weight, Len: 1})
	prepared := b.Prepared(3)
	input := b.Input(ir.F64, data(300)...)
	b.Before([]int{3}, func(k *irtest.Body) { k.Write(ir.Store, k.Load(input, 5, 1), prepared, 0, 1) })
	work, out, ends, turns := b.Work(n), b.Aux(n), b.Aux(n), 1+rng.IntN(3)
	places := [][2]int{{0, 5}, {weight, 1}, {prepared, 3}, {input, 300}, {b.Const(data(4)...), 4}}
	all := [][2]int{{1, 5}} // the gradient is written once each
	for turn := range turns {
		b.Loop(nil, func(k *irtest.Body) {
			var made []int
			operand := func() int {
				switch r := rng.IntN(10); {
				case r < 5 && len(made) > 0:
					return made[max(0, len(made)-1-rng.IntN(3))]
				case r < 6 && turn > 0:
					return k.Load(work, (turn-1)*(n/turns)+rng.IntN(n/turns))
				case r < 8:
					return k.Num(2*rng.Float64() - 1)
				}
				p := places[rng.IntN(len(places))]
				return k.Load(p[0], rng.IntN(p[1]))
			}
			exact := func() int { return k.Load(special, rng.IntN(6)) }
			for i := range n / turns {
				at := turn*(n/turns) + i
				v := 0
				switch rng.IntN(8) {
				case 0:
					v = k.Op(ir.Add, operand(), k.Op(ir.Mul, operand(), operand()))
				case 1:
					v = k.Op(ir.Sub, k.Op(ir.Mul, operand(), operand()), operand())
				case 2:
					v = k.Op(ir.Sub, operand(), k.Op(ir.Mul, operand(), operand()))
				case 3:
					v = k.Op(ir.Div, operand(), k.Op(ir.Add, k.Op(ir.Abs, operand()), k.Num(2)))
				case 4:
					v = k.Op(ir.Sqrt, k.Op(ir.Abs, operand()))
				case 5:
					v = k.Op(ir.Sub, k.Op(ir.Neg, operand()), operand())
				case 6:
					compare := []ir.Op{ir.Lt, ir.Le, ir.Eq, ir.Ne}[rng.IntN(4)]
					v = k.Op(ir.Select, k.Op(compare, exact(), exact()), operand(), operand())
				default:
					v = k.Op(ir.Select, k.Op(ir.IsNaN, exact()), operand(), operand())
				}
				v = k.Op(ir.Mul, k.Op(ir.Tanh, v), k.Num(2))
				made = append(made, v)
				k.Write(ir.Store, v, work, at)
				k.Write(ir.Store, v, out, at)
				end := k.Op([]ir.Op{ir.Add, ir.Mul, ir.Div, ir.Min, ir.Max}[rng.IntN(5)], exact(), exact())
				k.Write(ir.Store, end, ends, at)
			}
			if turn == turns-1 {
				for i := range all[0][1] {
					k.Write(ir.Store, made[i], all[0][0], i)
				}
				k.Write(ir.Store, made[5], 2, 0)
			}
		})
	}
	return b.Finish()
}

// More numbers than there are slots for, code that is longer than one instruction has, and everything shorter. Each
// result has a rounding error or two, of which the chain keeps few, since slopes are at most 2.
func TestSingleNumbers(t *testing.T) {
	for seed := range uint64(24) {
		agree(t, singles(seed, []int{18, 60, 600}[seed%3]))
	}
}

// A chain of single numbers is one instruction, and one in which nothing waits for memory: every operation but the
// first takes its predecessor's result.
func TestSingleNumbersAreOne(t *testing.T) {
	b := irtest.NewBuilder("chain", 2)
	b.Loop(nil, func(k *irtest.Body) {
		v := k.Load(0, 0)
		for range 5 {
			v = k.Op(ir.Sqrt, k.Op(ir.Div, k.Num(3), v))
		}
		k.Write(ir.Store, v, 2, 0)
		k.Write(ir.Store, v, 1, 0)
	})
	plan := b.Finish().Plan
	for _, name := range Variants() {
		v := variantOf(name)
		e := newEncoder(plan, v)
		list, err := e.part(plan.Steps)
		require.NoError(t, err)
		require.Len(t, list, 11)
		c := collector{encoder: e, numbers: map[int]uint32{}, others: map[place]int{}, last: -1}
		for i := range list {
			require.True(t, c.takes(&list[i]))
			c.add(&list[i])
		}
		waits := 0
		for i := range c.code[1:] { // the first gets the point
			for op := range v.scalars {
				if c.code[1+i].run == v.scalars[op][0] {
					waits++
				}
			}
		}
		assert.Zero(t, waits, name)
	}
}

// Stores that lie between each other do not make a loop one of single iterations.
func TestInterleavedStoresAreBlocks(t *testing.T) {
	for stride, want := range map[int]bool{1: true, 2: false, 3: false} {
		b := irtest.NewBuilder("interleaved", 1)
		stores := max(2, stride)
		to := b.Aux(99*stride + stores)
		b.Loop([]int{100}, func(k *irtest.Body) {
			for i := range stores {
				k.Write(ir.Store, k.Op(ir.Mul, k.Coord(0), k.Num(float64(i))), to, i, stride)
			}
		})
		c := b.Finish()
		sizes, body := c.Plan.Steps[0].Simplified()
		serial, _ := ir.Conflicts(body, sizes)
		assert.Equal(t, want, serial, "stride %d", stride)
		agree(t, c)
	}
}
