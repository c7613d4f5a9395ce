package serve

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/records"
)

// rowsOf are the data of a prediction from rows of columns: by the design, where there is one.
func (m *Model) rowsOf(rows []map[string]any) (map[string][]float64, error) {
	if m.design == nil {
		return m.tensors(rows)
	}
	table, err := records.Table(m.design, rows)
	if err != nil {
		return nil, err
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
	return out, nil
}

// columns are the data that a prediction takes of rows, with the shape of one row.
func (m *Model) columns() (out []draws.Site) {
	if m.file.Predictive == nil {
		return nil
	}
	sites := m.file.Predictive.Plan.Inputs()
	for _, s := range sites {
		if slices.Contains(m.file.Predictive.Names, s.Name) && len(s.Shape) > 0 && s.Shape[0] > 0 {
			out = append(out, draws.Site{Name: s.Name, Shape: s.Shape[1:], Size: s.Size / s.Shape[0]})
		}
	}
	return out
}

// tensors are the data of a model without a design: a row has the numbers of each tensor that has rows.
func (m *Model) tensors(rows []map[string]any) (map[string][]float64, error) {
	out, columns := map[string][]float64{}, m.columns()
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
