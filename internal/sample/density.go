package sample

import (
	"math"
	"slices"
)

// fine is the number of cells that a kernel density is computed on for each cell that is shown.
const fine = 4

// View is the stretch of values that a density plot shows: the range of the finite draws, cut where heavy tails would
// leave nothing to see, at the 0.5% and 99.5% quantiles plus and minus their distance.
func View(x ...[]float64) (low, high float64, ok bool) {
	var all []float64
	for _, c := range x {
		for _, v := range c {
			if !math.IsNaN(v) && !math.IsInf(v, 0) {
				all = append(all, v)
			}
		}
	}
	if len(all) == 0 {
		return 0, 0, false
	}
	slices.Sort(all)
	low, high = all[0], all[len(all)-1]
	a, b := Quantile(all, 0.005), Quantile(all, 0.995)
	if w := b - a; w > 0 && !math.IsInf(w, 0) {
		low, high = max(low, a-w), min(high, b+w)
	}
	return low, high, true
}

// Density is a Gaussian kernel density of the finite draws in [low, high]: its mean over each of some cells of
// equal width, where [low, high] has length 1. Mass that the kernel would carry over an end is reflected, so
// that the mean of the cells is the share of the draws in [low, high], which is 1 if none are cut off. The
// bandwidth is Silverman's (1986),
//
//	h = 0.9 min(sd, IQR/1.34) n^(-1/5)
//
// and at least half a cell. It is nil for no finite draws, no cell, or low not below high.
func Density(x []float64, low, high float64, cells int) []float64 {
	if cells < 1 {
		return nil
	}
	var z []float64 // all finite draws, for the bandwidth
	n := cells * fine
	mass := make([]float64, n)
	for _, v := range x {
		if math.IsNaN(v) || math.IsInf(v, 0) || !(low < high) {
			continue
		}
		t := (v - low) / (high - low)
		if math.IsInf(high-low, 0) || math.IsInf(v-low, 0) { // halves would round subnormal numbers
			t = (v/2 - low/2) / (high/2 - low/2)
		}
		z = append(z, t)
		if t >= 0 && t <= 1 {
			mass[min(int(t*float64(n)), n-1)]++
		}
	}
	if len(z) == 0 {
		return nil
	}
	kernel := gaussian(max(bandwidth(z), 0.5/float64(cells)) * float64(n))
	density := make([]float64, cells)
	for i, m := range mass {
		if m == 0 {
			continue
		}
		m *= float64(cells) / float64(len(z))
		for k, w := range kernel {
			density[reflected(i+k, n)/fine] += m * w
			if k > 0 {
				density[reflected(i-k, n)/fine] += m * w
			}
		}
	}
	return density
}

// gaussian is the half of a discrete kernel from its centre on, of standard deviation h cells, cut at 4 h and of sum 1.
func gaussian(h float64) []float64 {
	kernel := make([]float64, int(4*h)+1)
	sum := 0.0
	for k := range kernel {
		r := float64(k) / h
		kernel[k] = math.Exp(-r * r / 2)
		if sum += kernel[k]; k > 0 {
			sum += kernel[k]
		}
	}
	for k := range kernel {
		kernel[k] /= sum
	}
	return kernel
}

// reflected folds a cell that is outside of [0, n) back, as often as needed.
func reflected(i, n int) int {
	i = ((i % (2 * n)) + 2*n) % (2 * n)
	if i >= n {
		i = 2*n - 1 - i
	}
	return i
}

// bandwidth is Silverman's; 0 where all are equal. Draws far outside of the view count for the quartiles only.
func bandwidth(z []float64) float64 {
	sorted := slices.Clone(z)
	slices.Sort(sorted)
	iqr := Quantile(sorted, 0.75) - Quantile(sorted, 0.25)
	mean, squares, n := 0.0, 0.0, 0.0
	for _, v := range z {
		if v < -1 || v > 2 {
			continue
		}
		n++
		d := v - mean
		mean += d / n
		squares += d * (v - mean)
	}
	if n < 2 {
		return 0
	}
	h := math.Sqrt(squares / (n - 1))
	if iqr > 0 {
		h = min(h, iqr/1.34)
	}
	return 0.9 * h * math.Pow(float64(len(z)), -0.2)
}

// Ceiling is the highest density that a plot of some densities shows: the highest peak, but at most three times the
// median one, so that a chain that stood still does not flatten the others.
func Ceiling(densities [][]float64) float64 {
	var peaks []float64
	for _, d := range densities {
		if len(d) > 0 {
			peaks = append(peaks, slices.Max(d))
		}
	}
	if len(peaks) == 0 {
		return 1
	}
	slices.Sort(peaks)
	return min(peaks[len(peaks)-1], 3*peaks[(len(peaks)-1)/2])
}
