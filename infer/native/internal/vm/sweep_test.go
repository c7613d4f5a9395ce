package vm

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir/irtest"
	"github.com/stretchr/testify/assert"
)

// Dense random points of each function's domain, of all sizes, against long double, whose own error is below 0.01 ulp.
func TestSweep(t *testing.T) {
	if !irtest.WideEnough() {
		t.Skip("long double is no wider than double here")
	}
	positive := map[string]bool{"log": true, "lgamma": true}
	for f, name := range irtest.WideNames {
		rng := rand.New(rand.NewPCG(9, uint64(f)))
		x := make([]float64, 40000)
		for i := range x {
			switch i % 4 {
			case 0:
				x[i] = 3 * rng.NormFloat64()
			case 1:
				x[i] = math.Exp(8 * rng.NormFloat64())
			case 2:
				x[i] = 1500 * (rng.Float64() - 0.5)
			default:
				x[i] = math.Float64frombits(rng.Uint64())
			}
			if positive[name] || name == "log1p" && x[i] < -1 {
				x[i] = math.Abs(x[i])
			}
			if math.IsNaN(x[i]) || (name == "sin" || name == "cos") && math.Abs(x[i]) > 1e15 {
				x[i] = 0.5 // for huge angles the C library itself is wrong by more
			}
		}
		floor := 0.0
		if absolute[name] {
			floor = 0x1p-52
		}
		for _, variant := range Variants() {
			worst, at := 0.0, 0
			for i, got := range apply(t, variant, named[name], x) {
				if e := irtest.WideError(f, x[i], got, floor); !(e <= worst) {
					worst, at = e, i
				}
			}
			t.Logf("%-7s %-9s %.2f ulp at %v", name, variant, worst, x[at])
			limit := 2.0
			if variant == "portable" { // it has no fused multiplication
				limit = 2.75
			}
			assert.LessOrEqual(t, worst, limit, "%s, %s at %v", name, variant, x[at])
		}
	}
}

// Values at the ends of domains, and signs of zero, are exact: those that C99 (annex F) demands.
func TestEnds(t *testing.T) {
	inf, nan, minus := math.Inf(1), math.NaN(), math.Copysign(0, -1)
	for op, pairs := range map[ir.Op][][2]float64{
		ir.Exp:      {{inf, inf}, {-inf, 0}, {0, 1}, {minus, 1}, {1000, inf}, {-1000, 0}, {nan, nan}},
		ir.Expm1:    {{inf, inf}, {-inf, -1}, {0, 0}, {minus, minus}, {1000, inf}, {nan, nan}, {5e-324, 5e-324}},
		ir.Log:      {{inf, inf}, {0, -inf}, {minus, -inf}, {-1, nan}, {-inf, nan}, {1, 0}, {nan, nan}},
		ir.Log1p:    {{inf, inf}, {0, 0}, {minus, minus}, {-1, -inf}, {-2, nan}, {nan, nan}, {5e-324, 5e-324}},
		ir.Sin:      {{0, 0}, {minus, minus}, {inf, nan}, {nan, nan}, {5e-324, 5e-324}},
		ir.Cos:      {{0, 1}, {inf, nan}, {nan, nan}},
		ir.Tanh:     {{0, 0}, {minus, minus}, {inf, 1}, {-inf, -1}, {nan, nan}, {5e-324, 5e-324}},
		ir.Erf:      {{0, 0}, {minus, minus}, {inf, 1}, {-inf, -1}, {nan, nan}},
		ir.Erfc:     {{0, 1}, {inf, 0}, {-inf, 2}, {nan, nan}, {30, 0}},
		ir.Erfcx:    {{0, 1}, {inf, 0}, {-inf, inf}, {nan, nan}},
		ir.Lgamma:   {{1, 0}, {2, 0}, {inf, inf}, {0, inf}, {-3, inf}, {nan, nan}},
		ir.Digamma:  {{inf, inf}, {0, -inf}, {minus, inf}, {-3, nan}, {nan, nan}},
		ir.Trigamma: {{inf, 0}, {nan, nan}},
		ir.Erfinv:   {{0, 0}, {1, inf}, {-1, -inf}, {2, nan}, {nan, nan}},
	} {
		var x []float64
		for _, p := range pairs {
			x = append(x, p[0])
		}
		for _, variant := range Variants() {
			for i, got := range apply(t, variant, op, x) {
				want := pairs[i][1]
				same := got == want && math.Signbit(got) == math.Signbit(want) || got != got && want != want
				assert.True(t, same, "op %d, %s: %v at %v, should be %v", op, variant, got, x[i], want)
			}
		}
	}
}
