package sample

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func sum(x []float64) (s float64) {
	for _, v := range x {
		s += v
	}
	return s
}

// The kernel carries no mass over the ends, so the integral is 1 whatever the draws.
func TestKDEIntegratesToOne(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	of := func(n int, f func() float64) []float64 {
		x := make([]float64, n)
		for i := range x {
			x[i] = f()
		}
		return x
	}
	for name, x := range map[string][]float64{
		"normal":      of(1000, r.NormFloat64),
		"uniform":     of(1000, r.Float64),
		"exponential": of(1000, r.ExpFloat64),
		"coin":        of(100, func() float64 { return float64(r.IntN(2)) }),
		"two":         {1, 2},
		"huge":        {-1.7e308, 1.7e308, 0, 1},
		"tiny":        {1e-310, 2e-310, 5e-310},
		"gaps":        {1, 2, math.NaN(), 4, math.Inf(-1)},
	} {
		low, high := math.Inf(1), math.Inf(-1)
		for _, v := range x {
			if Finite(v) {
				low, high = min(low, v), max(high, v)
			}
		}
		for _, cells := range []int{7, 40, 120} {
			d := Density(x, low, high, cells)
			if got := sum(d) / float64(cells); math.Abs(got-1) > 1e-12 {
				t.Errorf("%s: the integral over %d cells is %v, want 1", name, cells, got)
			}
		}
	}
}

// Draws outside of the view are left out of the integral and stay in its divisor.
func TestKDEOfPartIntegratesToShare(t *testing.T) {
	x := []float64{0, 0.2, 0.4, 0.6, 0.8, 1, 5, -7, 30, 1e9}
	if got := sum(Density(x, 0, 1, 50)) / 50; math.Abs(got-0.6) > 1e-12 {
		t.Errorf("the integral is %v, want 0.6", got)
	}
}

// The expected estimate of N(0, 1) draws is the density of N(0, 1 + h²); its standard error at 0 is about
// sqrt(φ(0)/(2 sqrt(π) n h)).
func TestKDEOfNormalDraws(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	const n, low, high, cells = 20000, -6.0, 6.0, 120
	x := make([]float64, n)
	for i := range x {
		x[i] = r.NormFloat64()
	}
	h := 0.9 * math.Pow(n, -0.2)
	d := Density(x, low, high, cells)
	for i, got := range d {
		at := low + (high-low)*(float64(i)+0.5)/cells
		variance := 1 + h*h
		want := math.Exp(-at*at/2/variance) / math.Sqrt(2*math.Pi*variance) * (high - low)
		se := math.Sqrt(0.4/(2*math.Sqrt(math.Pi)*n*h)) * (high - low)
		if math.Abs(got-want) > 4*se {
			t.Errorf("the density at %v is %v, want %v ± %v", at, got, want, se)
		}
	}
}

func TestKDEWithoutDraws(t *testing.T) {
	for _, d := range [][]float64{Density(nil, 0, 1, 10), Density([]float64{math.NaN()}, 0, 1, 10),
		Density([]float64{1}, 1, 1, 10)} {
		if d != nil {
			t.Errorf("a density of nothing is %v, want none", d)
		}
	}
}

func TestReflected(t *testing.T) {
	for i, want := range map[int]int{-1: 0, -4: 3, 0: 0, 3: 3, 4: 3, 7: 0, 8: 0, 9: 1, -9: 0} {
		if got := reflected(i, 4); got != want {
			t.Errorf("cell %d of 4 is folded to %d, want %d", i, got, want)
		}
	}
}

// Half of the draws of a Cauchy distribution lie in [-1, 1]; the whole range would hide them.
func TestViewCutsHeavyTails(t *testing.T) {
	x := make([]float64, 4001)
	for i := range x {
		x[i] = math.Tan(math.Pi * (float64(i) + 0.5 - 4001.0/2) / 4001)
	}
	low, high, ok := View(x)
	full := slices.Min(x)
	if !ok || low < -200 || high > 200 || full > -1000 {
		t.Errorf("the view is %v to %v of %v", low, high, full)
	}
	if low, high, _ := View([]float64{1, 2, 3, 4}); low != 1 || high != 4 {
		t.Errorf("the view of light tails is %v to %v, want the range", low, high)
	}
}

// A chain that stood still has a high peak, which must not flatten three others.
func TestCeiling(t *testing.T) {
	if got := Ceiling([][]float64{{1, 2}, {2, 1}, {2.2}, {50}}); got != 6 {
		t.Errorf("the ceiling is %v, want 3 times 2", got)
	}
	if got := Ceiling([][]float64{{1}, nil, {2}}); got != 2 {
		t.Errorf("the ceiling is %v, want 2", got)
	}
}
