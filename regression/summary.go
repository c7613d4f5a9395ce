package regression

import (
	"slices"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/draws"
)

// role says what a site is. Reported are those up to isCorrelation, in this order. Others that a model has are what
// these are made of: no user and no prediction needs them.
type role int

const (
	isIntercept role = iota
	isThresholds
	isCoefficient
	isParameter
	isSD
	isCorrelation
	isEffect // of the levels of a group
	isNeeded // by predictions alone
)

// site is a site of the model, with the names of its elements along each dimension.
type site struct {
	role   role
	name   string
	labels [][]string
}

// note remembers a site when the model is run for the first time.
func (m *Model) note(r role, name string, labels ...[]string) {
	if !m.sealed && m.site(name).name == "" {
		m.sites = append(m.sites, site{r, name, labels})
	}
}

func (m *Model) site(name string) site {
	if i := slices.IndexFunc(m.sites, func(s site) bool { return s.name == name }); i >= 0 {
		return m.sites[i]
	}
	return site{}
}

// having are the sites of some roles that draws have, in the order of roles.
func (m *Model) having(d *draws.Draws, from, to role) (names []string) {
	for r := from; r <= to; r++ {
		for _, s := range d.Sites() {
			if of := m.site(s.Name); of.name != "" && of.role == r {
				names = append(names, s.Name)
			}
		}
	}
	return names
}

// Summary is the table of what a regression is about, in the order in which users of brms know it: the intercept and
// the coefficients, the family's parameters, standard deviations and correlations of group effects, and smooths. The
// effects of single levels are in r_g.
func (m *Model) Summary(posterior *draws.Draws) (*diag.Table, error) {
	return diag.Summary(posterior, diag.SummaryOptions{Sites: m.Reported(posterior)})
}

// Reported are the sites of [Model.Summary] that the draws have.
func (m *Model) Reported(posterior *draws.Draws) []string {
	return m.having(posterior, isIntercept, isCorrelation)
}

// Effects are the sites of the effects of the levels of groups that the draws have.
func (m *Model) Effects(posterior *draws.Draws) []string {
	return m.having(posterior, isEffect, isEffect)
}

// Needed are the sites of the draws that summaries and predictions need, the reported ones first: those to store.
func (m *Model) Needed(posterior *draws.Draws) []string {
	return m.having(posterior, isIntercept, isNeeded)
}
