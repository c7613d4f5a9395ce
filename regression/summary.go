package regression

import (
	"slices"
	"strings"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/draws"
)

// Summary is the table of what a regression is about, in the order in which users of brms know it: the intercept and
// the coefficients, the family's parameters, standard deviations and correlations of group effects, and smooths. The
// effects of single levels are in r_g.
func (m *Model) Summary(posterior *draws.Draws) (*diag.Table, error) {
	return diag.Summary(posterior, diag.SummaryOptions{Sites: m.Reported(posterior)})
}

// Reported are the sites of [Model.Summary] that the draws have.
func (m *Model) Reported(posterior *draws.Draws) []string {
	rank := func(name string) int {
		for i, start := range []string{"intercept", "thresholds", "b", "sd_", "cor_"} {
			if name == start || strings.HasPrefix(name, start+"_") || strings.HasPrefix(name, start+"[") ||
				strings.HasSuffix(start, "_") && strings.HasPrefix(name, start) {
				return i
			}
		}
		return 2
	}
	hidden := func(name string) bool {
		return slices.ContainsFunc([]string{"z_", "unit_", "L_", "r_", "horseshoe", "intercept_centred",
			"thresholds_centred"}, func(start string) bool {
			return strings.HasPrefix(name, start)
		})
	}
	var names []string
	for _, s := range posterior.Sites() {
		if !hidden(s.Name) {
			names = append(names, s.Name)
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return rank(a) - rank(b) })
	return names
}
