package sample

import "math"

// Moments is the mean and the standard deviation (divisor n-1) of at least one number.
//
// Two passes with a correction (Chan, Golub and LeVeque 1983, The American Statistician 37, equation 1.7): with m the
// rounded mean and e = sum(x - m), the mean is m + e/n and the variance (sum((x - m)^2) - e^2/n) / (n - 1). The
// rounding error of m drops out, so that 1e9 + noise loses nothing but what the numbers themselves have lost. Numbers
// are scaled by a power of two, which is exact, so that no square overflows or vanishes.
//
// Of equal numbers the standard deviation is exactly 0, and of a single number NaN. A NaN gives NaN. With infinities
// the mean is infinite, or NaN if they are of both signs, and the standard deviation is NaN.
func Moments(x []float64) (mean, sd float64) {
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

// MeanVar is the mean and the variance (divisor n-1), in two passes with a correction (Chan, Golub and LeVeque 1983).
func MeanVar(x []float64) (mean, variance float64) {
	n := float64(len(x))
	m := 0.0
	for _, v := range x {
		m += v / n
	}
	e, squares := 0.0, 0.0
	for _, v := range x {
		d := v - m
		e += d
		squares += d * d
	}
	return m + e/n, max(squares-e*e/n, 0) / (n - 1)
}

// Extremes are the lowest and the highest number, NaN if any is.
func Extremes(x [][]float64) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, c := range x {
		for _, v := range c {
			low, high = min(low, v), max(high, v) // min and max of a NaN are NaN
		}
	}
	return low, high
}

// Mapped applies f to every draw of a copy.
func Mapped(x [][]float64, f func(float64) float64) [][]float64 {
	y := make([][]float64, len(x))
	for i, c := range x {
		y[i] = make([]float64, len(c))
		for j, v := range c {
			y[i][j] = f(v)
		}
	}
	return y
}

// LogSumExp is log Σ exp(x), -Inf for no numbers.
func LogSumExp(x []float64) float64 {
	highest := math.Inf(-1)
	for _, v := range x {
		highest = max(highest, v)
	}
	if math.IsInf(highest, 0) || math.IsNaN(highest) {
		return highest
	}
	sum := 0.0
	for _, v := range x {
		sum += math.Exp(v - highest)
	}
	return highest + math.Log(sum)
}
