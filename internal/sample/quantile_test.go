package sample

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

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
