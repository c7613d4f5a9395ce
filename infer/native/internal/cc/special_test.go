package cc

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"testing"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir/irtest"
	"github.com/stretchr/testify/require"
)

// units is how far each function may be from values made with 40 digits (testdata/special.txt), in units in the last
// place. Where a function has zeros, below is the size from which on an error counts as that of this size: near the
// zero of ψ at 1.46 and those of ψ and log |Γ| below 0, their terms cancel.
var units = []struct {
	name  string
	op    ir.Op
	units float64
	below float64
}{
	{"lgamma", ir.Lgamma, 8, 0}, {"digamma", ir.Digamma, 8, 1}, {"trigamma", ir.Trigamma, 8, 0},
	{"erfcx", ir.Erfcx, 8, 0}, {"erfinv", ir.Erfinv, 8, 0}, {"i0e", ir.I0e, 8, 0}, {"i1e", ir.I1e, 8, 0},
	{"exp", ir.Exp, 4, 0}, {"log", ir.Log, 4, 0}, {"log1p", ir.Log1p, 4, 0}, {"expm1", ir.Expm1, 4, 0},
	{"tanh", ir.Tanh, 2, 0}, {"erf", ir.Erf, 4, 0}, {"erfc", ir.Erfc, 4, 0},
	{"sin", ir.Sin, 4, 0}, {"cos", ir.Cos, 4, 0},
	{"hypot", ir.Hypot, 2, 0},
}

func TestAccuracy(t *testing.T) {
	file, err := os.Open("testdata/special.txt")
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	x, want := map[string][]float64{}, map[string][]float64{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var name string
		var at, value float64
		_, err := fmt.Sscan(lines.Text(), &name, &at, &value)
		require.NoError(t, err)
		x[name], want[name] = append(x[name], at), append(want[name], value)
	}
	var cases []irtest.Case
	var plans []*ir.Plan
	for _, u := range units {
		n := len(x[u.name])
		b := irtest.NewBuilder(u.name, 1)
		in, out, one := b.Const(x[u.name]...), b.Aux(n), b.Aux(n)
		apply := func(k *irtest.Body, v int) int {
			if u.op == ir.Hypot {
				return k.Op(u.op, v, k.Num(1))
			}
			return k.Op(u.op, v)
		}
		b.Loop([]int{n}, func(k *irtest.Body) { k.Write(ir.Store, apply(k, k.Load(in, 0, 1)), out, 0, 1) })
		b.Loop([]int{n, 1, 2}, func(k *irtest.Body) { // two iterations are no vector
			k.Write(ir.Store, apply(k, k.Load(in, 0, 1, 0, 0)), one, 0, 1, 0, 0)
		})
		cases = append(cases, b.Finish())
		plans = append(plans, cases[len(cases)-1].Plan)
	}
	for i, e := range compileAll(t, plans) {
		u := units[i]
		got, err := irtest.Run(e, cases[i])
		require.NoError(t, err)
		worst, where := 0.0, 0.0
		for _, aux := range got.Aux {
			for k, w := range want[u.name] {
				size := math.Max(math.Abs(w), u.below)
				d := math.Abs(aux[k]-w) / (math.Nextafter(size, math.Inf(1)) - size)
				if !(d <= worst) {
					worst, where = d, x[u.name][k]
				}
			}
		}
		t.Logf("%s: %.1f units at %v", u.name, worst, where)
		if !(worst <= u.units) {
			t.Errorf("%s: %.1f units at %v, at most %v are allowed", u.name, worst, where, u.units)
		}
	}
}
