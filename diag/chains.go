package diag

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/sample"
)

// minDraws is the smallest number of draws of a chain for which anything is defined.
const minDraws = 4

// essDraws is the smallest number for which there is an effective sample size: halves of 3.
const essDraws = 6

// usable cuts chains to the length of the shortest. It is nil where nothing is defined: no chains, too few draws, a
// draw that is not finite, draws that are all equal. The slices are those of x.
func usable(x [][]float64) [][]float64 {
	if len(x) == 0 {
		return nil
	}
	n := len(x[0])
	for _, c := range x[1:] {
		n = min(n, len(c))
	}
	if n < minDraws {
		return nil
	}
	y := make([][]float64, len(x))
	for i, c := range x {
		y[i] = c[:n:n]
	}
	if low, high := sample.Extremes(y); !(low < high) || math.IsInf(low, 0) || math.IsInf(high, 0) {
		return nil // equal, NaN or infinite
	}
	return y
}

// split cuts each chain in two halves, without the middle draw of an odd chain: 2m chains of floor(n/2) draws.
func split(x [][]float64) [][]float64 {
	halves := make([][]float64, 0, 2*len(x))
	for _, c := range x {
		h := len(c) / 2
		halves = append(halves, c[:h], c[len(c)-h:])
	}
	return halves
}

// pooled is one slice with all draws, chain after chain.
func pooled(x [][]float64) []float64 {
	return slices.Concat(x...)
}

// standardised maps finite draws that are not all equal to 2^-e (x - a), with a the least of them, which rounds nothing
// that is near to it, or their midpoint where they are too far apart, and e such that results are at most about 1: what
// follows then neither overflows nor cancels. Ratios of variances are unchanged, and variances are 4^-e times as large.
func standardised(x [][]float64) (y [][]float64, e int) {
	low, high := sample.Extremes(x)
	a := low
	if _, e = math.Frexp(high - low); math.IsInf(high-low, 1) {
		a, e = low/2+high/2, 1025
	}
	e = max(e-1, -1000)
	scale := math.Ldexp(1, -e/2) // in two steps, since 2^-e itself may overflow
	rest := math.Ldexp(1, -e-(-e/2))
	return sample.Mapped(x, func(v float64) float64 { return (v - a) * scale * rest }), e
}

// folded is 2 |x - median|, the median being that of all draws, or another multiple where that would overflow. A half
// of the smallest numbers would be rounded.
func folded(x [][]float64) [][]float64 {
	if low, high := sample.Extremes(x); math.IsInf(4*high, 0) || math.IsInf(4*low, 0) {
		x, _ = standardised(x)
	}
	all := pooled(x)
	slices.Sort(all)
	twice := 0.0
	if n := len(all); n > 0 {
		twice = all[(n-1)/2] + all[n/2]
	}
	return sample.Mapped(x, func(v float64) float64 { return math.Abs(2*v - twice) })
}

// normalScores replaces each draw by the normal quantile of its rank r among all S draws, ties having the average rank:
//
//	z = Φ⁻¹((r - 3/8) / (S + 1/4))
//
// Blom (1958); Vehtari et al. (2021).
func normalScores(x [][]float64) [][]float64 {
	all := pooled(x)
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(all[i], all[j]) })
	z := make([]float64, len(all))
	for first := 0; first < len(order); {
		last := first + 1
		for last < len(order) && all[order[last]] == all[order[first]] {
			last++
		}
		rank := float64(first+1+last) / 2 // the average of first+1 to last
		score := mathext.NormalQuantile((rank - 0.375) / (float64(len(all)) + 0.25))
		for _, i := range order[first:last] {
			z[i] = score
		}
		first = last
	}
	y := make([][]float64, len(x))
	for i, c := range x {
		y[i], z = z[:len(c)], z[len(c):]
	}
	return y
}

// checkProbability refuses probabilities outside [0, 1].
func checkProbability(what string, p float64) error {
	return sample.CheckProbability("diag", draws.ErrRange, what, p)
}
