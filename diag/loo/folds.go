package loo

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/kelvin-ppl/kelvin/draws"
)

// Folds says how observations are divided for cross-validation. The zero value is ten folds at random.
type Folds struct {
	K    int    // number of folds; 0 means 10, or all groups where there are fewer
	Seed uint64 // of the division
	// Groups has the group of each observation: each is in one fold as a whole. Nil divides observations.
	Groups []int
	// Strata has the stratum of each observation: each is spread evenly over the folds. Not with Groups.
	Strata []int
	// Past > 0 leaves the future out: from observation Past on each is predicted by those before it, and nothing is
	// divided (Bürkner, Gabry and Vehtari 2020). Ahead is how many steps it is ahead of them; 0 means 1.
	Past, Ahead int
}

// Assign divides n observations: test are those that each fold predicts, and without those that it is fitted without,
// these and, of the future, all that come later. An error names the field.
func (f Folds) Assign(n int) (test, without [][]int, err error) {
	for field, of := range map[string][]int{"Groups": f.Groups, "Strata": f.Strata} {
		if of != nil && len(of) != n {
			return failed(field, "has %d elements, want %d, one for each observation", len(of), n)
		}
	}
	if f.Past != 0 || f.Ahead != 0 {
		return f.future(n)
	}
	if f.Groups != nil && f.Strata != nil {
		return failed("Strata", "is given with Groups: leave one of them out")
	}
	unit, units := f.Groups, 0 // of each observation: what stays together
	if unit == nil {
		for i := range n {
			unit = append(unit, i)
		}
	}
	levels := slices.Compact(slices.Sorted(slices.Values(unit)))
	units = len(levels)
	k := f.K
	if k == 0 {
		k = min(10, units)
	}
	if k < 2 || k > units {
		return failed("K", "is %d: it must be from 2 to %d", f.K, units)
	}
	order := rand.New(rand.NewPCG(f.Seed, 1)).Perm(units)
	if f.Strata != nil { // one stratum after the other, in the order of the permutation
		by := slices.Clone(order)
		for place, u := range order {
			by[u] = place
		}
		all := slices.Clone(levels)
		slices.SortStableFunc(all, func(a, b int) int {
			if s := f.Strata[a] - f.Strata[b]; s != 0 {
				return s
			}
			return by[a] - by[b]
		})
		for place, u := range all {
			order[u] = place
		}
	}
	test = make([][]int, k)
	for i, u := range unit {
		at, _ := slices.BinarySearch(levels, u)
		test[order[at]%k] = append(test[order[at]%k], i)
	}
	return test, test, nil
}

func failed(field string, format string, args ...any) ([][]int, [][]int, error) {
	return nil, nil, failf(draws.ErrRange, "Folds.%s %s", field, fmt.Sprintf(format, args...))
}

// future has a fold for each observation after the past.
func (f Folds) future(n int) (test, without [][]int, err error) {
	ahead := max(f.Ahead, 1)
	switch {
	case f.Groups != nil || f.Strata != nil || f.K != 0:
		return failed("Past", "is %d, with K, Groups or Strata: leave these out", f.Past)
	case f.Past < 1 || f.Ahead < 0 || f.Past+ahead > n:
		return failed("Past", "is %d and Ahead %d: they must be at least 1, and at most %d together", f.Past, f.Ahead, n)
	}
	for i := f.Past + ahead - 1; i < n; i++ {
		test = append(test, []int{i})
		var later []int
		for j := i - ahead + 1; j < n; j++ {
			later = append(later, j)
		}
		without = append(without, later)
	}
	return test, without, nil
}

// Sum sets the sums over the observations to those of Pointwise, which may have been changed.
func (r *Result) Sum() {
	n := len(r.Pointwise)
	r.ELPD, r.SE = total(n, func(i int) float64 { return r.Pointwise[i].ELPD })
	r.P, r.SEP = total(n, func(i int) float64 { return r.Pointwise[i].P })
	r.IC, r.SEIC = -2*r.ELPD, 2*r.SE
}
