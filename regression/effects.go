package regression

import (
	"fmt"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/data"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
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
	if err := m.hasOneMean("Compare"); err != nil {
		return nil, err
	}
	table := m.tableOf(rows)
	column, err := table.Column(c.Column)
	if err != nil {
		return nil, fmt.Errorf("regression.Compare: %w", err)
	}
	pairs, err := c.pairs(column)
	if err != nil {
		return nil, err
	}
	if len(pairs) > 1 && c.By != "" {
		return nil, c.wrong("By", c.By, "several pairs of levels: state From and To")
	}
	var parts []*draws.Draws
	var labels []string
	for _, p := range pairs {
		var of [2]*draws.Draws
		for k := range of {
			if rows.Table, err = table.With(p.columns[k]); err != nil {
				return nil, fmt.Errorf("regression.Compare: %w", err)
			}
			if of[k], err = m.Expected(posterior, rows); err != nil {
				return nil, err
			}
		}
		change, err := combined(of[0], of[1], func(from, to float64) float64 {
			if c.Ratio {
				return to / from
			}
			return to - from
		})
		if err != nil {
			return nil, fmt.Errorf("regression.Compare: %w", err)
		}
		parts, labels = append(parts, change), append(labels, p.label)
	}
	if c.By != "" {
		return averaged(parts[0], c.Column, table, c.By)
	}
	return joined(parts, c.Column, labels)
}

// pair is a change of a column: before and after.
type pair struct {
	columns [2]data.Column
	label   string
}

