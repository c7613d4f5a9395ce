package diag

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/sample"
)

// NestedRHat is the nested R-hat of the chains of one scalar, in groups that started at one point each (Margossian,
// Hoffman, Sountsov, Riou-Durand, Vehtari and Gelman 2024, Bayesian Analysis). Where R-hat needs long chains, it needs
// many: a single draw of each is enough. Chains are in the order of their groups, chains/groups in each:
//
//	√(1 + B/W),  B = variance of the means of the groups,
//	W = mean over groups of the variance of the chains' means + mean of the variances within the chains
//
// A term of one chain or one draw is 0. After a warm-up that forgets the starts it is near √(1 + 1/m), with m
// chains in a group and one draw, and not 1. There must be at least two groups of one size, and chains of one
// length; with one draw two chains in a group. An error wraps [draws.ErrSize]. Where no chain has moved it is +Inf,
// or NaN where all are equal or one is not finite.
func NestedRHat(x [][]float64, groups int) (float64, error) {
	if groups < 2 || len(x)%groups != 0 || len(x) == 0 {
		return 0, fmt.Errorf("nested: %d chains in %d groups: there must be at least 2 groups of one size: %w", len(x),
			groups, draws.ErrSize)
	}
	m, n := len(x)/groups, len(x[0])
	for k, c := range x {
		if len(c) != n {
			return 0, fmt.Errorf("nested: chain %d has %d draws, and chain 0 has %d: %w", k, len(c), n, draws.ErrSize)
		}
	}
	if n < 1 || n*m < 2 {
		return 0, fmt.Errorf("nested: groups of %d chains of %d draws: there must be 2 draws in a group: %w", m, n,
			draws.ErrSize)
	}
	if low, high := sample.Extremes(x); !(low < high) || math.IsInf(low, 0) || math.IsInf(high, 0) {
		return math.NaN(), nil
	}
	x, _ = standardised(x)
	centres, within := make([]float64, groups), 0.0
	for g := range groups {
		means := make([]float64, m)
		for k := range means {
			mean, variance := sample.MeanVar(x[g*m+k])
			if means[k] = mean; n > 1 {
				within += variance / float64(m*groups)
			}
		}
		mean, variance := sample.MeanVar(means)
		if centres[g] = mean; m > 1 {
			within += variance / float64(groups)
		}
	}
	_, between := sample.MeanVar(centres)
	return math.Sqrt(1 + between/within), nil
}
