package main

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/data"
	"github.com/kelvin-ppl/kelvin/internal/records"
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
	table, err := records.Table(design, r)
	if err != nil {
		return nil, err
	}
	return design.Frame(table)
}
