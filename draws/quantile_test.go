package draws

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestQuantile(t *testing.T) {
	for _, c := range []struct {
		name    string
		x, p, q []float64
	}{
		// h = 4p; 0.1 is at h = 0.4, between 1 and 2.
		{"1 to 5", []float64{3, 1, 5, 2, 4}, []float64{0, 0.1, 0.25, 0.5, 0.9, 1}, []float64{1, 1.4, 2, 3, 4.6, 5}},
		// The example of NumPy's documentation of quantile and percentile: the median of 10 7 4 3 2 1 is 3.5.
		{"NumPy", []float64{10, 7, 4, 3, 2, 1}, []float64{0.5}, []float64{3.5}},
		// statistics.quantiles([12, 15, 21, 22, 30, 41, 57], n=4, method="inclusive") of Python is [18.0, 22.0, 35.5].
		{"Python", []float64{57, 12, 15, 30, 21, 41, 22}, []float64{0.25, 0.5, 0.75}, []float64{18, 22, 35.5}},
		// The same for these eight squares with n=10, without the median; 0.8 is at h = 5.6, so 25 + 0.6 (36 - 25).
		{"Python, tenths", []float64{0, 1, 4, 9, 16, 25, 36, 49}, []float64{0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9},
			[]float64{0.7, 2.2, 4.5, 8, 17.8, 24.1, 31.6, 39.9}},
		{"single", []float64{7}, []float64{0, 0.3, 1}, []float64{7, 7, 7}},
		{"ties", []float64{0.1, 0.1, 0.1}, []float64{0.05, 0.77}, []float64{0.1, 0.1}},
		{"defaults", []float64{0, 100}, nil, []float64{5, 50, 95}},
		{"NaN", []float64{1, nan, 2}, []float64{0, 0.5}, []float64{nan, nan}},
		{"Inf", []float64{1, 2, inf}, []float64{0.25, 0.5, 0.51, 1}, []float64{1.5, 2, inf, inf}},
		{"-Inf", []float64{1, 2, -inf}, []float64{0, 0.49, 0.5}, []float64{-inf, -inf, 1}},
		{"two Inf", []float64{1, inf, inf}, []float64{0.75}, []float64{inf}},
		{"-Inf to Inf", []float64{inf, -inf}, []float64{0, 0.5, 1}, []float64{-inf, nan, inf}},
		// The gap overflows; (1 - 0.25) (-m) + 0.25 m is -m/2.
		{"huge gap", []float64{math.MaxFloat64, -math.MaxFloat64}, []float64{0.25}, []float64{-math.MaxFloat64 / 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := must(column(t, c.x...).Quantile("x", c.p...))(t)
			if len(q) != len(c.q) {
				t.Fatalf("%d quantiles, want %d", len(q), len(c.q))
			}
			for k := range q {
				near(t, "quantile", q[k][0], c.q[k], 4e-16)
			}
		})
	}
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
			q := quantileOfSorted(x, p)
			if q < last {
				t.Fatalf("n %d, p %v: %v after %v", n, p, q, last)
			}
			last = q
			j := int(math.Floor(p * float64(n-1)))
			if q < x[j] || q > x[min(j+1, n-1)] {
				t.Fatalf("n %d, p %v: %v is not between order statistics %d and %d", n, p, q, j, j+1)
			}
			near(t, "mirrored", quantileOfSorted(mirrored, 1-p), -q, 1e-14)
		}
	}
}
