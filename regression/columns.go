package regression

import (
	"maps"
	"slices"

	"github.com/kelvin-ppl/kelvin/data"
	"github.com/kelvin-ppl/kelvin/internal/formula"
)

// Columns are the columns of a table that the formulas read.
func (f Formula) Columns() ([]string, error) {
	if f.Family == nil {
		f.Family = Gaussian{}
	}
	m := &Model{formula: f, family: f.Family.spec()}
	parsed, err := m.parse()
	return m.columns(parsed), err
}

// Covariates are the columns that the expected outcome depends on whatever the groups are: those of the common terms
// and of smooths of the mean.
func (m *Model) Covariates() []string {
	f := *m.predictors[0].design.Formula()
	f.Outcome, f.Groups = formula.Outcome{}, nil
	return m.columns(map[string]*formula.Formula{"": &f})
}

// Predictors are the columns that predictions read: those of the formulas but for the outcome itself, its censoring and
// weights, and entries of Cox.
func (m *Model) Predictors() []string {
	all := map[string]*formula.Formula{}
	for _, p := range m.all() {
		f := *p.design.Formula()
		f.Outcome.Value, f.Outcome.Added = formula.Expr{}, maps.Clone(f.Outcome.Added)
		maps.DeleteFunc(f.Outcome.Added, func(key string, _ formula.Expr) bool {
			return key == "cens" || key == "weights" || m.family.partial
		})
		all[p.param] = &f
	}
	return m.columns(all)
}

// Observed is the outcome of each row of the training data, as numbers: the index of its level for a factor.
func (m *Model) Observed() []float64 { return slices.Clone(m.rows.Y) }

// Table has the rows that the model was fitted to, without those that were dropped.
func (m *Model) Table() *data.Table { return m.table }

// Categorical says whether what is expected is a number for each category or outcome, and not a mean.
func (m *Model) Categorical() bool { return m.wide() }

// Whole says whether a column has whole numbers alone: numbers of trials, and levels of mo().
func (m *Model) Whole(column string) bool {
	trials := m.predictors[0].design.Formula().Outcome.Added["trials"]
	f := &formula.Formula{Outcome: formula.Outcome{Value: trials}}
	for _, p := range m.predictors {
		if slices.Contains(p.design.Formula().Of("mo"), column) {
			return true
		}
	}
	return slices.Contains(f.Columns(), column)
}
