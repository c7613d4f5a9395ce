package data

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// CSV reads comma-separated values (RFC 4180). The first line names the columns.
//
//	kinds     a column whose values are all numbers is one of numbers, one without any number is a factor; a mixture is
//	          an error, since it is a slip or needs to be stated
//	numbers   are decimal, with a point; hexadecimal, infinite and those beyond 1.8e308 are errors, and so are whole
//	          ones beyond 2^53 that float64 would round, and what looks like a date, a decimal comma or thousands,
//	          in a column whose kind is not stated
//	missing   is an empty field, and NA, NaN and nan
//	spaces    around values and names are cut off
//	lines     end in LF or CRLF; a quoted value may have newlines; empty lines are skipped
//	encoding  is UTF-8, with or without a byte order mark; two Unicode forms of one level are an error without NFC
//
// The zero value reads any such file. Errors are *[Error], with the line and the column.
type CSV struct {
	// Numbers and Factors state the kind of columns. Numbers that are codes, such as post codes, are factors.
	Numbers, Factors []string
	// Levels state the levels of factors, in their order. A value that is none of them is an error.
	Levels map[string][]string
	// Missing are the words that mean a missing value; nil is NA, NaN and nan. An empty field always means one.
	Missing []string
	// MissingIn are more such words, by column: a 0 where none can be.
	MissingIn map[string][]string
	// Columns are the columns to read, in any order; nil is all. The others may hold anything.
	Columns []string
	// Dates state the layouts of columns of dates, as those of [time.Parse]. They are numbers: days since 1970-01-01 UTC.
	Dates     map[string]string
	Comma     rune   // between the values; 0 is a comma
	Decimal   rune   // of numbers; 0 is a point. Files of R's write.csv2 have Comma: ';' and Decimal: ','
	Thousands rune   // between groups of three digits; 0 is none
	NFC       bool   // bring names and text to the Unicode form NFC, so that é and e with an accent are one
	Name      string // of the source, in errors; Open has the path
}

// Open reads a file.
func (c CSV) Open(path string) (*Table, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	defer func() { _ = f.Close() }()
	c.Name = cmp.Or(c.Name, path)
	return c.Read(f)
}

// Read reads to the end of r.
func (c CSV) Read(r io.Reader) (*Table, error) {
	if r == nil {
		return nil, &Error{Source: c.Name, Row: -1, Problem: "there is no reader"}
	}
	buffered := bufio.NewReader(r)
	head, err := buffered.Peek(3)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("data: %s: %w", c.Name, err)
	}
	switch mark := string(head); {
	case mark == "\ufeff":
		_, _ = buffered.Discard(3)
	case strings.HasPrefix(mark, "\xff\xfe"), strings.HasPrefix(mark, "\xfe\xff"):
		return nil, &Error{Source: c.Name, Line: 1, Row: -1, Problem: "the file is UTF-16: expected UTF-8"}
	}
	rd := &reader{c: c, csv: csv.NewReader(buffered), table: &Table{source: c.Name}}
	rd.csv.FieldsPerRecord, rd.csv.ReuseRecord = -1, true
	if c.Comma != 0 {
		rd.csv.Comma = c.Comma
	}
	if c.Missing == nil {
		rd.c.Missing = []string{"NA", "NaN", "nan"}
	}
	if err := rd.header(); err != nil {
		return nil, err
	}
	for {
		if done, err := rd.row(); err != nil {
			return nil, err
		} else if done {
			return rd.finish()
		}
	}
}

// reader is a file on its way to a table.
type reader struct {
	c     CSV
	csv   *csv.Reader
	names []string
	cells []*cells // by field; nil for columns that are not read
	table *Table
}

func (r *reader) header() error {
	fields, err := r.csv.Read()
	if errors.Is(err, io.EOF) {
		return r.wrong(0, "", "", "the file is empty: its first line must name the columns")
	}
	if err != nil {
		return r.broken(err, fields)
	}
	line, _ := r.csv.FieldPos(0)
	at := map[string]int{}
	for i, f := range fields {
		name := strings.Clone(strings.TrimSpace(f))
		if r.c.NFC {
			name = norm.NFC.String(name)
		}
		first, twice := at[name]
		switch {
		case !utf8.ValidString(name):
			return r.wrong(line, "", name, fmt.Sprintf("the name of field %d is not UTF-8", i+1))
		case strings.ContainsRune(name, '\r'):
			return r.wrong(line, "", name, "lines end in a lone CR: expected LF or CRLF")
		case name == "":
			return r.wrong(line, "", "", fmt.Sprintf("field %d of the first line is empty: it must name a column", i+1))
		case twice:
			return r.wrong(line, name, "", fmt.Sprintf("fields %d and %d have the same name", first+1, i+1))
		}
		at[name] = i
		r.names = append(r.names, name)
	}
	return r.plan(at)
}

