package sample

import "math"

// Systematic draws n indices by weights, of any sum, with one uniform number u (Kitagawa 1996): where the grid u, 1+u,
// ..., in units of 1/n of the total, falls into their running sum. An index of weight W of a total of 1 is drawn nW
// times on average, and at least ⌊nW⌋ times. The indices do not decrease.
func Systematic(w []float64, n int, u float64) []int {
	total := 0.0
	for _, v := range w {
		total += v
	}
	out := make([]int, 0, n)
	k, sum := 0, w[0]
	for i := range n {
		for sum*float64(n) < (float64(i)+u)*total && k < len(w)-1 {
			k++
			sum += w[k]
		}
		out = append(out, k)
	}
	return out
}

// Softmax is exp(x) scaled to sum 1: weights of their logarithms.
func Softmax(x []float64) []float64 {
	norm := LogSumExp(x)
	w := make([]float64, len(x))
	for k, v := range x {
		w[k] = math.Exp(v - norm)
	}
	return w
}

// Effective is the effective sample size (Σ w)²/Σ w² of log weights.
func Effective(logW []float64) float64 {
	square := 0.0
	for _, w := range Softmax(logW) {
		square += w * w
	}
	if !(square > 0) {
		return 0
	}
	return 1 / square
}
