package ir

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// inGo runs without assembly.
func inGo(f func()) {
	was := fast
	fast = kernels{}
	defer func() { fast = was }()
	f()
}

// distance is how many units in the last place lie between two numbers; those that are not finite must be equal.
func distance(a, b float64) float64 {
	switch {
	case a == b || a != a && b != b:
		return 0
	case math.IsInf(a, 0) || math.IsInf(b, 0) || a != a || b != b:
		return math.Inf(1)
	}
	return math.Abs(a-b) / math.Max(0x1p-1074, math.Nextafter(math.Abs(b), math.Inf(1))-math.Abs(b))
}

// edges are ends of domains. Go's exponential on amd64 is infinite from 709.44 on, that of the kernels from 709.78 on.
var edges = []float64{0, math.Copysign(0, -1), 1, -1, math.Inf(1), math.Inf(-1), math.NaN(), 0x1p-1074, -0x1p-1074,
	0x1p-1022, math.MaxFloat64, -math.MaxFloat64, 709.4, 709.79, -745.1, -745.2, -708.4, 0.5, 1e-300, 1e-17, -1e-17, 36,
	-36, -0.9999999999999999, 0x1.fffffffffffffp-1, 0x1.0000000000001p0}

// points are edges, and numbers of all sizes.
func points(n int, rng *rand.Rand) []float64 {
	out := make([]float64, n)
	for i := range out {
		switch rng.IntN(4) {
		case 0:
			out[i] = edges[rng.IntN(len(edges))]
		case 1:
			out[i] = math.Ldexp(rng.NormFloat64(), rng.IntN(2000)-1000)
		default:
			out[i] = 20 * rng.NormFloat64()
		}
	}
	return out
}

// Kernels have the bits of the loops in Go, exponentials and logarithms to 2 units in the last place: each of the two
// is right to 1. Lengths are those of blocks and of what is left.
func TestKernels(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	worst := map[string]float64{}
	check := func(name string, limit float64, run func(d []float64), n int) {
		got, want := make([]float64, n), make([]float64, n)
		run(got)
		inGo(func() { run(want) })
		for i := range got {
			off := distance(got[i], want[i])
			worst[name] = max(worst[name], off)
			require.LessOrEqual(t, off, limit, "%s: element %d of %d: %v in assembly, %v in Go", name, i, n, got[i], want[i])
			if want[i] == 0 && limit == 0 {
				require.Equal(t, math.Signbit(want[i]), math.Signbit(got[i]), name)
			}
		}
	}
	for round := range 300 {
		n := []int{4, 7, 16, 17, 30, 256}[round%6]
		a, b, c := points(n, rng), points(n, rng), points(n, rng)
		m := &memory{vector: [][]float64{a, b, c, nil}, scalar: []float64{a[0], b[0], c[0]}}
		for op, limit := range map[Op]float64{Neg: 0, Abs: 0, Sqrt: 0, Exp: 2, Expm1: 2, Log: 2, Log1p: 2} {
			in := &instr{Instr: Instr{Op: op, A: 0}, va: true}
			check(fmt.Sprint("one ", op), limit, func(d []float64) { m.apply(in, d) }, n)
		}
		for _, op := range []Op{Add, Sub, Mul, Div, Min, Max, Lt, Le, Eq, Ne} {
			for k := 1; k < 4; k++ { // which are vectors
				in := &instr{Instr: Instr{Op: op, A: 0, B: 1}, va: k&1 > 0, vb: k&2 > 0}
				check(fmt.Sprint("two ", op), 0, func(d []float64) { m.apply(in, d) }, n)
			}
		}
		for k := 1; k < 8; k++ {
			in := &instr{Instr: Instr{Op: Select, A: 0, B: 1, C: 2}, va: k&1 > 0, vb: k&2 > 0, vc: k&4 > 0}
			check("select", 0, func(d []float64) { m.apply(in, d) }, n)
		}
		for _, vector := range []bool{false, true} {
			product := &instr{Instr: Instr{Op: Mul, A: 1, B: 0}, k: 3, va: vector, vb: true}
			in := &instr{Instr: Instr{Op: Add, A: 3, B: 2}, va: true, vb: true, mul: product}
			check("mulAdd", 0, func(d []float64) { m.apply(in, d) }, n)
		}
	}
	t.Log(worst)
}

// Sums of kernels are those in Go but for rounding: n of it at most.
func TestSums(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for n := range 200 {
		a, b, size := make([]float64, n), make([]float64, n), 0.0
		for i := range a {
			a[i], b[i] = rng.NormFloat64(), 1+rng.Float64()
			size += math.Abs(a[i] * b[i])
		}
		var want, product float64
		inGo(func() { want, product = sum(a), dot(a, b) })
		require.InDelta(t, want, sum(a), float64(n+1)*size*0x1p-52)
		require.InDelta(t, product, dot(a, b), float64(n+1)*size*0x1p-52)
	}
}
