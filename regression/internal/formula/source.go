package formula

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/kelvin-ppl/kelvin/data"
)

// memory is what a design has learned from the training data.
type memory struct {
	levels  map[string][]string  // of each factor by its expression
	numbers map[string][]float64 // of expressions: the mean and the standard deviation of scale(x), ...
	outcome []string             // levels of an outcome that is a factor; nil otherwise
}

// source evaluates expressions on a table. While it learns, it puts what they depend on into the memory, and takes it
// from there otherwise.
type source struct {
	t        *data.Table
	names    []string
	f        *Formula
	m        *memory
	learning bool
	columns  map[string]data.Column
	factors  map[string]*codes
	bases    map[string][][]float64 // columns of variables, by their expressions
}

func newSource(t *data.Table, f *Formula, m *memory, learning bool) (*source, error) {
	if t == nil || t.Len() == 0 {
		return nil, &data.Error{Row: -1, Problem: "there are no rows"}
	}
	return &source{t: t, names: t.Names(), f: f, m: m, learning: learning, columns: map[string]data.Column{},
		factors: map[string]*codes{}, bases: map[string][][]float64{}}, nil
}

// reader reads calls of the formula anew, which was checked when it was parsed.
func (s *source) reader() *expansion { return &expansion{text: s.f.text} }

// codes is a factor of a table.
type codes struct {
	of     []int32  // level of each row
	levels []string // of the table
	used   []bool   // whether a level has a row
}

// wrong is a mistake of an expression: a place in the formula, where that was written, or a column.
func (s *source) wrong(e Expr, problem string, args ...any) error {
	problem = fmt.Sprintf(problem, args...)
	if s.learning {
		return s.f.wrong(e.at, problem)
	}
	return &data.Error{Row: -1, Column: e.String(), Problem: problem}
}

func (f *Formula) wrong(at int, problem string) *Error {
	return &Error{Text: f.text, Column: at, Problem: problem}
}

// cell is a mistake of a value.
func cell(row int, of Expr, value, problem string) error {
	return &data.Error{Row: row, Column: of.plain(), Value: value, Problem: problem}
}

// plain is the name of a column without backquotes, or the expression.
func (e Expr) plain() string {
	if e.Kind == Column {
		return e.Name
	}
	return e.String()
}

func (s *source) has(e Expr) bool { return slices.Contains(s.names, e.Name) }

// column is a column without missing values.
func (s *source) column(e Expr) (data.Column, error) {
	if c, ok := s.columns[e.Name]; ok {
		return c, nil
	}
	if !s.has(e) {
		return data.Column{}, s.wrong(e, "there is no column %q: %s", short(e.Name), Nearest(e.Name, s.names))
	}
	missing, err := s.t.Missing(e.Name)
	if err != nil {
		return data.Column{}, err
	}
	if len(missing) > 0 {
		more := ""
		if n := len(missing) - 1; n > 0 {
			more = fmt.Sprintf(", and so are %d more of the column", n)
		}
		return data.Column{}, &data.Error{Row: missing[0].Row, Line: missing[0].Line, Column: e.Name,
			Problem: "it is missing" + more + ": drop such rows with Table.DropMissing, or model them"}
	}
	c, err := s.t.Column(e.Name)
	s.columns[e.Name] = c
	return c, err
}

// isFactor says whether a column of the table has levels.
func (s *source) isFactor(e Expr) (bool, error) {
	if e.Kind == Call {
		return e.Name == "factor" || e.Name == "C", nil
	}
	c, err := s.column(e)
	return c.Labels != nil, err
}

// factor is a factor of the table: a column of labels, or factor() of any column.
func (s *source) factor(e Expr) (*codes, error) {
	if c := s.factors[e.String()]; c != nil {
		return c, nil
	}
	of := e
	if e.Kind == Call {
		of = e.Args[0]
	}
	if c := s.factors[of.String()]; c != nil {
		return c, nil
	}
	c, err := s.column(of)
	if err != nil {
		return nil, err
	}
	var out *codes
	if c.Labels == nil {
		out = distinct(c.Numbers)
	} else {
		out = labelled(c)
		e = of
	}
	out.used = make([]bool, len(out.levels))
	for _, code := range out.of {
		out.used[code] = true
	}
	s.factors[e.String()] = out
	return out, nil
}

