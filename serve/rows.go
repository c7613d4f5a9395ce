package serve

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kelvin-ppl/kelvin/data"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer/native/portable"
	"github.com/kelvin-ppl/kelvin/internal/records"
)

// RowsOf are the data of a prediction, for as many rows as a table has: by the design of the model, or by what a fitted
// regression has learned. A level that the training data do not have is an error that names it. It is an error for a
// model that was exported with neither.
func (m *Model) RowsOf(table *data.Table) (out map[string][]float64, err error) {
	defer wrap("RowsOf", &err)
	if table == nil || m.design == nil && m.regression == nil {
		return nil, errors.New("there is no table, or the model was exported without a design: its rows are the data")
	}
	return m.fromTable(table)
}

func (m *Model) fromTable(table *data.Table) (map[string][]float64, error) {
	if m.regression != nil {
		return m.regression.Data(table)
	}
	frame, err := m.design.Frame(table)
	if err != nil {
		return nil, err
	}
	out := map[string][]float64{}
	maps.Copy(out, frame.Numbers)
	for name, column := range frame.Indices {
		for _, v := range column {
			out[name] = append(out[name], float64(v))
		}
	}
	if frame.X != nil {
		out["x"] = slices.Concat(frame.X...)
	}
	if frame.Y != nil {
		out["y"] = frame.Y
	}
	return out, nil
}

// columned says what columns rows have: a [data.Design], or a regression.
type columned interface {
	records.Columns
	Columns() []string
	Outcomes() []string // which predictions do not need
}

// rows is what knows the columns of rows, nil where these are tensors.
func (m *Model) rows() columned {
	switch {
	case m.regression != nil:
		return m.regression
	case m.design != nil:
		return m.design
	}
	return nil
}

// rowsOf are the data of a prediction, or of what new rows are, from rows of columns.
func (m *Model) rowsOf(rows []map[string]any, to *portable.Prediction) (map[string][]float64, error) {
	of := m.rows()
	if of == nil {
		return tensors(rows, columns(to))
	}
	table, err := records.Table(of, rows)
	if err != nil {
		return nil, err
	}
	return m.fromTable(table)
}

// columns are the data that are taken of rows, with the shape of one row.
func columns(of *portable.Prediction) (out []draws.Site) {
	if of == nil {
		return nil
	}
	for _, s := range of.Plan.Inputs() {
		if slices.Contains(of.Names, s.Name) && len(s.Shape) > 0 && s.Shape[0] > 0 {
			out = append(out, draws.Site{Name: s.Name, Shape: s.Shape[1:], Size: s.Size / s.Shape[0]})
		}
	}
	return out
}

// tensors are the data of a model without a design: a row has the numbers of each tensor that has rows.
func tensors(rows []map[string]any, columns []draws.Site) (map[string][]float64, error) {
	out := map[string][]float64{}
	for i, row := range rows {
		for name := range row {
			if !slices.ContainsFunc(columns, func(s draws.Site) bool { return s.Name == name }) {
				var have []string
				for _, s := range columns {
					have = append(have, s.Name)
				}
				return nil, fmt.Errorf("row %d: there is no field %q; the model reads %s", i, name, strings.Join(have, ", "))
			}
		}
		for _, s := range columns {
			v, ok := row[s.Name]
			if !ok {
				return nil, fmt.Errorf("row %d has no field %q", i, s.Name)
			}
			n := len(out[s.Name])
			out[s.Name] = flat(v, s.Shape, out[s.Name])
			if len(out[s.Name]) != n+s.Size {
				expected := "a number"
				if len(s.Shape) > 0 {
					expected = fmt.Sprintf("numbers of shape %v", s.Shape)
				}
				return nil, records.Unexpected(i, s.Name, v, expected)
			}
		}
	}
	return out, nil
}

// flat appends the numbers of nested lists of a shape; what is none appends too few.
func flat(v any, shape []int, to []float64) []float64 {
	if x, ok := v.(float64); ok && len(shape) == 0 {
		return append(to, x)
	}
	list, ok := v.([]any)
	if !ok || len(shape) == 0 || len(list) != shape[0] {
		return to
	}
	for _, e := range list {
		to = flat(e, shape[1:], to)
	}
	return to
}
