package report

import (
	"math"
	"strings"
)

// Numbers of plots are embedded as two characters each: 12 bits, far finer than a pixel. The last code is a gap.
const (
	alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	codes    = 4095 // of numbers: 0 to 4094
)

// pack writes numbers of [low, high] as text. Those outside are moved to the nearer end; NaN and infinities are gaps.
// Where low and high are equal, all are in the middle.
func pack(x []float64, low, high float64) string {
	var b strings.Builder
	b.Grow(2 * len(x))
	for _, v := range x {
		k := codes
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			k = int(math.Round(within(v, low, high) * (codes - 1)))
		}
		b.WriteByte(alphabet[k>>6])
		b.WriteByte(alphabet[k&63])
	}
	return b.String()
}

// within is where v lies in [low, high], from 0 to 1. The difference of large numbers may overflow, and then halves are
// compared; half of the smallest number would be 0.
func within(v, low, high float64) float64 {
	if !(low < high) {
		return 0.5
	}
	if wide := high - low; !math.IsInf(wide, 0) {
		return min(max((min(max(v, low), high)-low)/wide, 0), 1)
	}
	return min(max((v/2-low/2)/(high/2-low/2), 0), 1)
}

// finiteRange is the range of the finite numbers; ok is false if no number is finite.
func finiteRange(x ...[]float64) (low, high float64, ok bool) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, c := range x {
		for _, v := range c {
			if !math.IsNaN(v) && !math.IsInf(v, 0) {
				low, high = min(low, v), max(high, v)
			}
		}
	}
	return low, high, low <= high
}

// downsample is at most points numbers that show x as a line does: all of x, or of each of points/2 stretches the
// lowest and the highest finite number, in their order. A stretch without finite numbers is a gap of two NaNs. points
// is at least 2.
func downsample(x []float64, points int) []float64 {
	if len(x) <= points {
		return x
	}
	stretches := points / 2
	y := make([]float64, 0, 2*stretches)
	for s := range stretches {
		from, to := s*len(x)/stretches, (s+1)*len(x)/stretches
		low, high := -1, -1
		for i := from; i < to; i++ {
			if math.IsNaN(x[i]) || math.IsInf(x[i], 0) {
				continue
			}
			if low < 0 || x[i] < x[low] {
				low = i
			}
			if high < 0 || x[i] > x[high] {
				high = i
			}
		}
		switch {
		case low < 0:
			y = append(y, math.NaN(), math.NaN())
		case low <= high:
			y = append(y, x[low], x[high])
		default:
			y = append(y, x[high], x[low])
		}
	}
	return y
}
