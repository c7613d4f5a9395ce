package formula

import (
	"github.com/kelvin-ppl/kelvin/data"
	"github.com/kelvin-ppl/kelvin/internal/sample"
	"gonum.org/v1/gonum/floats"
)

// Rows are a table as numbers. Matrices are row-major.
type Rows struct {
	N int // rows
	// X has the common columns, N x len(Design.Names()); the constant is none of them.
	X      []float64
	Offset []float64   // N, the sum of the offsets; nil without one
	Groups []GroupRows // as Design.Groups
	// Smooths have the penalised columns of s, whose coefficients are iid normal, the number of gp, or the place of the
	// level of mo, from 0: N x SmoothDesign.Columns.
	Smooths [][]float64
	// Y is the outcome, N: a number, or the index of the level of a factor; N x len(Levels) for cbind(). Nil where the
	// table does not have it.
	Y      []float64
	Levels []string // of an outcome that is a factor, or columns of cbind(); nil otherwise
	// Added is what is added to the outcome, N each: "trials", whole numbers from 0; "weights", at least 0; "se", above
	// 0; "lower" and "above", the bounds of a truncated outcome; "cens", which is -1 where the outcome is at most Y, 0
	// where it is Y, 1 where it is at least Y, and 2 where it is between Y and "upper", which may be NaN elsewhere. A
	// table without the outcome may lack their columns.
	Added map[string][]float64
}

// Rows maps a table, old or new. A table without the outcome has no Y.
//
// A level of common terms that the training data do not have, a missing value, a value that a function does not take
// and a column that is missing or of another kind are errors, each a *data.Error with what would be right.
func (d *Design) Rows(t *data.Table) (*Rows, error) {
	s, err := newSource(t, d.f, d.m, false)
	if err != nil {
		return nil, err
	}
	r, err := d.rows(s)
	s.locate(err)
	return r, err
}

func (d *Design) rows(s *source) (*Rows, error) {
	r := &Rows{N: s.t.Len()}
	var err error
	p := len(d.names)
	r.X = make([]float64, r.N*p)
	if err := s.fill(d.columns, r.X, p); err != nil {
		return nil, err
	}
	at := len(d.columns)
	for _, m := range d.smooths {
		z, err := s.function(m, r.X, p, at)
		if err != nil {
			return nil, err
		}
		r.Smooths = append(r.Smooths, z)
		at += len(m.linear)
	}
	for _, g := range d.groups {
		rows, err := s.group(g)
		if err != nil {
			return nil, err
		}
		r.Groups = append(r.Groups, rows)
	}
	if r.Offset, err = s.offset(); err != nil {
		return nil, err
	}
	return r, s.outcome(r)
}

func (s *source) offset() (out []float64, err error) {
	for _, e := range s.f.Offsets {
		v, err := s.number(e)
		if err != nil {
			return nil, err
		}
		if out == nil {
			out = make([]float64, s.t.Len())
		}
		floats.Add(out, v)
	}
	return out, nil
}

// values are the rows of a part: numbers, or levels.
type values struct {
	part
	numbers []float64
	codes   []int32
}

func (v *values) at(i int) float64 {
	switch {
	case v.numbers != nil:
		return v.numbers[i]
	case v.full:
		return float64(number01(int(v.codes[i]) == v.j))
	}
	return v.contrast[v.codes[i]][v.j]
}

// fill writes columns into the first places of rows of width p.
func (s *source) fill(columns []column, to []float64, p int) error {
	parts := make([][]values, len(columns))
	codes := map[*variable][]int32{}
	for c, col := range columns {
		for _, a := range col.parts {
			v := values{part: a}
			if a.levels == nil {
				b, err := s.basis(a.expr)
				if err != nil {
					return err
				}
				v.numbers = b[a.j]
			} else {
				if codes[a.variable] == nil {
					var err error
					if codes[a.variable], err = s.levels(a.expr); err != nil {
						return err
					}
				}
				v.codes = codes[a.variable]
			}
			parts[c] = append(parts[c], v)
		}
	}
	const block = 1024 // rows that stay in the cache
	n := s.t.Len()
	for from := 0; from < n; from += block {
		for c := range parts {
			for i := from; i < min(from+block, n); i++ {
				x := 1.0
				for k := range parts[c] {
					x *= parts[c][k].at(i)
				}
				if to[i*p+c] = x; !sample.Finite(x) {
					return &data.Error{Row: i, Column: columns[c].name,
						Problem: "the product is beyond the range of numbers: scale its factors"}
				}
			}
		}
	}
	return nil
}