// plan prepares the columns by what is stated of them.
func (r *reader) plan(at map[string]int) error {
	r.cells = make([]*cells, len(r.names))
	written, problem := r.c.separators()
	if problem != "" {
		return r.wrong(0, "", "", problem)
	}
	for i, name := range r.names {
		if r.c.Columns != nil && !slices.Contains(r.c.Columns, name) {
			continue
		}
		missing := append(slices.Clone(r.c.Missing), r.c.MissingIn[name]...)
		r.cells[i] = &cells{name: name, missing: missing, written: written, nfc: r.c.NFC}
	}
	stated := func(field string, names []string, f func(*cells) error) error {
		for _, name := range names {
			i, ok := at[name]
			if !ok {
				return r.wrong(0, name, "", fmt.Sprintf("CSV.%s names it, and the file has %s", field, list(r.names)))
			}
			if r.cells[i] == nil {
				return r.wrong(0, name, "", fmt.Sprintf("CSV.%s names it, and CSV.Columns does not", field))
			}
			if err := f(r.cells[i]); err != nil {
				return err
			}
		}
		return nil
	}
	return errors.Join(
		stated("Columns", r.c.Columns, func(*cells) error { return nil }),
		stated("Numbers", r.c.Numbers, func(c *cells) error { c.isNumber = true; return nil }),
		stated("Dates", keys(r.c.Dates), func(c *cells) error {
			c.isNumber, c.written.layout = true, r.c.Dates[c.name]
			return nil
		}),
		stated("Factors", r.c.Factors, func(c *cells) error { return r.factor(c, nil) }),
		stated("Levels", keys(r.c.Levels), func(c *cells) error { return r.factor(c, r.c.Levels[c.name]) }),
		stated("MissingIn", keys(r.c.MissingIn), func(*cells) error { return nil }),
	)
}

// factor makes a column a factor, of the levels that are stated; nil for any.
func (r *reader) factor(c *cells, levels []string) (err error) {
	if c.isNumber {
		return r.wrong(0, c.name, "", "it is stated both as numbers and as a factor")
	}
	levels = slices.Clone(levels)
	for i, l := range levels {
		if r.c.NFC {
			levels[i] = norm.NFC.String(l)
		}
	}
	c.factor, err = newFactor(c.name, levels)
	return err
}

func keys[T any](m map[string]T) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func (r *reader) row() (done bool, err error) {
	fields, err := r.csv.Read()
	if errors.Is(err, io.EOF) {
		return true, nil
	}
	if err != nil {
		return false, r.broken(err, fields)
	}
	start, _ := r.csv.FieldPos(0)
	if len(fields) != len(r.names) {
		problem := fmt.Sprintf("it has %d fields, expected %d, as the first line has", len(fields), len(r.names))
		e := r.wrong(start, "", "", problem)
		if len(fields) < len(r.names) {
			e.Column, e.Problem = r.names[len(fields)], "it is missing: the line has "+problem[len("it has "):]
		}
		return false, e
	}
	for i, c := range r.cells {
		if c == nil {
			continue
		}
		line, _ := r.csv.FieldPos(i)
		value := strings.TrimSpace(fields[i])
		problem := "it is not UTF-8"
		if utf8.ValidString(value) {
			problem = c.add(value, line)
		}
		if problem != "" {
			return false, r.wrong(line, c.name, value, problem)
		}
	}
	r.table.lines = append(r.table.lines, start)
	r.table.n++
	return false, nil
}

func (r *reader) finish() (*Table, error) {
	if r.table.n == 0 {
		return nil, r.wrong(0, "", "", "the file has the names of columns and no rows")
	}
	for _, c := range r.cells {
		if c != nil {
			r.table.columns = append(r.table.columns, c.column())
		}
	}
	r.table.index = newIndex(r.table.columns)
	return r.table, nil
}

// broken is an error of the CSV syntax: what was read of the line says which column it is in.
func (r *reader) broken(err error, fields []string) error {
	var syntax *csv.ParseError
	if !errors.As(err, &syntax) {
		return fmt.Errorf("data: %s: %w", r.c.Name, err)
	}
	e := r.wrong(syntax.StartLine, "", "", syntax.Err.Error())
	if len(fields) < len(r.names) {
		e.Column = r.names[len(fields)]
	}
	switch {
	case errors.Is(err, csv.ErrBareQuote):
		e.Problem = `a quote stands inside a value without quotes around it: write "a ""b"" c"`
	case errors.Is(err, csv.ErrQuote):
		e.Problem = fmt.Sprintf("the quote that begins here has no end up to line %d, or more than a %q follows its end",
			syntax.Line, r.csv.Comma)
	}
	return e
}

func (r *reader) wrong(line int, column, value, problem string) *Error {
	e := &Error{Source: r.c.Name, Line: line, Row: -1, Column: column, Value: value, Problem: problem}
	if line > 0 && column != "" {
		e.Row = r.table.n
	}
	return e
}
