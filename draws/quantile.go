package draws

import (
	"math"
	"slices"
)

// defaultProbabilities are those of a summary that names none.
var defaultProbabilities = []float64{0.05, 0.5, 0.95}

// probabilities are p, or the default ones if p is empty; all must be in [0, 1].
func probabilities(p []float64) ([]float64, error) {
	if len(p) == 0 {
		return defaultProbabilities, nil
	}
	for i, v := range p {
		if !(v >= 0 && v <= 1) { // a NaN too
			return nil, failf(ErrRange, "probability %d is %v, want 0 to 1", i, v)
		}
	}
	return p, nil
}

// prepare sorts x for quantileOfSorted. With a NaN, which has no rank, all of x becomes NaN.
func prepare(x []float64) {
	if slices.ContainsFunc(x, math.IsNaN) {
		for i := range x {
			x[i] = math.NaN()
		}
		return
	}
	slices.Sort(x)
}

// quantileOfSorted is the sample quantile of type 7 (Hyndman and Fan 1996, The American Statistician 50, 361-365), the
// default of R and of NumPy: with h = (n - 1) p and j = floor(h),
//
//	q = x[j] + (h - j) (x[j+1] - x[j])
//
// of the order statistics x[0] <= ... <= x[n-1], interpolated from the nearer end, so that q never falls as p rises.
// Between a finite number and an infinite one it is infinite; between -Inf and +Inf, NaN.
func quantileOfSorted(x []float64, p float64) float64 {
	h := float64(len(x)-1) * p
	j := int(h)
	t := h - float64(j)
	if t == 0 || j+1 == len(x) || x[j] == x[j+1] {
		return x[j]
	}
	a, b := x[j], x[j+1]
	gap := b - a
	switch {
	case math.IsInf(gap, 0): // an infinity, or finite numbers too far apart
		return (1-t)*a + t*b
	case t < 0.5:
		return a + gap*t
	default:
		return b - gap*(1-t)
	}
}
