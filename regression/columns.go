package regression

import (
	"slices"

	"github.com/kelvin-ppl/kelvin/regression/internal/formula"
)

// Columns are the columns of a table that the formulas read.
func (f Formula) Columns() ([]string, error) {
	if f.Family == nil {
		f.Family = Gaussian{}
	}
	m := &Model{formula: f, family: f.Family.spec()}
	parsed, err := m.parse()
	if err != nil {
		return nil, err
	}
	return m.columns(parsed), nil
}

// Covariates are the columns that the expected outcome depends on whatever the groups are: those of the common terms
// and of smooths of the mean, in the order of the formula.
func (m *Model) Covariates() []string {
	f := m.predictors[0].design.Formula()
	common := &formula.Formula{Terms: f.Terms, Smooths: f.Smooths, Offsets: f.Offsets}
	var out []string
	for _, name := range common.Columns() {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// Predictors are the columns that predictions read: those of the formulas but for the outcome itself.
func (m *Model) Predictors() []string {
	var out []string
	for _, p := range m.predictors {
		f := *p.design.Formula()
		f.Outcome.Value = formula.Expr{}
		for _, name := range f.Columns() {
			if !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	return out
}

// Observed is the outcome of each row of the training data, as numbers: the index of its level for a factor.
func (m *Model) Observed() []float64 { return slices.Clone(m.rows.Y) }
