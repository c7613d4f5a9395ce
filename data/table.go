package data

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/kelvin-ppl/kelvin/internal/visible"
)

// Column is a column of a table: a name, and either numbers or labels.
type Column struct {
	Name string // of the column; not empty
	// Numbers are the values of a column of numbers, NaN where one is missing.
	Numbers []float64
	// Labels are the values of a factor, "" where one is missing.
	Labels []string
	// Levels are the values that a factor may have, in their order. Nil takes them from the labels: sorted, as numbers
	// where all of them are numbers.
	Levels []string
}

// Table is rows of typed columns. It is immutable: what changes one returns another, which shares its columns.
type Table struct {
	source  string
	lines   []int // line of each row; nil where there is no file
	columns []column
	index   *index // of the columns
	n       int
}

// column is a column as a table keeps it.
type column struct {
	name    string
	factor  bool
	numbers []float64
	codes   []int // index of the level of each row, -1 where the value is missing
	levels  []string
	stated  bool // whether the levels were stated, not found
}

// NewTable makes a table of columns of one length, for data that are in memory. The slices are copied. A column that is
// empty or has no name, a name twice, an infinite number, a level twice and a label that is no level are errors.
func NewTable(columns ...Column) (*Table, error) {
	t := &Table{}
	for _, c := range columns {
		if t.find(c.Name) >= 0 {
			return nil, t.wrong(-1, c.Name, "", "the table has it already")
		}
		var err error
		if t, err = t.With(c); err != nil {
			return nil, err
		}
	}
	if len(columns) == 0 {
		return nil, &Error{Row: -1, Problem: "a table needs at least one column"}
	}
	return t, nil
}

// With is the table with one more column, or with another one of that name in its place. A column of another length
// than the others is an error; so is what [NewTable] refuses.
func (t *Table) With(c Column) (*Table, error) {
	n := len(c.Numbers) + len(c.Labels)
	switch {
	case strings.TrimSpace(c.Name) == "":
		return nil, &Error{Row: -1, Problem: fmt.Sprintf("column %d has no name", len(t.columns))}
	case len(c.Numbers) > 0 && len(c.Labels) > 0:
		return nil, t.wrong(-1, c.Name, "", "it has both Numbers and Labels: give one of them")
	case n == 0:
		return nil, t.wrong(-1, c.Name, "", "it is empty")
	case len(t.columns) > 0 && n != t.n:
		return nil, t.wrong(-1, c.Name, "", fmt.Sprintf("it has %d rows, the table has %d", n, t.n))
	}
	made, err := t.column(c)
	if err != nil {
		return nil, err
	}
	out := &Table{source: t.source, lines: t.lines, n: n, index: t.index}
	at := t.find(c.Name)
	if out.columns = t.index.grown(t.columns, made, at); out.columns == nil {
		out.columns = slices.Clone(t.columns)
		if at >= 0 {
			out.columns[at] = made
		} else {
			out.columns = append(out.columns, made)
		}
		out.index = newIndex(out.columns)
	}
	return out, nil
}

// index finds the columns of a table by their names. Tables that grow from each other share it, so that a column more
// costs no copy of the others: each sees as many of its columns as it had.
type index struct {
	mu      sync.Mutex
	columns []column
	at      map[string]int
}

func newIndex(columns []column) *index {
	x := &index{columns: columns, at: make(map[string]int, len(columns))}
	for i, c := range columns {
		x.at[c.name] = i
	}
	return x
}

// grown is the columns of a table and a new one; nil where they have to be copied, because the column replaces one, or
// because another table has grown from this one.
func (x *index) grown(columns []column, made column, at int) []column {
	if x == nil || at >= 0 {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.columns) != len(columns) {
		return nil
	}
	x.at[made.name] = len(columns)
	x.columns = append(x.columns, made)
	return x.columns[:len(x.columns):len(x.columns)]
}

