package diag

import (
	"math"

	"github.com/kelvin-ppl/kelvin/internal/sample"
)

// RHat is the rank-normalised split R-hat of the chains of one scalar: the larger one of R-hat of
// the normal scores of x, which sees chains that differ in location, and of |x - median|, which sees chains that differ in
// spread.
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

// rhatFolded is the split R-hat of the normal scores of |x - median|: it sees chains that differ in spread. The median is
// that of all draws, as in posterior and in the summary of ArviZ; az.rhat leaves out the middle draws of odd chains. It is
// NaN where |x - median| is the same for all draws.
func rhatFolded(u [][]float64) float64 {
	halves := split(folded(u))
	if low, high := sample.Extremes(halves); low == high {
		return math.NaN()
	}
	return rhat(normalScores(halves))
}

// rhat is R of m chains of n draws, split or not, with the variance of the chain means times n as B and the mean of the
// variances as W (Gelman, Carlin, Stern, Dunson, Vehtari and Rubin 2013, Bayesian Data Analysis, third edition, section
// 11.4):
//
//	R = sqrt((B/W + n - 1) / n)
func rhat(x [][]float64) float64 {
	n := float64(len(x[0]))
	means, within := make([]float64, len(x)), 0.0
	for i, c := range x {
		m, v := sample.MeanVar(c)
		means[i] = m
		within += v / float64(len(x))
	}
	_, between := sample.MeanVar(means)
	if between == 0 && within == 0 {
		return math.NaN()
	}
	return math.Sqrt((n*between/within + n - 1) / n)
}
