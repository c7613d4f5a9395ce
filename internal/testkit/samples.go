package testkit

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/kelvin-ppl/kelvin/internal/sample"
)

// LCG is the minimal standard generator of Park and Miller, s = 16807 s mod (2^31 - 1), as uniform numbers s / (2^31 -
// 1): every language gives the same ones, so that inputs of golden values can be made again.
type LCG int

// Next is the next number.
func (s *LCG) Next() float64 {
	*s = 16807 * *s % 2147483647
	return float64(*s) / 2147483647
}

// Filled has m chains of n draws, chain after chain.
func Filled(m, n int, f func(chain, draw int) float64) [][]float64 {
	x := make([][]float64, m)
	for c := range x {
		x[c] = make([]float64, n)
		for i := range x[c] {
			x[c][i] = f(c, i)
		}
	}
	return x
}

// GoldenAR is x(i) = phi x(i-1) + u - 1/2 from 0, chain c moved by shift c.
func GoldenAR(m, n int, phi, shift float64, seed LCG) [][]float64 {
	before := 0.0
	return Filled(m, n, func(c, i int) float64 {
		if i == 0 {
			before = 0
		}
		before = phi*before + (seed.Next() - 0.5)
		return before + shift*float64(c)
	})
}

// GoldenHeavy is v / (1/4 - v²) of uniform v, with tails like 1/x.
func GoldenHeavy(m, n int, seed LCG) [][]float64 {
	return Filled(m, n, func(int, int) float64 {
		v := seed.Next() - 0.5
		return v / (0.25 - v*v)
	})
}

// GoldenTies are whole numbers from 0 to 4.
func GoldenTies(m, n int, seed LCG) [][]float64 {
	return Filled(m, n, func(int, int) float64 { return math.Floor(5 * seed.Next()) })
}

// Source has the random numbers of a seed.
func Source(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// Normals are independent standard Normals.
func Normals(rng *rand.Rand, m, n int) [][]float64 {
	return Filled(m, n, func(int, int) float64 { return rng.NormFloat64() })
}

// Near is a relative tolerance, absolute below 1; NaN equals NaN and Inf equals Inf.
func Near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.IsNaN(got) && math.IsNaN(want) || got == want {
		return
	}
	if !(math.Abs(got-want) <= tolerance*max(1, math.Abs(want))) {
		t.Errorf("%s: got %.17g, want %.17g, off by %.2g", what, got, want, got-want)
	}
}

// AR1 has m chains of n draws of x' = phi x + sqrt(1 - phi²) z, stationary with variance 1.
func AR1(seed uint64, m, n int, phi float64) [][]float64 {
	rng := Source(seed)
	before := 0.0
	return Filled(m, n, func(_, i int) float64 {
		if i == 0 {
			before = rng.NormFloat64()
		} else {
			before = phi*before + math.Sqrt(1-phi*phi)*rng.NormFloat64()
		}
		return before
	})
}

// MeanSE is the mean of repetitions and its standard error.
func MeanSE(x []float64) (mean, se float64) {
	m, v := sample.MeanVar(x)
	return m, math.Sqrt(v / float64(len(x)))
}
