package data

import "math"

// Cell is a place in a table.
type Cell struct {
	Row    int    // from 0
	Line   int    // of the file, from 1; 0 for a row of no file
	Column string // its name
}

// Missing are the missing values of some columns, or of all where none are named, row after row.
func (t *Table) Missing(columns ...string) ([]Cell, error) {
	chosen, err := t.choose(columns)
	if err != nil {
		return nil, err
	}
	var out []Cell
	for row := range t.n {
		for _, c := range chosen {
			if c.absent(row) {
				cell := Cell{Row: row, Column: c.name}
				if t.lines != nil {
					cell.Line = t.lines[row]
				}
				out = append(out, cell)
			}
		}
	}
	return out, nil
}

// DropMissing is the table without the rows where one of some columns is missing, or any where none are named, and the
// number of rows that were dropped. That biases a regression unless values are missing at random given the covariates
// (Little and Rubin 2019, Statistical Analysis with Missing Data, section 3.2). No row left is an error.
func (t *Table) DropMissing(columns ...string) (complete *Table, dropped int, err error) {
	chosen, err := t.choose(columns)
	if err != nil {
		return nil, 0, err
	}
	var rows []int
	for row := range t.n {
		keep := true
		for _, c := range chosen {
			keep = keep && !c.absent(row)
		}
		if keep {
			rows = append(rows, row)
		}
	}
	if len(rows) == 0 {
		return nil, t.n, t.wrong(-1, "", "", "every row has a missing value: name the columns that the model takes")
	}
	return t.take(rows), t.n - len(rows), nil
}

// choose are the columns of some names, or all.
func (t *Table) choose(names []string) ([]column, error) {
	if len(names) == 0 {
		return t.columns, nil
	}
	out := make([]column, len(names))
	for i, name := range names {
		var err error
		if out[i], err = t.get(name); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (c column) absent(row int) bool {
	if c.factor {
		return c.codes[row] < 0
	}
	return math.IsNaN(c.numbers[row])
}

func (c column) missing() (n int) {
	for row := range max(len(c.codes), len(c.numbers)) {
		if c.absent(row) {
			n++
		}
	}
	return n
}
