// Package records reads the rows of a request in JSON: objects with a field for each column.
package records

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/kelvin-ppl/kelvin/data"
)

// Once is an error where something is in a text more often than once: a field of an object, or the document. Decoders
// take the last of the former, and the first of the latter. expected is what the text should be.
func Once(text []byte, expected string) error {
	d := json.NewDecoder(bytes.NewReader(text))
	type object struct {
		names map[string]bool // nil for a list
		value bool            // the next token is a value
	}
	var open []object
	for {
		token, err := d.Token()
		if err != nil {
			return fmt.Errorf("the body: %w, expected %s", err, expected)
		}
		top := len(open) - 1
		delim, _ := token.(json.Delim)
		switch {
		case delim == '}' || delim == ']':
			open = open[:top]
		case top >= 0 && open[top].names != nil && !open[top].value:
			name, _ := token.(string)
			if top == 0 {
				name = strings.ToLower(name) // as decoders compare the fields of a struct
			}
			if open[top].names[name] {
				return fmt.Errorf("field %q: it is there twice", name)
			}
			open[top].names[name], open[top].value = true, true
			continue
		case delim == '{':
			open = append(open, object{names: map[string]bool{}})
			continue
		case delim == '[':
			open = append(open, object{})
			continue
		}
		if len(open) > 0 {
			open[len(open)-1].value = false
			continue
		}
		break
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("the body: there is more after the first document, expected %s", expected)
	}
	return nil
}

// What a column of a row may be.
const (
	aNumber = "a number"
	aString = "a string"
	either  = "a number or a string, in all rows alike"
)

// Columns say what rows have: a [data.Design] does.
type Columns interface {
	Names() []string               // numbers among them
	Levels(column string) []string // of a column of labels, nil for others
}

// kind is what a design with these numbers expects of a column.
func kind(design Columns, numbers []string, name string) string {
	switch {
	case design.Levels(name) != nil:
		return aString
	case slices.Contains(numbers, name):
		return aNumber
	}
	return either
}

// Table has rows as columns, of which there is at least one. A column that is missing and a value of the wrong kind are
// errors that name it.
func Table(design Columns, rows []map[string]any) (*data.Table, error) {
	var columns []data.Column
	known := design.Names()
	for _, name := range slices.Sorted(maps.Keys(rows[0])) {
		c := data.Column{Name: name}
		expected := kind(design, known, name)
		for i, row := range rows {
			if len(row) != len(rows[0]) {
				return nil, fmt.Errorf("row %d has %d columns, and row 0 has %d", i, len(row), len(rows[0]))
			}
			switch v := row[name].(type) {
			case float64:
				c.Numbers = append(c.Numbers, v)
			case string:
				c.Labels = append(c.Labels, v)
			}
			numbers, labels := len(c.Numbers) == i+1, len(c.Labels) == i+1 // in all rows so far
			if !(numbers && expected != aString || labels && expected != aNumber) {
				return nil, Unexpected(i, name, row[name], expected)
			}
		}
		columns = append(columns, c)
	}
	return data.NewTable(columns...)
}

// Unexpected says what a field of a row is and should be.
func Unexpected(row int, name string, got any, expected string) error {
	text, _ := json.Marshal(got)
	return fmt.Errorf("row %d, field %q: got %s, expected %s", row, name, text, expected)
}
