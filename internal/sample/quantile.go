package sample

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"
)

// Sort sorts x for [Quantile]. With a NaN, which has no rank, all of x becomes NaN.
func Sort(x []float64) {
	if slices.ContainsFunc(x, math.IsNaN) {
		for i := range x {
			x[i] = math.NaN()
		}
		return
	}
	slices.Sort(x)
}

// Quantile is the sample quantile of type 7 (Hyndman and Fan 1996, The American Statistician 50, 361-365), the
// default of R and of NumPy: with h = (n - 1) p and j = floor(h),
//
//	q = x[j] + (h - j) (x[j+1] - x[j])
//
// of the order statistics x[0] <= ... <= x[n-1], interpolated from the nearer end, so that q never falls as p rises.
// Between a finite number and an infinite one it is infinite; between -Inf and +Inf, NaN.
func Quantile(x []float64, p float64) float64 {
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

// Order moves the elements of x so far that [Quantile] of each p is what it is of x sorted. It takes linear time. With
// a NaN all of x becomes NaN, as [Sort] has it.
func Order(x []float64, p ...float64) {
	if slices.ContainsFunc(x, math.IsNaN) {
		Sort(x)
		return
	}
	for _, q := range p {
		j := int(float64(len(x)-1) * q)
		for _, k := range []int{j, min(j+1, len(x)-1)} {
			nth(x, k)
		}
	}
}

// nth moves the element of rank k to its place, those below before it and those above behind it (Hoare 1961).
func nth(x []float64, k int) {
	for lo, hi := 0, len(x)-1; lo < hi; {
		a, b, c := x[lo], x[lo+(hi-lo)/2], x[hi]
		pivot := max(min(a, b), min(max(a, b), c))
		i, j := lo, hi
		for i <= j {
			for x[i] < pivot {
				i++
			}
			for x[j] > pivot {
				j--
			}
			if i <= j {
				x[i], x[j] = x[j], x[i]
				i, j = i+1, j-1
			}
		}
		switch {
		case k <= j:
			hi = j
		case k >= i:
			lo = i
		default:
			return
		}
	}
}

// ClopperPearson is the interval of the probability of an event that was seen in k of n trials (Clopper and Pearson
// 1934, Biometrika 26).
func ClopperPearson(k, n int, level float64) (low, high float64) {
	low, high = 0, 1
	tail := (1 - level) / 2
	if k > 0 {
		low = mathext.InvRegIncBeta(float64(k), float64(n-k+1), tail)
	}
	if k < n {
		high = mathext.InvRegIncBeta(float64(k+1), float64(n-k), 1-tail)
	}
	return low, high
}

// Describe is the mean, the standard deviation (divisor n-1) and the quantiles of x, which is sorted on the way; see
// [Moments], [Sort] and [Quantile].
func Describe(x, probabilities []float64) (mean, sd float64, quantiles []float64) {
	mean, sd = Moments(x)
	Sort(x)
	quantiles = make([]float64, len(probabilities))
	for k, p := range probabilities {
		quantiles[k] = Quantile(x, p)
	}
	return mean, sd, quantiles
}
