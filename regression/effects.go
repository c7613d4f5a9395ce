package regression

import (
	"fmt"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/data"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/internal/sample"
	"github.com/kelvin-ppl/kelvin/regression/internal/formula"
	"gonum.org/v1/gonum/floats"
)

// Comparison is a change of one column, with all others as they are in each row.
type Comparison struct {
	Column string // the one that changes
	// From and To are levels of a factor, or numbers. Nil of a factor is its first level, and each of the others in
	// turn; nil of a number is the value of each row, and Step more.
	From, To any
	Step     float64 // 0 means 1
	Ratio    bool    // the quotient of expected outcomes in the place of their difference
	By       string  // a factor: averages over the rows of each of its levels; empty is over all rows
}

// Compare is what a change of a column does to the expected outcome, averaged over rows, under each draw of the
// posterior: draws of a site of the column's name, with an element for each pair of levels, or for each level of By.
// (Arel-Bundock, Greifer and Heiss 2024, Journal of Statistical Software 111: average comparisons.)
func (m *Model) Compare(posterior *draws.Draws, rows Rows, c Comparison) (*draws.Draws, error) {
	rows, column, err := m.where(rows, c.Column)
	if err != nil {
		return nil, fmt.Errorf("regression.Compare: %w", err)
	}
	parts, err := c.parts(column)
	if err != nil {
		return nil, err
	}
	if len(parts) > 1 && c.By != "" {
		return nil, c.wrong("By", c.By, "several pairs of levels: state From and To")
	}
	return m.averages("Compare", posterior, rows, c.Column, c.By, parts, func(v []float64) float64 {
		if c.Ratio {
			return v[1] / v[0]
		}
		return v[1] - v[0]
	})
}

// part is a column in several forms, of which what is expected is compared.
type part struct {
	label string
	forms []data.Column // none is the table as it is
}

// parts are the changes that a comparison asks for.
func (c Comparison) parts(column data.Column) (out []part, err error) {
	if column.Labels == nil {
		from, to, label := column, column, ""
		if c.From == nil && c.To == nil {
			step := c.Step
			if step == 0 {
				step = 1
			}
			to.Numbers = slices.Clone(column.Numbers)
			floats.AddConst(step, to.Numbers)
			label = fmt.Sprintf("+%g", step)
		} else {
			var values [2]float64
			for k, v := range []any{c.From, c.To} {
				n, ok := asNumber(v)
				if !ok {
					return nil, c.wrong([]string{"From", "To"}[k], v, "the column is of numbers: give both From and To as numbers")
				}
				values[k] = n
			}
			from.Numbers = slices.Repeat(values[:1], len(column.Numbers))
			to.Numbers = slices.Repeat(values[1:], len(column.Numbers))
			label = fmt.Sprintf("%g - %g", values[1], values[0])
		}
		return []part{{label, []data.Column{from, to}}}, nil
	}
	from, to := column.Levels[0], column.Levels[1:]
	for k, v := range []any{c.From, c.To} {
		if v == nil {
			continue
		}
		level, ok := v.(string)
		if !ok || !slices.Contains(column.Levels, level) {
			return nil, c.wrong([]string{"From", "To"}[k], v, fmt.Sprintf("it must be one of the levels %q", column.Levels))
		}
		if k == 0 {
			from = level
			to = slices.DeleteFunc(slices.Clone(column.Levels), func(l string) bool { return l == level })
		} else {
			to = []string{level}
		}
	}
	at := func(level string) data.Column {
		changed := column
		changed.Labels = slices.Repeat([]string{level}, len(column.Labels))
		return changed
	}
	for _, level := range to {
		out = append(out, part{level + " - " + from, []data.Column{at(from), at(level)}})
	}
	return out, nil
}

func asNumber(v any) (float64, bool) {
	switch n := v.(type) {
	case float64:
		return n, true
	case int:
		return float64(n), true
	}
	return 0, false
}

func (c Comparison) wrong(field string, value any, allowed string) error {
	return &infer.FieldError{Type: "regression.Comparison", Field: field, Value: value, Allowed: allowed}
}

// Slope is the derivative of the expected outcome in a column of numbers, averaged over rows or those of each level of
// by: draws of a site of the column's name. It is a central difference with a step of 1e-4 standard deviations.
func (m *Model) Slope(posterior *draws.Draws, rows Rows, column, by string) (*draws.Draws, error) {
	rows, of, err := m.where(rows, column)
	switch {
	case err != nil:
	case of.Labels != nil:
		err = fmt.Errorf("%q is a factor: use Compare", column)
	case m.Whole(column):
		err = fmt.Errorf("%q has whole numbers alone: use Compare", column)
	}
	if err != nil {
		return nil, fmt.Errorf("regression.Slope: %w", err)
	}
	_, sd := sample.Moments(of.Numbers)
	step := 1e-4 * sd
	if !(step > 0) {
		step = 1e-4 * math.Max(1, math.Abs(of.Numbers[0]))
	}
	var p part
	for _, sign := range []float64{-0.5, 0.5} {
		moved := of
		moved.Numbers = slices.Clone(of.Numbers)
		floats.AddConst(sign*step, moved.Numbers)
		p.forms = append(p.forms, moved)
	}
	return m.averages("Slope", posterior, rows, column, by, []part{p},
		func(v []float64) float64 { return (v[1] - v[0]) / step })
}

// Average is the expected outcome averaged over rows, or those of each level of by: draws of the site "mean".
func (m *Model) Average(posterior *draws.Draws, rows Rows, by string) (*draws.Draws, error) {
	return m.averages("Average", posterior, rows, "mean", by, []part{{}}, func(v []float64) float64 { return v[0] })
}

