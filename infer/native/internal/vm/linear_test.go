package vm

import (
	"fmt"
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir/irtest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// regression is a plan with r = rest ± b_1 a_1 ± b_2 a_2 ... of n elements, and the sums of r a_k and r²: the columns a
// are data, the numbers b the point, the rest nothing, an array or a number, added or subtracted.
func regression(n, terms int, rest string, signs int) irtest.Case {
	x := make([]float64, terms)
	for k := range x {
		x[k] = math.Cos(float64(3*k + 1))
	}
	b := irtest.NewBuilder(fmt.Sprintf("%d x %d, %s, signs %b", n, terms, rest, signs), x...)
	column := func(seed int) int {
		data := make([]float64, n)
		for i := range data {
			data[i] = math.Sin(float64(i*(seed+2) + seed))
		}
		return b.Const(data...)
	}
	columns := make([]int, terms)
	for k := range columns {
		columns[k] = column(k)
	}
	y, out := column(terms), b.Aux(n)
	sums := make([]int, terms+1)
	for k := range sums {
		sums[k] = b.Aux(1)
	}
	b.Loop([]int{n}, func(k *irtest.Body) {
		sum := -1
		switch rest {
		case "array":
			sum = k.Load(y, 0, 1)
		case "minus array":
			sum = k.Op(ir.Neg, k.Load(y, 0, 1))
		case "number":
			sum = k.Num(0.75)
		}
		arrays := make([]int, terms)
		for c := range arrays {
			arrays[c] = k.Load(columns[c], 0, 1)
			product := k.Op(ir.Mul, arrays[c], k.Load(0, c, 0))
			switch {
			case sum < 0:
				sum = product
			case signs>>c&1 == 1:
				sum = k.Op(ir.Sub, sum, product)
			default:
				sum = k.Op(ir.Add, product, sum)
			}
		}
		k.Write(ir.Store, sum, out, 0, 1)
		for c, a := range arrays {
			k.Write(ir.Sum, k.Op(ir.Mul, a, sum), sums[c], 0, 0)
		}
		k.Write(ir.Sum, k.Op(ir.Mul, sum, sum), sums[terms], 0, 0)
	})
	return b.Finish()
}

// Linear combinations and sums of products of all lengths, in one block and in several.
func TestLinear(t *testing.T) {
	for _, n := range []int{2, 7, 8, 9, 16, 31, 500, 513, 1300} {
		for terms := 2; terms <= 9; terms++ {
			for k, rest := range []string{"nothing", "array", "minus array", "number"} {
				agree(t, regression(n, terms, rest, []int{0, 0b101101010, 0b111111111, 0b10}[(k+terms)%4]))
			}
		}
	}
}

// A predictor is one instruction, its products and sums are none, and sums of products with the residual are joined
// four by four; the last of an odd number stays alone.
func TestLinearIsFused(t *testing.T) {
	for terms, want := range map[int]map[ir.Op]int{
		2: {linear: 1, dots: 1}, 4: {linear: 1, dots: 1, dot: 1}, 7: {linear: 1, dots: 2},
	} {
		c := regression(400, terms, "array", 0b10)
		sizes, body := c.Plan.Steps[0].Simplified()
		list := newEncoder(c.Plan, nil).nodes(sizes, body)
		space, err := divide(sizes, false)
		require.NoError(t, err)
		l := &looper{space: space, list: list}
		for i := range list {
			list[i].level, list[i].array = space.level(list[i].dims)
		}
		combine(list)
		fuse(list)
		for i := range list {
			if n := &list[i]; !n.done && n.writes() {
				l.settle(n)
			}
		}
		gather(list)
		have := map[ir.Op]int{}
		for i := range list {
			if n := &list[i]; !n.done && n.op != ir.Load && n.op != ir.Store {
				have[n.op]++
			}
		}
		assert.Equal(t, want, have, "%d terms", terms)
	}
}
