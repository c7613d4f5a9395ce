package diag

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"
)

// minDraws is the smallest number of draws of a chain for which anything is defined.
const minDraws = 4

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
	if low, high := extremes(y); !(low < high) || math.IsInf(low, 0) || math.IsInf(high, 0) {
		return nil // equal, NaN or infinite
	}
	return y
}

// extremes are the lowest and the highest number, NaN if any is.
func extremes(x [][]float64) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, c := range x {
		for _, v := range c {
			low, high = min(low, v), max(high, v) // min and max of a NaN are NaN
		}
	}
	return low, high
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

// mapped applies f to every draw of a copy.
func mapped(x [][]float64, f func(float64) float64) [][]float64 {
	y := make([][]float64, len(x))
	for i, c := range x {
		y[i] = make([]float64, len(c))
		for j, v := range c {
			y[i][j] = f(v)
		}
	}
	return y
}

// standardised maps finite draws that are not all equal to 2^-e (x - a), with a their midpoint and e such that results
// are at most about 1: what follows then neither overflows nor cancels. Ratios of variances are unchanged, and variances
// are 4^-e times as large.
func standardised(x [][]float64) (y [][]float64, e int) {
	low, high := extremes(x)
	_, e = math.Frexp(high/2 - low/2)
	e = max(e, -1000)
	scale := math.Ldexp(1, -e/2) // in two steps, since 2^-e itself may overflow
	rest := math.Ldexp(1, -e-(-e/2))
	a := low/2 + high/2
	return mapped(x, func(v float64) float64 { return (v - a) * scale * rest }), e
}

// folded is |x - median|, the median being that of all draws.
func folded(x [][]float64) [][]float64 {
	all := pooled(x)
	slices.Sort(all)
	med := quantileOfSorted(all, 0.5)
	return mapped(x, func(v float64) float64 { return math.Abs(v - med) })
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

// meanVar is the mean and the variance (divisor n-1), in two passes with a correction (Chan, Golub and LeVeque 1983).
func meanVar(x []float64) (mean, variance float64) {
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

// quantileOfSorted is the sample quantile of type 7 (Hyndman and Fan 1996), linear between order statistics at (n - 1) p.
func quantileOfSorted(x []float64, p float64) float64 {
	h := float64(len(x)-1) * p
	j := int(h)
	t := h - float64(j)
	if t == 0 || j+1 == len(x) || x[j] == x[j+1] {
		return x[j]
	}
	return (1-t)*x[j] + t*x[j+1]
}

// checkProbability refuses probabilities outside [0, 1].
func checkProbability(what string, p float64) error {
	if !(p >= 0 && p <= 1) { // a NaN too
		return failf(ErrRange, "%s: probability is %v, want 0 to 1", what, p)
	}
	return nil
}