func labelled(c data.Column) *codes {
	out := &codes{levels: c.Levels, of: make([]int32, len(c.Labels))}
	at := make(map[string]int32, len(c.Levels))
	for i, l := range c.Levels {
		at[l] = int32(i)
	}
	for i, l := range c.Labels {
		out.of[i] = at[l]
	}
	return out
}

// distinct makes levels of numbers, in their order.
func distinct(x []float64) *codes {
	at := map[float64]int32{}
	var values []float64
	for _, v := range x {
		if _, ok := at[v]; !ok {
			at[v] = 0
			values = append(values, v)
		}
	}
	slices.Sort(values)
	out := &codes{of: make([]int32, len(x))}
	for i, v := range values {
		at[v] = int32(i)
		out.levels = append(out.levels, number(v+0)) // one zero
	}
	for i, v := range x {
		out.of[i] = at[v]
	}
	return out
}

// product is the factor of the combinations that rows have, with colons in their names.
func (s *source) product(factors []Expr) (*codes, error) {
	out, err := s.factor(factors[0])
	for _, e := range factors[1:] {
		if err != nil {
			return nil, err
		}
		var c *codes
		if c, err = s.factor(e); err != nil {
			return nil, err
		}
		out = combine(out, c)
	}
	return out, err
}

func combine(a, b *codes) *codes {
	pair := func(i int) int { return int(a.of[i])*len(b.levels) + int(b.of[i]) }
	at := map[int]int32{}
	var pairs []int
	for i := range a.of {
		if _, ok := at[pair(i)]; !ok {
			at[pair(i)] = 0
			pairs = append(pairs, pair(i))
		}
	}
	slices.SortFunc(pairs, func(x, y int) int { return cmp.Compare(x, y) })
	out := &codes{of: make([]int32, len(a.of))}
	for i, p := range pairs {
		at[p] = int32(i)
		n := len(b.levels)
		out.levels = append(out.levels, a.levels[p/n]+":"+b.levels[p%n])
		out.used = append(out.used, true)
	}
	for i := range a.of {
		out.of[i] = at[pair(i)]
	}
	return out
}

// known maps the levels of a table to those of the memory, -1 for one that it does not have.
func (s *source) known(key string, c *codes) (to []int32, learned []string) {
	if s.learning && s.m.levels[key] == nil {
		s.m.levels[key] = c.present()
	}
	return matched(c.levels, s.m.levels[key]), s.m.levels[key]
}

// present are the levels that rows have.
func (c *codes) present() (out []string) {
	for i, l := range c.levels {
		if c.used[i] {
			out = append(out, l)
		}
	}
	return out
}

func matched(levels, known []string) []int32 {
	at := make(map[string]int32, len(known))
	for i, l := range known {
		at[l] = int32(i)
	}
	to := make([]int32, len(levels))
	for i, l := range levels {
		to[i] = -1
		if k, ok := at[l]; ok {
			to[i] = k
		}
	}
	return to
}

// levels are the indices of a factor of common terms, all of whose levels are known.
func (s *source) levels(e Expr) ([]int32, error) {
	c, err := s.factor(e)
	if err != nil {
		return nil, err
	}
	if factor, err := s.isFactor(e); !factor {
		return nil, cmp.Or(err, s.wrong(e, "it is a number here, and was a factor in the training data"))
	}
	to, learned := s.known(e.String(), c)
	out := make([]int32, len(c.of))
	for i, code := range c.of {
		if out[i] = to[code]; out[i] < 0 {
			of := e
			if e.Kind == Call {
				of = e.Args[0]
			}
			return nil, cell(i, of, c.levels[code],
				"the training data do not have this level: they have "+list(learned))
		}
	}
	return out, nil
}

// learnFactor has the levels of a factor of common terms, and checks them.
func (s *source) learnFactor(e Expr) ([]string, error) {
	c, err := s.factor(e)
	if err != nil {
		return nil, err
	}
	_, levels := s.known(e.String(), c)
	if len(levels) < 2 {
		return nil, s.wrong(e, "%s has one level in the training data, %q: a term needs at least two; leave it out", e,
			short(levels[0]))
	}
	return levels, nil
}
