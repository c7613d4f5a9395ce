package draws

import "math"

// moments is the mean and the standard deviation (divisor n-1) of at least one number.
//
// Two passes with a correction (Chan, Golub and LeVeque 1983, The American Statistician 37, equation 1.7): with m the
// rounded mean and e = sum(x - m), the mean is m + e/n and the variance (sum((x - m)^2) - e^2/n) / (n - 1). The rounding
// error of m drops out, so that 1e9 + noise loses nothing but what the numbers themselves have lost. Numbers are scaled
// by a power of two, which is exact, so that no square overflows or vanishes.
//
// Of equal numbers the standard deviation is exactly 0, and of a single number NaN. A NaN gives NaN. With infinities the
// mean is infinite, or NaN if they are of both signs, and the standard deviation is NaN.
func moments(x []float64) (mean, sd float64) {
	lowest, highest := math.Inf(1), math.Inf(-1)
	for _, v := range x {
		lowest, highest = min(lowest, v), max(highest, v) // min and max of a NaN are NaN
	}
	switch {
	case math.IsNaN(lowest) || math.IsInf(lowest, 0) || math.IsInf(highest, 0):
		return lowest + highest, math.NaN() // (-Inf, finite), (finite, +Inf) or (-Inf, +Inf)
	case len(x) == 1:
		return x[0], math.NaN()
	case lowest == highest:
		return x[0], 0
	}
	_, exponent := math.Frexp(max(-lowest, highest))
	exponent = max(exponent, -1000) // 2^1000 is finite, and lifts the smallest numbers far enough
	scale := math.Ldexp(1, -exponent)
	n := float64(len(x))

	sum := 0.0
	for _, v := range x {
		sum += v * scale
	}
	m := sum / n
	e, squares := 0.0, 0.0
	for _, v := range x {
		dev := v*scale - m
		e += dev
		squares += dev * dev
	}
	variance := (squares - e*e/n) / (n - 1)
	return math.Ldexp(m+e/n, exponent), math.Ldexp(math.Sqrt(max(variance, 0)), exponent)
}
