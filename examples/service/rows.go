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

// What a column of a row may be.
const (
	aNumber = "a number"
	aString = "a string"
	either  = "a number or a string, in all rows alike"
)

// kind is what a design expects of a column.
func kind(design *data.Design, name string) string {
	switch {
	case design.Levels(name) != nil:
		return aString
	case slices.Contains(design.Names(), name):
		return aNumber
	}
	return either
}

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
			expected := kind(design, name)
			switch v := row[name].(type) {
			case float64:
				c.Numbers = append(c.Numbers, v)
			case string:
				c.Labels = append(c.Labels, v)
			}
			numbers, labels := len(c.Numbers) == i+1, len(c.Labels) == i+1 // in all rows so far
			if !(numbers && expected != aString || labels && expected != aNumber) {
				text, _ := json.Marshal(row[name])
				return nil, fmt.Errorf("row %d, field %q: got %s, expected %s", i, name, text, expected)
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
