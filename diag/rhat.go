package diag

import "math"

// RHat is the rank-normalised split R-hat of the chains of one scalar: the larger one of [RHatBulk] and [RHatFolded].
// It is near 1 when the chains agree with each other and with themselves over time; above 1.01 they should not be used.
// It needs no moments, and sees chains that differ in location and chains that differ in spread.
//
// Vehtari, Gelman, Simpson, Carpenter and Bürkner (2021). NaN is explained in the package comment; where
// chains are constant but different it is +Inf or very large. One chain is compared half with half, as posterior does;
// ArviZ gives NaN for one. Where |x - median| is the same for all draws, as of a fair coin, the bulk decides alone.
func RHat(x [][]float64) float64 {
	u := usable(x)
	if u == nil {
		return math.NaN()
	}
	return rhatOf(normalScores(split(u)), u)
}

// rhatOf is RHat of u, whose split normal scores are given.
func rhatOf(scores, u [][]float64) float64 {
	bulk, tail := rhat(scores), rhatFolded(u)
	if math.IsNaN(tail) { // draws of two values only: |x - median| is constant
		return bulk
	}
	return max(bulk, tail)
}

// RHatBulk is the split R-hat of the normal scores of the ranks: it sees chains that differ in location.
// Vehtari et al. (2021).
func RHatBulk(x [][]float64) float64 {
	u := usable(x)
	if u == nil {
		return math.NaN()
	}
	return rhat(normalScores(split(u)))
}

// RHatFolded is the split R-hat of the normal scores of |x - median|: it sees chains that differ in spread. The median is
// that of all draws, as in posterior and in the summary of ArviZ; az.rhat leaves out the middle draws of odd chains.
// Vehtari et al. (2021). It is NaN where |x - median| is the same for all draws.
func RHatFolded(x [][]float64) float64 {
	u := usable(x)
	if u == nil {
		return math.NaN()
	}
	return rhatFolded(u)
}

func rhatFolded(u [][]float64) float64 {
	halves := split(folded(u))
	if low, high := extremes(halves); low == high {
		return math.NaN()
	}
	return rhat(normalScores(halves))
}

// RHatSplit is the split R-hat without ranks (Gelman, Carlin, Stern, Dunson, Vehtari and Rubin 2013, Bayesian Data
// Analysis, third edition, section 11.4): over the 2m half chains of n draws, with the variance of the chain means times
// n as B and the mean of the variances as W,
//
//	R = sqrt((B/W + n - 1) / n)
//
// It needs finite variances, and misses chains of equal mean but different spread.
func RHatSplit(x [][]float64) float64 {
	u := usable(x)
	if u == nil {
		return math.NaN()
	}
	y, _ := standardised(u)
	return rhat(split(y))
}

// RHatClassic is the R-hat of whole chains (Gelman and Rubin 1992, Statistical Science 7, 457-472, in the form of
// [RHatSplit] without the splitting). It needs two chains, else it is NaN, and misses chains that drift together.
func RHatClassic(x [][]float64) float64 {
	u := usable(x)
	if len(u) < 2 {
		return math.NaN()
	}
	y, _ := standardised(u)
	return rhat(y)
}

// rhat is R of chains of equal length that have been split or not.
func rhat(x [][]float64) float64 {
	n := float64(len(x[0]))
	means, within := make([]float64, len(x)), 0.0
	for i, c := range x {
		m, v := meanVar(c)
		means[i] = m
		within += v / float64(len(x))
	}
	_, between := meanVar(means)
	if between == 0 && within == 0 {
		return math.NaN()
	}
	return math.Sqrt((n*between/within + n - 1) / n)
}
