package sample

import (
	"cmp"
	"math"
	"slices"
)

// rankBins is the number of bins of rank histograms of s draws in all: of 20 to 10 the first that divides s, so that
// all bins hold as many ranks, else 20; fewer, with at least 5 draws of each chain in a bin, where draws are few.
func rankBins(s, chains int) int {
	most := min(20, s/(5*max(chains, 1)))
	if most < 2 {
		return 2
	}
	for b := most; b >= (most+1)/2; b-- {
		if s%b == 0 {
			return b
		}
	}
	return most
}

// Ranks counts, for each chain, the ranks of its draws among those of all chains, in bins of equal width over
// [0, S]. Ranks are 1 to S, and bin k holds those with k S/bins <= rank - 1/2 < (k+1) S/bins. Equal draws share their
// average rank. If the chains have the same distribution, the histograms are uniform (Vehtari et al. 2021, section
// 4.5). NaNs are left out; infinities are ordinary extremes.
func Ranks(x [][]float64) [][]int {
	type at struct {
		v     float64
		chain int
	}
	var all []at
	for c, trace := range x {
		for _, v := range trace {
			if !math.IsNaN(v) {
				all = append(all, at{v, c})
			}
		}
	}
	bins := rankBins(len(all), len(x))
	counts := make([][]int, len(x))
	for c := range counts {
		counts[c] = make([]int, bins)
	}
	slices.SortFunc(all, func(a, b at) int { return cmp.Compare(a.v, b.v) })
	for first := 0; first < len(all); {
		last := first + 1
		for last < len(all) && all[last].v == all[first].v {
			last++
		}
		// The average rank is (first+1+last)/2; in whole numbers, (2 rank - 1) bins / 2S.
		bin := (first + last) * bins / (2 * len(all))
		for _, a := range all[first:last] {
			counts[a.chain][bin]++
		}
		first = last
	}
	return counts
}
