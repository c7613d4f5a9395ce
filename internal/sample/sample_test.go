package sample

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

var nan, inf = math.NaN(), math.Inf(1)

// same is equality in which NaN equals NaN, and 0 and -0 differ.
func same(a, b float64) bool {
	return math.Float64bits(a) == math.Float64bits(b) || math.IsNaN(a) && math.IsNaN(b)
}

func TestMoments(t *testing.T) {
	tiny, huge := math.SmallestNonzeroFloat64, math.MaxFloat64
	for _, c := range []struct {
		name     string
		x        []float64
		mean, sd float64
	}{
		// 1..n has mean (n + 1) / 2 and variance n (n + 1) / 12 with divisor n - 1.
		{"1 to 5", []float64{1, 2, 3, 4, 5}, 3, math.Sqrt(2.5)},
		// Deviations -6 6 9 -9: their squares sum to 234, which over 3 is 78, exactly, as if there were no offset.
		{"offset 1e9", []float64{1e9 + 4, 1e9 + 16, 1e9 + 19, 1e9 + 1}, 1e9 + 10, math.Sqrt(78)},
		{"offset -1e9", []float64{-1e9 - 4, -1e9 - 16, -1e9 - 19, -1e9 - 1}, -1e9 - 10, math.Sqrt(78)},
		{"single", []float64{7}, 7, nan},
		{"equal", []float64{0.1, 0.1, 0.1}, 0.1, 0}, // (0.1 + 0.1 + 0.1) / 3 is not 0.1
		{"zeros", []float64{0, 0}, 0, 0},
		{"huge", []float64{huge, huge / 2}, 0.75 * huge, huge / 4 * math.Sqrt2}, // the sum and the squares overflow
		{"opposite", []float64{1e300, -1e300}, 0, 1e300 * math.Sqrt2},
		{"small", []float64{1e-200, 3e-200}, 2e-200, 1e-200 * math.Sqrt2}, // the squares vanish
		{"subnormal", []float64{2 * tiny, 4 * tiny, 6 * tiny}, 4 * tiny, 2 * tiny},
		{"NaN", []float64{1, nan, 3}, nan, nan},
		{"NaN first", []float64{nan, 2, 3}, nan, nan},
		{"NaN and Inf", []float64{inf, nan}, nan, nan},
		{"Inf", []float64{1, inf, 3}, inf, nan},
		{"-Inf", []float64{1, -inf, 3}, -inf, nan},
		{"both", []float64{-inf, inf}, nan, nan},
		{"all Inf", []float64{inf, inf}, inf, nan},
		{"single Inf", []float64{inf}, inf, nan},
	} {
		t.Run(c.name, func(t *testing.T) {
			mean, sd := Moments(c.x)
			for _, v := range []struct {
				what      string
				got, want float64
			}{{"mean", mean, c.mean}, {"sd", sd, c.sd}} {
				if !same(v.got, v.want) && !(math.Abs(v.got-v.want) <= 4e-16*math.Abs(v.want)) {
					t.Errorf("%s: got %v, want %v", v.what, v.got, v.want)
				}
			}
		})
	}
}

func TestMeanVar(t *testing.T) {
	m, v := MeanVar([]float64{1e9 + 1, 1e9 + 2, 1e9 + 3, 1e9 + 4})
	require.Equal(t, 1e9+2.5, m)
	require.InDelta(t, 5.0/3, v, 1e-12)
}

// A quantile never falls as p rises, is between the order statistics around it, and mirrors: q(-x, p) = -q(x, 1 - p).
func TestQuantileProperties(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for n := 1; n < 40; n++ {
		x, mirrored := make([]float64, n), make([]float64, n)
		for i := range x {
			x[i] = rng.NormFloat64()
			mirrored[i] = -x[i]
		}
		slices.Sort(x)
		slices.Sort(mirrored)
		last := math.Inf(-1)
		for k := range 1025 {
			p := float64(k) / 1024 // exact, and so is 1 - p
			q := Quantile(x, p)
			if q < last {
				t.Fatalf("n %d, p %v: %v after %v", n, p, q, last)
			}
			last = q
			j := int(math.Floor(p * float64(n-1)))
			if q < x[j] || q > x[min(j+1, n-1)] {
				t.Fatalf("n %d, p %v: %v is not between order statistics %d and %d", n, p, q, j, j+1)
			}
			if m := Quantile(mirrored, 1-p); !(math.Abs(m+q) <= 1e-14*max(1, math.Abs(q))) {
				t.Errorf("mirrored: got %v, want %v", m, -q)
			}
		}
	}
}

// Order puts the quantiles where a sort puts them, also among equal and infinite numbers, and for a few.
func TestOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := 1; n < 300; n += 1 + n/10 {
		for round := range 20 {
			x := make([]float64, n)
			for i := range x {
				switch x[i] = rng.NormFloat64(); round % 4 {
				case 1:
					x[i] = math.Round(x[i])
				case 2:
					x[i] = float64(i)
				case 3:
					x[i] /= math.Round(2 * rng.Float64())
				}
			}
			p := []float64{rng.Float64(), 0, 1, 0.5, rng.Float64()}
			sorted := slices.Clone(x)
			Sort(sorted)
			Order(x, p...)
			for _, q := range p {
				want, got := Quantile(sorted, q), Quantile(x, q)
				require.True(t, got == want || same(got, want), "%d numbers, round %d, at %v: %v, %v", n, round, q, got, want)
			}
		}
	}
}
