package regression

import (
	"fmt"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/data"
	"github.com/kelvin-ppl/kelvin/diag/loo"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/formula"
	"github.com/kelvin-ppl/kelvin/internal/sample"
	"github.com/kelvin-ppl/kelvin/torch"
)

// imputation is the model of a column x with missing values, mi(x):
//
//	x ~ N(η_x, sigma_x)
//
// with the predictor η_x of the formula of x, an intercept alone where there is none. Missing values are latent
// variables, x_missing.
type imputation struct {
	column    string
	missing   []int // rows of the training data
	predictor *predictor
}

// present are the numbers that are not missing.
func present(x []float64) []float64 {
	return slices.DeleteFunc(slices.Clone(x), math.IsNaN)
}

// incomplete are the columns of mi() of formulas, each once.
func incomplete(parsed map[string]*formula.Formula) (out []string) {
	for _, f := range parsed {
		out = append(out, f.Of("mi")...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// learnImputed makes the models of the columns of mi().
func (m *Model) learnImputed(parsed map[string]*formula.Formula, table *data.Table, o formula.Options) error {
	for _, name := range incomplete(parsed) {
		c, err := table.Column(name)
		if err != nil {
			return err
		}
		f := parsed[name]
		if f == nil {
			if f, err = formula.Parse("~ 1"); err != nil {
				return err
			}
		}
		if f.Of("mi") != nil {
			return fmt.Errorf("%s: Params of %q: mi() is of the mean: a column with missing values is predicted by complete "+
				"ones", typeName, name)
		}
		seen := present(c.Numbers)
		mean, sd := sample.Moments(seen)
		if len(seen) < 2 || !(sd > 0) {
			return fmt.Errorf("%s: mi(%s): the column has %d different numbers, and its model needs at least 2", typeName, name,
				min(len(seen), 1))
		}
		p := &predictor{param: name, scale: sd, centre: mean}
		if p.design, err = f.Fit(table, o); err != nil {
			return err
		}
		if p.rows, err = p.design.Rows(table); err != nil {
			return err
		}
		if err := p.learn(); err != nil {
			return err
		}
		i := imputation{column: name, predictor: p}
		for row, v := range c.Numbers {
			if math.IsNaN(v) {
				i.missing = append(i.missing, row)
			}
		}
		m.imputed = append(m.imputed, i)
	}
	return nil
}

// all are the predictors of the family's parameters, and then those of columns with missing values.
func (m *Model) all() []*predictor {
	out := slices.Clone(m.predictors)
	for _, i := range m.imputed {
		out = append(out, i.predictor)
	}
	return out
}

// impute gives the data of mi() with their missing values.
func (m *Model) impute(g getter, data dataOf) dataOf {
	full := map[string]torch.Tensor{}
	for _, i := range m.imputed {
		p := i.predictor
		eta := g.each(p.eta(p.sites(g, m, torch.Tensor{}), data))
		sigma := m.scalar(g, isParameter, "sigma"+p.suffix(), fmt.Sprintf("Exponential(rate %.3g)", 1/p.scale),
			func() dist.Distribution { return dist.Exponential(1 / p.scale) })
		m.note(isNeeded, i.column+"_missing")
		var values torch.Tensor
		for _, of := range m.predictors {
			for j, s := range of.design.Smooths() {
				for k, f := range s.Factors {
					if f.Column != i.column || f.Levels != nil {
						continue
					}
					key := of.data("z%d_%d", j, k)
					if values == (torch.Tensor{}) {
						values = g.impute(i, dist.Normal(eta, sigma), data(key))
					}
					full[key] = values
				}
			}
		}
	}
	if len(full) == 0 {
		return data
	}
	return func(key string) torch.Tensor {
		if t, ok := full[key]; ok {
			return t
		}
		return data(key)
	}
}

// missingIn are the rows of a table in which a column of mi() has no value.
func (m *Model) missingIn(table *data.Table) map[string][]int {
	out := map[string][]int{}
	for _, i := range m.imputed {
		if table == nil {
			continue
		}
		if c, err := table.Column(i.column); err == nil {
			for row, v := range c.Numbers {
				if math.IsNaN(v) {
					out[i.column] = append(out[i.column], row)
				}
			}
		}
	}
	return out
}

// impute fills missing values of the training data from the draw, and those of new rows by a draw of their law.
func (g fromDraw) impute(i imputation, d dist.Distribution, x torch.Tensor) torch.Tensor {
	missing, n := i.missing, g.q.n
	if g.q.rows.Table != nil {
		missing = g.q.missing[i.column]
	}
	if len(missing) == 0 {
		return x
	}
	place, known := make([]int, n), slices.Repeat([]bool{true}, n)
	for k, row := range missing {
		place[row], known[row] = k, false
	}
	z := d.Sample(g.source)
	if g.q.rows.Table == nil {
		z = g.sample(i.column+"_missing", nil).IndexSelect(0, torch.New(place))
	}
	return torch.Where(torch.New(known), x, z)
}

// LogLikelihood is the log density of the outcome of each row under each draw of the posterior, as
// [ppl.Program.LogLikelihood]: columns of mi() are none.
func (m *Model) LogLikelihood(posterior *draws.Draws) (*draws.Draws, error) {
	if err := m.single("LogLikelihood"); err != nil {
		return nil, err
	}
	d, err := m.Program.LogLikelihood(posterior)
	if err != nil || len(m.imputed) == 0 {
		return d, err
	}
	return d.Select(m.outcome)
}

// LOO is leave-one-out cross-validation of the outcome, as [ppl.Program.LOO].
func (m *Model) LOO(posterior *draws.Draws) (*loo.Result, error) {
	if err := m.single("LOO"); err != nil {
		return nil, err
	}
	return m.Program.LOO(posterior, m.outcome)
}