// averages are means over rows of a function of what is expected of each form of a part: one for each part, with its
// label, or with by one for each level of that column.
func (m *Model) averages(name string, posterior *draws.Draws, rows Rows, site, by string, parts []part,
	f func(v []float64) float64) (*draws.Draws, error) {
	fail := func(err error) (*draws.Draws, error) { return nil, fmt.Errorf("regression.%s: %w", name, err) }
	if m.wide() { // the mean over probabilities of categories is the same whatever they are
		return fail(fmt.Errorf("the family %s has an expected value for each category or outcome: use Expected",
			m.family.name))
	}
	table := m.tableOf(rows)
	groups, labels, err := levelsOf(table, by)
	if err != nil {
		return fail(err)
	}
	expected := make([][]*draws.Draws, len(parts))
	for k, p := range parts {
		if by == "" && p.label != "" {
			labels = append(labels, p.label)
		}
		for j := range max(1, len(p.forms)) {
			if rows.Table = table; p.forms != nil {
				if rows.Table, err = table.With(p.forms[j]); err != nil {
					return fail(err)
				}
			}
			d, err := m.Expected(posterior, rows)
			if err != nil {
				return nil, err
			}
			expected[k] = append(expected[k], d)
		}
	}
	of := draws.Site{Name: site, Size: len(parts) * len(groups)}
	if labels != nil {
		of.Shape, of.Labels = []int{len(labels)}, [][]string{labels}
	}
	return mapped(of, posterior, func(chain, draw int) (out []float64) {
		for _, ds := range expected {
			v := make([]float64, len(ds))
			for _, rows := range groups {
				sum := 0.0
				for _, row := range rows {
					for j, d := range ds {
						v[j] = d.Row(chain, draw)[row]
					}
					sum += f(v)
				}
				out = append(out, sum/float64(len(rows)))
			}
		}
		return out
	})
}

// levelsOf are the rows of each level of a factor that some have; all of them for none.
func levelsOf(table *data.Table, by string) (rows [][]int, levels []string, err error) {
	if by == "" {
		rows = make([][]int, 1)
		for i := range table.Len() {
			rows[0] = append(rows[0], i)
		}
		return rows, nil, nil
	}
	of, err := table.Column(by)
	if err == nil && of.Labels == nil {
		err = fmt.Errorf("%q is a column of numbers: averages are by the levels of a factor", by)
	}
	for _, level := range of.Levels {
		var at []int
		for i, label := range of.Labels {
			if label == level {
				at = append(at, i)
			}
		}
		if at != nil {
			rows, levels = append(rows, at), append(levels, level)
		}
	}
	return rows, levels, err
}

// mapped are draws of one site, made of each draw of a posterior.
func mapped(of draws.Site, posterior *draws.Draws, f func(chain, draw int) []float64) (*draws.Draws, error) {
	out, err := draws.New([]draws.Site{of}, nil, posterior.Chains())
	for c := range posterior.Chains() {
		for i := range posterior.Len(c) {
			if err == nil {
				err = out.AppendChain(c, f(c, i), nil)
			}
		}
	}
	return out, err
}

// Grid is a table of rows in which one column varies, over its range in so many steps or over its levels, and all
// others have their mean or their first level: what a picture of a conditional effect is drawn of.
func (m *Model) Grid(column string, steps int) (*data.Table, error) {
	of, err := m.table.Column(column)
	if err != nil {
		return nil, fmt.Errorf("regression.Grid: %w", err)
	}
	n := len(of.Levels)
	if of.Labels == nil {
		if n = max(2, steps); m.Whole(column) {
			n = int(slices.Max(of.Numbers)-slices.Min(of.Numbers)) + 1
		}
	}
	value := m.predictors[0].design.Formula().Outcome.Value
	outcome := (&formula.Formula{Outcome: formula.Outcome{Value: value}}).Columns()
	var columns []data.Column
	for _, name := range m.table.Names() {
		c, err := m.table.Column(name)
		if err != nil {
			return nil, err
		}
		switch {
		case slices.Contains(outcome, name) && !slices.Contains(m.Predictors(), name):
			continue
		case name == column && c.Labels == nil:
			c.Numbers = present(c.Numbers)
			low, high := slices.Min(c.Numbers), slices.Max(c.Numbers)
			c.Numbers = floats.Span(make([]float64, n), low, high)
		case name == column:
			c.Labels = slices.Clone(c.Levels)
		case c.Labels == nil:
			mean, _ := sample.Moments(present(c.Numbers))
			if m.Whole(name) {
				mean = math.Round(mean)
			}
			c.Numbers = slices.Repeat([]float64{mean}, n)
		default:
			c.Labels = slices.Repeat(c.Levels[:1], n)
		}
		columns = append(columns, c)
	}
	return data.NewTable(columns...)
}

// where are the rows in which a column has a value, and the column there.
func (m *Model) where(rows Rows, column string) (Rows, data.Column, error) {
	c, err := m.tableOf(rows).Column(column)
	if len(present(c.Numbers)) == len(c.Numbers) {
		return rows, c, err
	}
	var at []int
	for i, v := range c.Numbers {
		if !math.IsNaN(v) {
			at = append(at, i)
		}
	}
	if rows.Table, err = m.tableOf(rows).Rows(at...); err != nil {
		return rows, c, err
	}
	c, err = rows.Table.Column(column)
	return rows, c, err
}

func (m *Model) tableOf(rows Rows) *data.Table {
	if rows.Table != nil {
		return rows.Table
	}
	return m.table
}
