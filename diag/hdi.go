package diag

import (
	"math"
	"slices"
)

// HDI is the highest-density interval of draws with the probability prob: of the intervals between order statistics
// x(i) and x(i+k), k = floor(prob n), the narrowest, and of equally narrow ones the lowest. It is one interval, also where
// the density has two peaks. Chen and Shao (1999), Journal of Computational and Graphical Statistics 8, 69-92; as in ArviZ.
//
// Both ends are NaN if a draw is NaN or there are none. prob = 1 is the range of the draws. An [ErrRange] says that prob
// is not above 0 and at most 1.
func HDI(x []float64, prob float64) (low, high float64, err error) {
	if !(prob > 0 && prob <= 1) {
		return math.NaN(), math.NaN(), failf(ErrRange, "hdi: probability is %v, want above 0 and at most 1", prob)
	}
	sorted := slices.Clone(x)
	slices.Sort(sorted) // NaNs come first
	low, high = hdiOfSorted(sorted, prob)
	return low, high, nil
}

func hdiOfSorted(x []float64, prob float64) (low, high float64) {
	n := len(x)
	if n == 0 || math.IsNaN(x[0]) {
		return math.NaN(), math.NaN()
	}
	k := min(int(prob*float64(n)), n-1)
	best := 0
	for i := 1; i+k < n; i++ {
		if x[i+k]-x[i] < x[best+k]-x[best] {
			best = i
		}
	}
	return x[best], x[best+k]
}
