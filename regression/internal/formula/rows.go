package formula

import "github.com/kelvin-ppl/kelvin/data"

// Rows are a table as numbers. Matrices are row-major.
type Rows struct {
	N int // rows
	// X has the common columns, N x len(Design.Names()); the constant is none of them.
	X       []float64
	Offset  []float64    // N, the sum of the offsets; nil without one
	Groups  []GroupRows  // as Design.Groups
	Smooths []SmoothRows // as Design.Smooths
	// Y is the outcome, N: a number, or the index of the level of a factor. Nil where the table does not have it.
	Y      []float64
	Levels []string // of an outcome that is a factor; nil otherwise
	// What is added to the outcome, N each; nil where the formula does not have it. A table without the outcome may
	// lack their columns.
	Trials  []float64 // whole numbers from 0
	Weights []float64 // at least 0
	SE      []float64 // above 0
	// Censored is -1 where the outcome is at most Y, 0 where it is Y, 1 where it is at least Y, and 2 where it is
	// between Y and Upper, which may be NaN elsewhere.
	Censored []int
	Upper    []float64
	// Lower and Above are the bounds of a truncated outcome; nil for none.
	Lower, Above []float64
}

// GroupRows are the columns of a group of terms.
type GroupRows struct {
	X []float64 // N x len(GroupDesign.Columns)
	// Index has the place of the level of each row in GroupDesign.Levels, N x GroupDesign.Members; -1 for another
	// level.
	Index []int
	// Weights of the levels of each row in a multi-membership, of the shape of Index and of sum 1; nil otherwise.
	Weights []float64
	Unseen  []string // levels that the training data do not have, in the order of the table
	New     []int    // place in Unseen where Index is -1, and -1 elsewhere; nil without such levels
}

// SmoothRows are the penalised columns of a smooth, N x SmoothDesign.Columns: their coefficients are iid normal. Those
// of one level are 0 in rows of other levels.
type SmoothRows struct {
	Z []float64
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
	return d.rows(s)
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
		z, err := s.smooth(m, r.X, p, at)
		if err != nil {
			return nil, err
		}
		r.Smooths = append(r.Smooths, SmoothRows{z})
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

func (s *source) offset() ([]float64, error) {
	var out []float64
	for _, e := range s.f.Offsets {
		v, err := s.number(e)
		if err != nil {
			return nil, err
		}
		if out == nil {
			out = make([]float64, s.t.Len())
		}
		for i := range out {
			out[i] += v.at(i)
		}
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
				if to[i*p+c] = x; !finite(x) {
					return &data.Error{Row: i, Column: columns[c].name, Problem: "the product is beyond the range of numbers: " +
						"scale its factors"}
				}
			}
		}
	}
	return nil
}

// smooth has the penalised columns, and writes the others into the common ones.
func (s *source) smooth(m smooth, x []float64, p, at int) ([]float64, error) {
	v, err := s.number(m.of.X)
	if err != nil {
		return nil, err
	}
	by := vector{c: 1}
	var codes []int32
	if m.level >= 0 {
		codes, err = s.levels(m.of.By)
	} else if !m.of.By.None() {
		by, err = s.numeric(m.of.By)
	}
	if err != nil {
		return nil, err
	}
	n, width := s.t.Len(), m.of.k()-2
	z := make([]float64, n*width)
	for i := range n {
		if codes != nil && int(codes[i]) != m.level {
			continue
		}
		row, w := z[i*width:(i+1)*width], by.at(i)
		u := (v.at(i) - m.cubic.mean) / m.cubic.sd
		m.cubic.evaluate(u, row)
		for j := range row {
			if row[j] *= w; !finite(row[j]) {
				return nil, cell(i, m.of.X, number(v.at(i)), "the smooth is not finite there: it is too far from the training data")
			}
		}
		if len(m.linear) == 2 {
			x[i*p+at], x[i*p+at+1] = w, w*u
		} else {
			x[i*p+at] = u
		}
	}
	return z, nil
}

// group has the columns and the levels of a group.
func (s *source) group(g group) (GroupRows, error) {
	n, p := s.t.Len(), len(g.columns)
	out := GroupRows{X: make([]float64, n*p), Index: make([]int, n*g.Members)}
	if err := s.fill(g.columns, out.X, p); err != nil {
		return out, err
	}
	var factors []*codes
	if g.of.Members == nil {
		c, err := s.product(g.of.Factors)
		if err != nil {
			return out, err
		}
		factors = append(factors, c)
	}
	for _, e := range g.of.Members {
		c, err := s.factor(e)
		if err != nil {
			return out, err
		}
		factors = append(factors, c)
	}
	fresh := map[string]int{}
	for m, c := range factors {
		to := matched(c.levels, g.Levels)
		for k, l := range c.levels {
			if _, known := fresh[l]; to[k] < 0 && c.used[k] && !known {
				fresh[l] = len(out.Unseen)
				out.Unseen = append(out.Unseen, l)
			}
		}
		for i, code := range c.of {
			out.Index[i*g.Members+m] = int(to[code])
		}
	}
	if out.Unseen != nil {
		out.New = make([]int, len(out.Index))
		for m, c := range factors {
			for i, code := range c.of {
				out.New[i*g.Members+m] = -1
				if out.Index[i*g.Members+m] < 0 {
					out.New[i*g.Members+m] = fresh[c.levels[code]]
				}
			}
		}
	}
	var err error
	if g.Members > 1 {
		out.Weights, err = s.memberWeights(g)
	}
	return out, err
}

// memberWeights are those of a multi-membership: all the same, or those stated by their sum.
func (s *source) memberWeights(g group) ([]float64, error) {
	out := make([]float64, s.t.Len()*g.Members)
	weights := make([]vector, g.Members)
	for m := range weights {
		weights[m] = vector{c: 1}
		if g.of.Weights != nil {
			var err error
			if weights[m], err = s.number(g.of.Weights[m]); err != nil {
				return nil, err
			}
		}
	}
	for i := range s.t.Len() {
		total := 0.0
		for m, w := range weights {
			if w.at(i) < 0 {
				return nil, cell(i, g.of.Weights[m], number(w.at(i)), "a weight of mm() is at least 0")
			}
			total += w.at(i)
		}
		if !(total > 0) || !finite(total) {
			return nil, cell(i, g.of.Weights[0], "", "the weights of mm() have the sum "+number(total)+": it must be above 0")
		}
		for m, w := range weights {
			out[i*g.Members+m] = w.at(i) / total
		}
	}
	return out, nil
}
