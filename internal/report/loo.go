package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/kelvin-ppl/kelvin/diag/loo"
)

// looView is the section on predictive accuracy.
type looView struct {
	Facts []fact
	Bands []fact // how many observations have their Pareto k in which interval
	Worst []fact // the observations with the largest k
}

// looOf is nil for nil. The limits of k are those of the R package loo: the diagnostic threshold for the number of
// draws, and 1, above which the variance of the importance weights is not finite and their mean may not be either.
func looOf(r *loo.Result) *looView {
	if r == nil {
		return nil
	}
	figure := func(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }
	limit := loo.KThreshold(r.Draws)
	v := &looView{Facts: []fact{
		{Name: "ELPD", Value: figure(r.ELPD) + " ± " + figure(r.SE)},
		{Name: "effective parameters", Value: figure(r.P) + " ± " + figure(r.SEP)},
		{Name: "LOOIC", Value: figure(r.IC) + " ± " + figure(r.SEIC)},
		{Name: "observations", Value: strconv.Itoa(len(r.Pointwise))},
		{Name: "not reliable", Value: strconv.Itoa(r.Unreliable), Bad: r.Unreliable > 0},
	}}
	good, bad, worse := 0, 0, 0
	order := make([]int, len(r.Pointwise))
	for i, p := range r.Pointwise {
		order[i] = i
		switch {
		case p.K <= limit:
			good++
		case p.K <= 1:
			bad++
		default: // NaN too
			worse++
		}
	}
	v.Bands = []fact{
		{Name: fmt.Sprintf("k up to %.2f: reliable", limit), Value: strconv.Itoa(good)},
		{Name: fmt.Sprintf("k from %.2f to 1: not reliable", limit), Value: strconv.Itoa(bad), Bad: bad > 0},
		{Name: "k above 1: of no use", Value: strconv.Itoa(worse), Bad: worse > 0},
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(r.Pointwise[j].K, r.Pointwise[i].K) })
	for _, i := range order[:min(10, len(order))] {
		k := r.Pointwise[i].K
		v.Worst = append(v.Worst, fact{Name: strconv.Itoa(i), Value: strconv.FormatFloat(k, 'f', 2, 64), Bad: !(k <= limit)})
	}
	return v
}
