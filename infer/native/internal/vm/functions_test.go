package vm

import (
	"bufio"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir/irtest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var named = map[string]ir.Op{"exp": ir.Exp, "expm1": ir.Expm1, "log": ir.Log, "log1p": ir.Log1p, "sin": ir.Sin,
	"cos": ir.Cos, "tan": ir.Tan, "asin": ir.Asin, "acos": ir.Acos, "atan": ir.Atan, "sinh": ir.Sinh, "cosh": ir.Cosh,
	"tanh": ir.Tanh, "lgamma": ir.Lgamma, "digamma": ir.Digamma, "trigamma": ir.Trigamma, "erf": ir.Erf, "erfc": ir.Erfc,
	"erfcx": ir.Erfcx, "erfinv": ir.Erfinv, "i0e": ir.I0e, "i1e": ir.I1e, "pow": ir.Pow, "hypot": ir.Hypot,
	"atan2": ir.Atan2}

// absolute are functions whose error is measured relative to 1 where they are smaller: around their zeros.
var absolute = map[string]bool{"lgamma": true, "digamma": true}

// apply runs a function on arrays, and on each element as a single number, which must give the same bits.
func apply(t *testing.T, variant string, op ir.Op, args ...[]float64) []float64 {
	n := len(args[0])
	b := irtest.NewBuilder("apply", 1)
	out, one := b.Aux(n), b.Aux(min(n, 200))
	var in []int
	for _, a := range args {
		in = append(in, b.Const(a...))
	}
	b.Loop([]int{n}, func(k *irtest.Body) {
		var v []int
		for _, i := range in {
			v = append(v, k.Load(i, 0, 1))
		}
		k.Write(ir.Store, k.Op(op, v...), out, 0, 1)
	})
	for i := range min(n, 200) {
		b.Loop(nil, func(k *irtest.Body) {
			var v []int
			for _, a := range in {
				v = append(v, k.Load(a, i))
			}
			k.Write(ir.Store, k.Op(op, v...), one, i)
		})
	}
	c := b.Finish()
	_, e := compile(t, variant, c)
	r, err := irtest.Run(e, c)
	require.NoError(t, err)
	for i, v := range r.Aux[1] {
		if math.Float64bits(v) != math.Float64bits(r.Aux[0][i]) && (v == v || r.Aux[0][i] == r.Aux[0][i]) {
			assert.Failf(t, "two results", "op %d, %s: %v and %v", op, variant, v, r.Aux[0][i])
		}
	}
	return r.Aux[0]
}

// ulp is the distance of numbers of the size of v.
func ulp(v float64) float64 {
	v = math.Abs(v)
	if v < 0x1p-1022 {
		return 0x1p-1074
	}
	return math.Ldexp(1, math.Ilogb(v)-52)
}

type point struct {
	args   []float64
	hi, lo float64
}

func references(t *testing.T) map[string][]point {
	f, err := os.Open("testdata/functions.txt")
	require.NoError(t, err)
	defer f.Close()
	all := map[string][]point{}
	for s := bufio.NewScanner(f); s.Scan(); {
		words := strings.Fields(s.Text())
		var v []float64
		for _, w := range words[1:] {
			x, err := strconv.ParseFloat(w, 64)
			require.NoError(t, err)
			v = append(v, x)
		}
		n := len(v)
		all[words[0]] = append(all[words[0]], point{v[:n-2], v[n-2], v[n-1]})
	}
	return all
}

// Errors of every function of every variant against values of 60 digits, in units of the last place.
func TestFunctions(t *testing.T) {
	for name, points := range references(t) {
		args := make([][]float64, len(points[0].args))
		for _, p := range points {
			for k, x := range p.args {
				args[k] = append(args[k], x)
			}
		}
		for _, variant := range Variants() {
			worst, at := 0.0, 0
			for i, got := range apply(t, variant, named[name], args...) {
				p := points[i]
				unit := ulp(p.hi)
				if absolute[name] {
					unit = max(unit, 0x1p-52)
				}
				off := math.Abs((got-p.hi)-p.lo) / unit
				if got == p.hi || math.IsInf(p.hi, 0) && math.Abs(got) == math.MaxFloat64 {
					off = math.Abs(p.lo) / unit
				}
				if !(off <= worst) {
					worst, at = off, i
				}
			}
			t.Logf("%-9s %-9s %.2f ulp at %v", name, variant, worst, points[at].args)
			assert.LessOrEqual(t, worst, 2.0, "%s, %s at %v", name, variant, points[at].args)
		}
	}
}
