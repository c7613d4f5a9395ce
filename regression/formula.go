package regression

import (
	"fmt"
	"maps"
	"slices"

	"github.com/kelvin-ppl/kelvin/data"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/internal/formula"
	"github.com/kelvin-ppl/kelvin/models"
)

// Formula is a regression in Wilkinson's notation.
type Formula struct {
	// Mean says what the outcome depends on: "recall ~ age + treatment*dose + s(hour) + (1 + dose | clinic)".
	Mean string
	// Params are formulas of other parameters of the family, by name: {"sigma": "~ age"}. They are on the scale of the
	// parameter's link: log for those above 0, logit for zi and hu. Of several outcomes, mvbind(y, z), they are formulas
	// of the means of some, in the place of that of all. A column with missing values that the mean has as mi(x) is
	// imputed, as N(η, sigma_x), and {"x": "~ z"} is the formula of η; "~ 1" is the default.
	Params map[string]string
	Family Family  // nil means Gaussian{}
	Priors Priors  // in the place of the defaults
	Eta    float64 // of the LKJ priors of correlations; 0 means 1, which is uniform
	// Horseshoe is the prior of all coefficients of the mean, for many columns of which few matter. Nil is none.
	Horseshoe *models.Horseshoe
	// R2D2 is another such prior, of all coefficients by the R² that they explain together; with families that have a
	// sigma, of the variance beside sigma². Nil is none.
	R2D2 *models.R2D2
	// DropMissing leaves out rows with missing values in columns of the formulas; [Model.Dropped] counts them. Without
	// it they are an error.
	DropMissing bool
	EmptyCells  bool // keeps columns of combinations of levels that no row has: their coefficients have priors alone
	Collinear   bool // keeps columns that others determine
}

const typeName = "regression.Formula"

// Fit reads the formulas, learns levels, means and bases from the table, and compiles the model.
//
// A place of a formula is to blame for an error that shows it with what would be right, a value of the table for a
// *data.Error, and a field for an *infer.FieldError.
func (f Formula) Fit(table *data.Table) (*Model, error) {
	if f.Family == nil {
		f.Family = Gaussian{}
	}
	m := &Model{formula: f, family: f.Family.spec(), used: map[string]bool{}}
	if err := m.checkFields(); err != nil {
		return nil, err
	}
	parsed, err := m.parse()
	if err != nil {
		return nil, err
	}
	if err := m.checkParams(incomplete(parsed)); err != nil {
		return nil, err
	}
	if table == nil || table.Len() == 0 {
		return nil, fmt.Errorf("%s: the table has no rows", typeName)
	}
	if f.DropMissing {
		before := table.Len()
		columns := slices.DeleteFunc(m.columns(parsed), func(name string) bool {
			return slices.Contains(incomplete(parsed), name)
		})
		complete, _, err := table.DropMissing(columns...)
		if err != nil {
			return nil, err
		}
		table, m.dropped = complete, before-complete.Len()
	}
	m.table = table
	if err := m.learn(parsed, table); err != nil {
		return nil, err
	}
	return m, m.compile()
}

// checkFields checks what does not need data.
func (m *Model) checkFields() error {
	fail := func(field string, value any, allowed string) error {
		return &infer.FieldError{Type: typeName, Field: field, Value: value, Allowed: allowed}
	}
	s := m.family
	switch {
	case s.wrong != "":
		return fail("Family", s.name, s.wrong)
	case !slices.Contains(s.links, s.linked()):
		return fail("Family", fmt.Sprintf("%s with the link %q", s.name, s.link), fmt.Sprintf("its links are %q", s.links))
	case !(m.formula.Eta >= 0):
		return fail("Eta", m.formula.Eta, "it must be above 0, or 0 for 1")
	}
	if m.formula.Horseshoe != nil && m.formula.R2D2 != nil {
		return fail("R2D2", "set", "it does not go with Horseshoe: the coefficients have one prior")
	}
	return nil
}

// checkParams checks the names of Params.
func (m *Model) checkParams(imputed []string) error {
	for _, name := range imputed {
		if slices.Contains(m.family.params, name) {
			return &infer.FieldError{Type: typeName, Field: "Mean", Value: fmt.Sprintf("with mi(%s)", name),
				Allowed: "the column has the name of a parameter of the family: rename it"}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.formula.Params)) {
		if of := m.family; !slices.Contains(of.params, name) && !slices.Contains(imputed, name) {
			allowed := fmt.Sprintf("the parameters of %s beside its mean are %q", of.name, of.params)
			if of.joint {
				allowed = fmt.Sprintf("formulas are of the outcomes %q", of.params)
			}
			return &infer.FieldError{Type: typeName, Field: "Params", Value: fmt.Sprintf("of %q", name), Allowed: allowed}
		}
	}
	return nil
}

// parse reads the formulas, the mean's first.
func (m *Model) parse() (map[string]*formula.Formula, error) {
	out := map[string]*formula.Formula{}
	mean, err := formula.Parse(m.formula.Mean)
	if err != nil {
		return nil, fmt.Errorf("%s: Mean: %w", typeName, err)
	}
	if mean.Outcome.Value.None() {
		return nil, &infer.FieldError{Type: typeName, Field: "Mean", Value: fmt.Sprintf("%q", m.formula.Mean),
			Allowed: "it needs an outcome before the ~, as in y ~ x"}
	}
	out[""] = mean
	if err := m.join(mean.Outcome); err != nil {
		return nil, err
	}
	for name, text := range m.formula.Params {
		f, err := formula.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("%s: Params of %q: %w", typeName, name, err)
		}
		if !f.Outcome.Value.None() {
			return nil, &infer.FieldError{Type: typeName, Field: "Params", Value: fmt.Sprintf("of %q: %q", name, text),
				Allowed: "the outcome is that of Mean: begin with ~"}
		}
		out[name] = f
	}
	return out, nil
}

// columns are those that the formulas read.
func (m *Model) columns(parsed map[string]*formula.Formula) (out []string) {
	for _, f := range parsed {
		for _, name := range f.Columns() {
			if !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	slices.Sort(out)
	return out
}