// pairs are the changes that a comparison asks for.
func (c Comparison) pairs(column data.Column) (out []pair, err error) {
	if column.Labels == nil {
		from, to, label := column, column, ""
		if c.From == nil && c.To == nil {
			step := c.Step
			if step == 0 {
				step = 1
			}
			to.Numbers = slices.Clone(column.Numbers)
			for i := range to.Numbers {
				to.Numbers[i] += step
			}
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
		return []pair{{[2]data.Column{from, to}, label}}, nil
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
		out = append(out, pair{[2]data.Column{at(from), at(level)}, level + " - " + from})
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
	if err := m.hasOneMean("Slope"); err != nil {
		return nil, err
	}
	table := m.tableOf(rows)
	of, err := table.Column(column)
	if err != nil {
		return nil, fmt.Errorf("regression.Slope: %w", err)
	}
	if of.Labels != nil {
		return nil, fmt.Errorf("regression.Slope: %q is a factor: use Compare", column)
	}
	_, sd := moments(of.Numbers, 0, 1)
	step := 1e-4 * sd
	if step == 0 {
		step = 1e-4 * math.Max(1, math.Abs(of.Numbers[0]))
	}
	var ends [2]*draws.Draws
	for k, sign := range []float64{-0.5, 0.5} {
		moved := of
		moved.Numbers = slices.Clone(of.Numbers)
		for i := range moved.Numbers {
			moved.Numbers[i] += sign * step
		}
		if rows.Table, err = table.With(moved); err != nil {
			return nil, fmt.Errorf("regression.Slope: %w", err)
		}
		if ends[k], err = m.Expected(posterior, rows); err != nil {
			return nil, err
		}
	}
	slopes, err := combined(ends[0], ends[1], func(from, to float64) float64 { return (to - from) / step })
	if err != nil {
		return nil, fmt.Errorf("regression.Slope: %w", err)
	}
	if by == "" {
		return joined([]*draws.Draws{slopes}, column, nil)
	}
	return averaged(slopes, column, table, by)
}

// Average is the expected outcome averaged over rows, or those of each level of by: draws of the site "mean".
func (m *Model) Average(posterior *draws.Draws, rows Rows, by string) (*draws.Draws, error) {
	if err := m.hasOneMean("Average"); err != nil {
		return nil, err
	}
	expected, err := m.Expected(posterior, rows)
	if err != nil || by == "" {
		if err != nil {
			return nil, err
		}
		return joined([]*draws.Draws{expected}, "mean", nil)
	}
	return averaged(expected, "mean", m.tableOf(rows), by)
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
		n = max(2, steps)
	}
	var columns []data.Column
	for _, name := range m.table.Names() {
		c, err := m.table.Column(name)
		if err != nil {
			return nil, err
		}
		switch {
		case name == column && c.Labels == nil:
			low, high := slices.Min(c.Numbers), slices.Max(c.Numbers)
			c.Numbers = make([]float64, n)
			for i := range c.Numbers {
				c.Numbers[i] = low + (high-low)*float64(i)/float64(n-1)
			}
		case name == column:
			c.Labels = slices.Clone(c.Levels)
		case c.Labels == nil:
			mean, _ := moments(c.Numbers, 0, 1)
			if m.countsTrials(name) {
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

func (m *Model) tableOf(rows Rows) *data.Table {
	if rows.Table != nil {
		return rows.Table
	}
	return m.table
}

// hasOneMean refuses families of categories: the mean over their probabilities is the same whatever they are.
func (m *Model) hasOneMean(name string) error {
	if m.family.ordinal || m.family.nominal {
		return fmt.Errorf("regression.%s: the family %s has a probability for each category and no mean: use Expected", name,
			m.family.name)
	}
	return nil
}

// combined is a function of two sets of draws, element by element.
func combined(a, b *draws.Draws, f func(a, b float64) float64) (*draws.Draws, error) {
	out, err := draws.New(a.Sites(), nil, a.Chains())
	if err != nil {
		return nil, err
	}
	row := make([]float64, a.Dim())
	for c := range a.Chains() {
		for i := range a.Len(c) {
			x, y := a.Row(c, i), b.Row(c, i)
			for j := range row {
				row[j] = f(x[j], y[j])
			}
			if err := out.AppendChain(c, row, nil); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// joined has the mean over rows of each part: one site, with labels where there are several parts.
func joined(parts []*draws.Draws, site string, labels []string) (*draws.Draws, error) {
	shape, along := []int64{}, [][]string(nil)
	if len(labels) > 0 {
		shape, along = []int64{int64(len(parts))}, [][]string{labels}
	}
	of := draws.Site{Name: site, Shape: shape, Size: len(parts), Labels: along}
	out, err := draws.New([]draws.Site{of}, nil, parts[0].Chains())
	if err != nil {
		return nil, err
	}
	row := make([]float64, len(parts))
	for c := range out.Chains() {
		for i := range parts[0].Len(c) {
			for k, p := range parts {
				row[k], _ = moments(p.Row(c, i), 0, 1)
			}
			if err := out.AppendChain(c, row, nil); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// averaged has the mean over the rows of each level of a factor.
func averaged(d *draws.Draws, site string, table *data.Table, by string) (*draws.Draws, error) {
	of, err := table.Column(by)
	if err != nil {
		return nil, err
	}
	if of.Labels == nil {
		return nil, fmt.Errorf("regression: %q is a column of numbers: averages are by the levels of a factor", by)
	}
	levels := slices.DeleteFunc(slices.Clone(of.Levels), func(l string) bool { return !slices.Contains(of.Labels, l) })
	index, counts := make([]int, len(of.Labels)), make([]float64, len(levels))
	for i, label := range of.Labels {
		index[i] = slices.Index(levels, label)
		counts[index[i]]++
	}
	out, err := draws.New([]draws.Site{{Name: site, Shape: []int64{int64(len(levels))}, Size: len(levels),
		Labels: [][]string{levels}}}, nil, d.Chains())
	if err != nil {
		return nil, err
	}
	for c := range d.Chains() {
		for i := range d.Len(c) {
			row := make([]float64, len(levels))
			for j, v := range d.Row(c, i)[:len(index)] {
				row[index[j]] += v / counts[index[j]]
			}
			if err := out.AppendChain(c, row, nil); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}
