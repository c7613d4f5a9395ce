package diag

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/kelvin-ppl/kelvin/internal/sample"
)

// RHat is the rank-normalised split R-hat of the chains of one scalar: the larger one of R-hat of the normal scores of
// x, which sees chains that differ in location, and of |x - median|, which sees chains that differ in spread. It is
// near 1 when the chains agree with each other and with themselves over time; above 1.01 they should not be used. It
// needs no moments, and sees chains that differ in location and chains that differ in spread.
//
// Vehtari, Gelman, Simpson, Carpenter and Bürkner (2021). NaN is explained in the package comment; where
// chains are constant but different it is +Inf or very large. One chain is compared half with half, as posterior does;
// ArviZ gives NaN for one. Where |x - median| is the same for all draws, as of a fair coin, the bulk decides alone.
func RHat(x [][]float64) float64 {
	return over(x, func(u [][]float64) float64 { return rhatOf(normalScores(split(u)), u) })
}

// rhatOf is RHat of u, whose split normal scores are given.
func rhatOf(scores, u [][]float64) float64 {
	bulk, tail := rhat(scores), rhatFolded(u)
	if math.IsNaN(tail) { // draws of two values only: |x - median| is constant
		return bulk
	}
	return max(bulk, tail)
}

// rhatFolded is the split R-hat of the normal scores of |x - median|: it sees chains that differ in spread. The median
// is that of all draws, as in posterior and in the summary of ArviZ; az.rhat leaves out the middle draws of odd chains.
// It is NaN where |x - median| is the same for all draws.
func rhatFolded(u [][]float64) float64 {
	halves := split(folded(u))
	if low, high := sample.Extremes(halves); low == high {
		return math.NaN()
	}
	return rhat(normalScores(halves))
}

// rhat is R of m chains of n draws, split or not, with the variance of the chain means times n as B and the
// mean of the variances as W (Gelman, Carlin, Stern, Dunson, Vehtari and Rubin 2013, Bayesian Data Analysis,
// third edition, section 11.4):
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

// disagree compares R-hat of u with chance: limit is the R-hat that chains of one law exceed with probability alpha,
// and beyond says that R-hat is larger. The two parts of R-hat, location and spread, have limits of their own.
func disagree(u [][]float64, alpha float64) (limit float64, beyond bool) {
	halves := split(folded(u))
	largest := 0.0
	for _, z := range [][][]float64{normalScores(split(u)), normalScores(halves)} {
		r := rhat(z)
		if math.IsNaN(r) { // |x - median| is constant
			continue
		}
		explained := rhatByChance(z, alpha)
		beyond = beyond || r > explained
		if r > largest {
			largest, limit = r, explained
		}
	}
	return limit, beyond
}

// rhatByChance is what R-hat of m chains of n draws exceeds with probability alpha where all have the same law. The
// variance of the chain means is then v χ²/(m-1), with m-1 degrees of freedom and v the variance of the mean of a
// chain, so that with the mean W of the variances in the chains
//
//	R² = (n-1)/n + v χ²/((m-1) W)
//
// v is taken from the autocovariances in the chains alone, since differences between chains
// must not explain themselves:
//
//	v = (c(0) + 2 Σ (1 - t/n) c(t)) / n / (1 - u),  u = (1 + 2 Σ (1 - t/n)) / n
//
// over the lags before Geyer's first pair that is not positive. Autocovariances about the mean of a chain are smaller
// by v; 1 - u makes up for that.
func rhatByChance(z [][]float64, alpha float64) float64 {
	n, m := len(z[0]), float64(len(z))
	c := make([]float64, n)
	newTransform(n).autocovariance(c, z...)
	if c[0] == 0 { // no chain moved
		return 1
	}
	sum, lags := -c[0], -1.0
	for t := 0; t+1 < n && c[t]+c[t+1] > 0; t += 2 {
		for _, lag := range []int{t, t + 1} {
			weight := 2 * (1 - float64(lag)/float64(n))
			sum += weight * c[lag]
			lags += weight
		}
	}
	v := max(sum, 0) / float64(n) / (1 - min(lags/float64(n), 0.8))
	within := c[0] * float64(n) / float64(n-1)
	quantile := distuv.ChiSquared{K: m - 1}.Quantile(1 - alpha)
	return math.Sqrt(float64(n-1)/float64(n) + quantile/(m-1)*v/within)
}
