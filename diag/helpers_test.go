package diag

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/draws"
)

var nan, inf = math.NaN(), math.Inf(1)

// lcg is the minimal standard generator of Park and Miller, s = 16807 s mod (2^31 - 1), as uniform numbers s / (2^31 - 1):
// every language gives the same ones, so that inputs of golden values can be made again.
type lcg int64

func (s *lcg) next() float64 {
	*s = 16807 * *s % 2147483647
	return float64(*s) / 2147483647
}

// filled has m chains of n draws, chain after chain.
func filled(m, n int, f func(chain, draw int) float64) [][]float64 {
	x := make([][]float64, m)
	for c := range x {
		x[c] = make([]float64, n)
		for i := range x[c] {
			x[c][i] = f(c, i)
		}
	}
	return x
}

// goldenAR is x(i) = phi x(i-1) + u - 1/2 from 0, chain c moved by shift c.
func goldenAR(m, n int, phi, shift float64, seed lcg) [][]float64 {
	before := 0.0
	return filled(m, n, func(c, i int) float64 {
		if i == 0 {
			before = 0
		}
		before = phi*before + (seed.next() - 0.5)
		return before + shift*float64(c)
	})
}

// goldenHeavy is v / (1/4 - v²) of uniform v, with tails like 1/x.
func goldenHeavy(m, n int, seed lcg) [][]float64 {
	return filled(m, n, func(int, int) float64 {
		v := seed.next() - 0.5
		return v / (0.25 - v*v)
	})
}

// goldenTies are whole numbers from 0 to 4.
func goldenTies(m, n int, seed lcg) [][]float64 {
	return filled(m, n, func(int, int) float64 { return math.Floor(5 * seed.next()) })
}

func source(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// normals are independent standard normals.
func normals(rng *rand.Rand, m, n int) [][]float64 {
	return filled(m, n, func(int, int) float64 { return rng.NormFloat64() })
}

// near is a relative tolerance, absolute below 1; NaN equals NaN and Inf equals Inf.
func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.IsNaN(got) && math.IsNaN(want) || got == want {
		return
	}
	if !(math.Abs(got-want) <= tolerance*max(1, math.Abs(want))) {
		t.Errorf("%s: got %.17g, want %.17g, off by %.2g", what, got, want, got-want)
	}
}

// container has one scalar site for each name and the statistics given, [name][chain][draw].
func container(t *testing.T, names []string, x [][][]float64, statNames []string, stats [][][]float64) *draws.Draws {
	t.Helper()
	var sites []draws.Site
	for i, name := range names {
		sites = append(sites, draws.Site{Name: name, Offset: i, Size: 1})
	}
	d, err := draws.New(sites, statNames, len(x[0]))
	require.NoError(t, err)
	for c := range x[0] {
		for i := range x[0][c] {
			var row, stat []float64
			for _, v := range x {
				row = append(row, v[c][i])
			}
			for _, v := range stats {
				stat = append(stat, v[c][i])
			}
			require.NoError(t, d.AppendChain(c, row, stat))
		}
	}
	return d
}
