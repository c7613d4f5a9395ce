package torch_test

import (
	"math"
	"sort"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/sugarme/gotch"

	"github.com/kelvin-ppl/kelvin/torch"
)

// kolmogorov is the largest distance of the empirical distribution function of x to cdf, times the root of len(x).
func kolmogorov(x []float64, cdf func(float64) float64) float64 {
	x = append([]float64{}, x...)
	sort.Float64s(x)
	n := float64(len(x))
	d := 0.0
	for i, v := range x {
		f := cdf(v)
		d = math.Max(d, math.Max(float64(i+1)/n-f, f-float64(i)/n))
	}
	return d * math.Sqrt(n)
}

// moment is the mean of f.
func moment(x []float64, f func(float64) float64) float64 {
	s := 0.0
	for _, v := range x {
		s += f(v)
	}
	return s / float64(len(x))
}

// power is v^k.
func power(k int) func(float64) float64 {
	return func(v float64) float64 { return math.Pow(v, float64(k)) }
}

// A million numbers of each kind have the moments of their law, to four standard errors, and its distribution function,
// by the test of Kolmogorov and Smirnov at level alpha = 1e-4: the limit law exceeds c with probability 2 exp(-2c²),
// which is alpha for c = 2.2253. The seeds are fixed, so a right generator that passed passes for ever.
//
// The variance of the mean of v^k is (E v^2k - (E v^k)²)/n. Moments of the standard normal are 1, 3, 15, 105 for the
// even powers 2, 4, 6, 8; of the centred uniform 1/12, 1/80, 1/448, 1/2304.
func TestLaws(t *testing.T) {
	const n = 1000000
	const alpha = 1e-4
	critical := math.Sqrt(-math.Log(alpha/2) / 2)
	for _, c := range []struct {
		name string
		draw func(s *torch.Streams, dtype gotch.DType) []float64
		even [4]float64 // E v^2, v^4, v^6, v^8
		cdf  func(float64) float64
	}{
		{"normal", func(s *torch.Streams, dtype gotch.DType) []float64 {
			return floats(torch.Must(s.Normal([]int{n}, dtype, gotch.CPU)))
		}, [4]float64{1, 3, 15, 105}, func(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }},
		{"uniform", func(s *torch.Streams, dtype gotch.DType) []float64 {
			x := floats(torch.Must(s.Uniform([]int{n}, dtype, gotch.CPU)))
			for i := range x {
				x[i] -= 0.5
			}
			return x
		}, [4]float64{1. / 12, 1. / 80, 1. / 448, 1. / 2304}, func(x float64) float64 { return x + 0.5 }},
	} {
		for _, dtype := range []gotch.DType{gotch.Double, gotch.Float} {
			inScope(t, func(*torch.Scope) {
				s := torch.Streams{Seed: 20260101, Chains: []uint64{5}}
				x := c.draw(&s, dtype)
				for k := 1; k <= 4; k++ {
					mean := 0.0
					if k%2 == 0 {
						mean = c.even[k/2-1]
					}
					se := math.Sqrt((c.even[k-1] - mean*mean) / n)
					assert.InDelta(t, mean, moment(x, power(k)), 4*se, "%s %v: moment %d", c.name, dtype, k)
				}
				assert.Less(t, kolmogorov(x, c.cdf), critical, "%s %v", c.name, dtype)

				// Neighbours, the two of a pair, and their sizes are uncorrelated: each product of independent
				// centred numbers has variance (E v²)².
				v2 := c.even[0]
				for lag := 1; lag <= 4; lag++ {
					var r, r2 float64
					for i := lag; i < n; i++ {
						r += x[i] * x[i-lag]
						r2 += (x[i]*x[i] - v2) * (x[i-lag]*x[i-lag] - v2)
					}
					assert.InDelta(t, 0, r/n/v2, 4/math.Sqrt(n), "%s %v: lag %d", c.name, dtype, lag)
					assert.InDelta(t, 0, r2/n/(c.even[1]-v2*v2), 4/math.Sqrt(n), "%s %v: squares, lag %d", c.name, dtype, lag)
				}
			})
		}
	}
}

// Chains and seeds next to each other, and the same ones at other positions, are uncorrelated: with 50,000 numbers
// each, the correlation of independent ones has standard error 1/√50000. So are the squares.
func TestChainsAreIndependent(t *testing.T) {
	const n = 50000
	inScope(t, func(*torch.Scope) {
		var rows [][]float64
		for _, c := range []struct{ seed, chain, offset uint64 }{
			{1, 0, 0}, {1, 1, 0}, {1, 2, 0}, {1, 3, 0}, {1, 64, 0}, {1, 1 << 32, 0}, {2, 0, 0}, {3, 0, 0}, {1 << 32, 0, 0},
			{0, 1, 0}, {1, 0, n / 2}, {1, 0, 1 << 32},
		} {
			s := torch.Streams{Seed: c.seed, Chains: []uint64{c.chain}, Offset: c.offset}
			rows = append(rows, normals(&s, n))
		}
		for a := range rows {
			for b := range a {
				var r, r2 float64
				for i := range n {
					x, y := rows[a][i], rows[b][i]
					r += x * y
					r2 += (x*x - 1) * (y*y - 1) / 2
				}
				assert.InDelta(t, 0, r/n, 4/math.Sqrt(n), "streams %d and %d", a, b)
				assert.InDelta(t, 0, r2/n, 4/math.Sqrt(n), "squares of streams %d and %d", a, b)
			}
		}
	})
}
