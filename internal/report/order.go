package report

import (
	"cmp"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/internal/sample"
)

// worstFirst orders rows that were sampled, as indices: those with draws that are not finite, then by R-hat as it is
// shown, with two decimals, then by the smaller effective sample size. Elements that never moved, or of too few draws,
// come last.
func worstFirst(rows []diag.Row) []int {
	var order []int
	for i := range rows {
		if !rows[i].Structural() {
			order = append(order, i)
		}
	}
	rank := func(r *diag.Row) int {
		switch {
		case math.IsNaN(r.Mean) || math.IsInf(r.Mean, 0):
			return 0
		case math.IsNaN(r.RHat):
			return 2
		}
		return 1
	}
	slices.SortStableFunc(order, func(i, j int) int {
		a, b := &rows[i], &rows[j]
		if c := cmp.Compare(rank(a), rank(b)); c != 0 || rank(a) != 1 {
			return c
		}
		if c := cmp.Compare(math.Round(100*b.RHat), math.Round(100*a.RHat)); c != 0 {
			return c
		}
		return cmp.Compare(min(a.ESSBulk, a.ESSTail), min(b.ESSBulk, b.ESSTail))
	})
	return order
}

// drawn are the chains that are shown, in order: all, or the most ones whose means are furthest from the median of the
// means, with those that are not finite first.
func drawn(x [][]float64, most int) []int {
	chains := make([]int, len(x))
	means := make([]float64, len(x))
	for c, trace := range x {
		chains[c] = c
		for _, v := range trace {
			means[c] += v / float64(len(trace))
		}
	}
	if len(x) <= most {
		return chains
	}
	sorted := slices.DeleteFunc(slices.Clone(means), func(v float64) bool { return !sample.Finite(v) })
	slices.Sort(sorted)
	distance := func(c int) float64 {
		if len(sorted) == 0 || !sample.Finite(means[c]) {
			return math.Inf(1)
		}
		return math.Abs(means[c] - sorted[len(sorted)/2])
	}
	slices.SortStableFunc(chains, func(a, b int) int { return cmp.Compare(distance(b), distance(a)) })
	chains = chains[:most]
	slices.Sort(chains)
	return chains
}
