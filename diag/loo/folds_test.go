package loo_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/diag/loo"
)

// Each observation is in one fold; groups stay together; strata are spread evenly; the future is left out.
func TestFolds(t *testing.T) {
	groups, strata := make([]int, 60), make([]int, 60)
	for i := range groups {
		groups[i], strata[i] = i%7*10, i%3
	}
	for name, f := range map[string]loo.Folds{"random": {Seed: 3}, "groups": {K: 4, Groups: groups}, "strata": {K: 5,
		Strata: strata}} {
		test, without, err := f.Assign(60)
		require.NoError(t, err, name)
		require.Equal(t, test, without)
		var all []int
		of := map[int]int{}
		for k, rows := range test {
			all = append(all, rows...)
			counts := map[int]int{}
			for _, i := range rows {
				counts[strata[i]]++
				if name == "groups" {
					if had, ok := of[groups[i]]; ok {
						require.Equal(t, had, k)
					}
					of[groups[i]] = k
				}
			}
			if name == "strata" {
				require.Equal(t, map[int]int{0: 4, 1: 4, 2: 4}, counts)
			}
		}
		slices.Sort(all)
		require.Len(t, slices.Compact(all), 60, name)
	}
	test, without, err := loo.Folds{Past: 2, Ahead: 2}.Assign(5)
	require.NoError(t, err)
	require.Equal(t, [][]int{{3}, {4}}, test)
	require.Equal(t, [][]int{{2, 3, 4}, {3, 4}}, without)
}
