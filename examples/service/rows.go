package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/kelvin-ppl/kelvin/data"
)

// rows are the raw columns of a request: numbers, and the labels of factors.
type rows []map[string]any

// mostRows is how many a request may have.
const mostRows = 1000

// frame maps the rows to the numbers of the model, as the training data were mapped. A column that is missing, a level
// that the training data do not have and a value of the wrong kind are errors that name it.
func (r rows) frame(design *data.Design) (*data.Frame, error) {
	if len(r) == 0 || len(r) > mostRows {
		return nil, fmt.Errorf("%d rows: there must be from 1 to %d", len(r), mostRows)
	}
	var columns []data.Column
	for _, name := range slices.Sorted(maps.Keys(r[0])) {
		c := data.Column{Name: name}
		for i, row := range r {
			if len(row) != len(r[0]) {
				return nil, fmt.Errorf("row %d has %d columns, and row 0 has %d", i, len(row), len(r[0]))
			}
			switch v := row[name].(type) {
			case float64:
				c.Numbers = append(c.Numbers, v)
			case string:
				c.Labels = append(c.Labels, v)
			default:
				text, _ := json.Marshal(v)
				return nil, fmt.Errorf("row %d, column %q is %s: it must be a number or a string", i, name, text)
			}
			if len(c.Numbers) > 0 && len(c.Labels) > 0 {
				return nil, fmt.Errorf("row %d, column %q: it has numbers and strings", i, name)
			}
		}
		columns = append(columns, c)
	}
	table, err := data.NewTable(columns...)
	if err != nil {
		return nil, err
	}
	return design.Frame(table)
}