// find is the place of a name among the first n columns, or -1.
func (x *index) find(name string, n int) int {
	if x == nil {
		return -1
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if at, ok := x.at[name]; ok && at < n {
		return at
	}
	return -1
}

func (t *Table) column(c Column) (column, error) {
	out := column{name: c.Name, factor: len(c.Labels) > 0, numbers: slices.Clone(c.Numbers)}
	for i, v := range c.Numbers {
		if math.IsInf(v, 0) {
			return out, t.wrong(i, c.Name, format(v), "a number must be finite, or NaN where it is missing")
		}
	}
	if !out.factor {
		return out, nil
	}
	b, err := newFactor(c.Name, c.Levels)
	if err != nil {
		return out, err
	}
	for i, label := range c.Labels {
		if problem := b.add(label); problem != "" {
			return out, t.wrong(i, c.Name, label, problem)
		}
	}
	return b.column(), nil
}

// Len is the number of rows.
func (t *Table) Len() int { return t.n }

// Names are the names of the columns, in order.
func (t *Table) Names() []string {
	names := make([]string, len(t.columns))
	for i, c := range t.columns {
		names[i] = c.name
	}
	return names
}

// Column is a copy of a column. An unknown name is an error.
func (t *Table) Column(name string) (Column, error) {
	c, err := t.get(name)
	if err != nil {
		return Column{}, err
	}
	out := Column{Name: name, Numbers: slices.Clone(c.numbers), Levels: slices.Clone(c.levels)}
	for _, code := range c.codes {
		label := ""
		if code >= 0 {
			label = c.levels[code]
		}
		out.Labels = append(out.Labels, label)
	}
	return out, nil
}

// Rows is the table with some of its rows, in the order given, from 0; a row may be there more than once.
func (t *Table) Rows(rows ...int) (*Table, error) {
	for _, r := range rows {
		if r < 0 || r >= t.n {
			return nil, &Error{Source: t.source, Row: -1, Problem: fmt.Sprintf("there is no row %d: there are %d", r, t.n)}
		}
	}
	return t.take(rows), nil
}

func (t *Table) take(rows []int) *Table {
	out := &Table{source: t.source, n: len(rows)}
	for _, c := range t.columns {
		c.numbers, c.codes = pick(c.numbers, rows), pick(c.codes, rows)
		out.columns = append(out.columns, c)
	}
	out.lines, out.index = pick(t.lines, rows), newIndex(out.columns)
	return out
}

func pick[T any](x []T, rows []int) []T {
	if x == nil {
		return nil
	}
	out := make([]T, len(rows))
	for i, r := range rows {
		out[i] = x[r]
	}
	return out
}

// String tells of the columns, a line for each: its kind, range or levels, and how many values are missing.
func (t *Table) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d rows\n", t.n)
	width := 0
	for _, c := range t.columns {
		width = max(width, len([]rune(short(c.name))))
	}
	for _, c := range t.columns {
		fmt.Fprintf(&b, "%-*s  %s", width, short(c.name), c.describe())
		if n := c.missing(); n > 0 {
			fmt.Fprintf(&b, ", %d missing", n)
		}
		b.WriteByte('\n')
	}
	return visible.Text(b.String())
}

func (c column) describe() string {
	if c.factor {
		return fmt.Sprintf("factor of %d levels: %s", len(c.levels), list(c.levels))
	}
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range c.numbers {
		if !math.IsNaN(v) {
			low, high = math.Min(low, v), math.Max(high, v)
		}
	}
	if low > high {
		return "numbers"
	}
	return fmt.Sprintf("numbers from %v to %v", low, high)
}

func (t *Table) find(name string) int {
	return t.index.find(name, len(t.columns))
}

func (t *Table) get(name string) (column, error) {
	if i := t.find(name); i >= 0 {
		return t.columns[i], nil
	}
	return column{}, t.wrong(-1, name, "", "there is no such column: there are "+list(t.Names()))
}

// Line is the line of the file, from 1, that a row was read from; 0 for a row of no file.
func (t *Table) Line(row int) int {
	if row < 0 || row >= len(t.lines) {
		return 0
	}
	return t.lines[row]
}

// wrong is the error of a cell, or of a column where the row is -1.
func (t *Table) wrong(row int, column, value, problem string) *Error {
	return &Error{Source: t.source, Line: t.Line(row), Row: row, Column: column, Value: value, Problem: problem}
}

func format(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
