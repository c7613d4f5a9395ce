package evidence

import "math"

// logSumExp is log Σ exp(x), −Inf for nothing.
func logSumExp(x []float64) float64 {
	largest := math.Inf(-1)
	for _, v := range x {
		largest = math.Max(largest, v)
	}
	if math.IsInf(largest, 0) || math.IsNaN(largest) {
		return largest
	}
	sum := 0.0
	for _, v := range x {
		sum += math.Exp(v - largest)
	}
	return largest + math.Log(sum)
}

// logMeanExp is log of the mean of exp(x), with the standard error of that logarithm by the delta method.
func logMeanExp(x []float64) (value, se float64) {
	n := float64(len(x))
	value = logSumExp(x) - math.Log(n)
	square := 0.0
	for _, v := range x {
		d := math.Exp(v-value) - 1
		square += d * d
	}
	return value, math.Sqrt(square / n / (n - 1))
}

// moments are mean and variance, with n − 1.
func moments(x []float64) (mean, variance float64) {
	n := float64(len(x))
	for _, v := range x {
		mean += v / n
	}
	for _, v := range x {
		variance += (v - mean) * (v - mean) / (n - 1)
	}
	return mean, variance
}

// effective is the effective sample size (Σ w)²/Σ w² of log weights.
func effective(logW []float64) float64 {
	z := logSumExp(logW)
	square := 0.0
	for _, v := range logW {
		w := math.Exp(v - z)
		square += w * w
	}
	if !(square > 0) {
		return 0
	}
	return 1 / square
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
