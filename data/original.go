package data

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kelvin-ppl/kelvin/draws"
)

// expansion is a column of the matrix in terms of the columns without scaling, by their place; the intercept is -1.
type expansion struct {
	parts   map[int]float64
	missing string // a product that the expansion needs and the design does not have
}

// maps expands all columns: Π (x_i - m_i)/s_i = Σ over subsets S of Π_{i in S} x_i/s_i · Π_{i not in S} -m_i/s_i.
func maps(columns []designColumn) []expansion {
	at := map[string]int{"": -1}
	for i, c := range columns {
		at[key(c.atoms)] = i
	}
	out := make([]expansion, len(columns))
	for i, c := range columns {
		out[i].parts = map[int]float64{}
		for subset := range 1 << len(c.atoms) {
			coefficient := 1.0
			var kept []atom
			for j, a := range c.atoms {
				s := Scaling{SD: 1}
				if !a.factor {
					s = a.scaling
				}
				if subset>>j&1 == 1 {
					coefficient /= s.SD
					kept = append(kept, a)
				} else {
					coefficient *= -s.Mean / s.SD
				}
			}
			if coefficient == 0 {
				continue
			}
			to, ok := at[key(kept)]
			if !ok {
				out[i].missing = strings.Join(names(kept), ":")
				continue
			}
			out[i].parts[to] += coefficient
		}
	}
	return out
}

func names(atoms []atom) []string {
	out := make([]string, len(atoms))
	for i, a := range atoms {
		out[i] = a.name()
	}
	return out
}

// key is the same for products in any order.
func key(atoms []atom) string {
	n := names(atoms)
	for i := range n {
		n[i] = fmt.Sprintf("%q", n[i])
	}
	slices.Sort(n)
	return strings.Join(n, "")
}

// Original maps the coefficients of a linear predictor on the scale of the design, intercept + x·w, to those on the
// scale of the file, where no number is scaled: the predictions are the same. With m and s the mean and divisor of each
// number, and my and sy those of the outcome,
//
//	w'_j = sy w_j/s_j,  intercept' = my + sy (intercept - Σ w_j m_j/s_j)
//
// and likewise in products. A model without an intercept has 0. It holds for each draw;
// [Design.Draws] maps all of them. A standard deviation of y has the factor Outcome().SD alone.
//
// The wrong number of coefficients is an error, and so is a product of scaled numbers without its main effects: on the
// scale of the file it has a part in them.
func (d *Design) Original(intercept float64, w []float64) (float64, []float64, error) {
	if len(w) != len(d.columns) {
		return 0, nil, &Error{Row: -1, Problem: fmt.Sprintf("%d coefficients, expected %d, one for each of %s", len(w),
			len(d.columns), list(d.Names()))}
	}
	y := d.Outcome()
	out := make([]float64, len(w))
	for i, e := range d.original {
		if e.missing != "" {
			return 0, nil, &Error{Row: -1, Column: d.columns[i].name, Problem: fmt.Sprintf("on the scale of the file it "+
				"has a part in %q, which is no term: add it, or scale nothing in the product", e.missing)}
		}
		for to, c := range e.parts {
			if to < 0 {
				intercept += c * w[i]
			} else {
				out[to] += c * w[i] * y.SD
			}
		}
	}
	return y.Back(intercept), out, nil
}

// Draws are draws of the coefficients on the scale of the file, named as in the design: from the site of the intercept,
// of shape [], and that of the weights, of one element for each column. An empty intercept is a model without one. The
// statistics and notes of the posterior are kept, other sites are not. An unknown site and one of another size are
// errors.
func (d *Design) Draws(posterior *draws.Draws, intercept, w string) (*draws.Draws, error) {
	if posterior == nil {
		return nil, &Error{Row: -1, Problem: "there are no draws"}
	}
	site := func(name string, size int) (int, error) {
		for _, s := range posterior.Sites() {
			if s.Name == name && s.Size == size {
				return s.Offset, nil
			}
		}
		return 0, &Error{Row: -1, Problem: fmt.Sprintf("the draws have no site %q of %d elements: they have %s", name, size,
			list(posterior.Names()))}
	}
	from, err := site(w, len(d.columns))
	if err != nil {
		return nil, err
	}
	base := -1
	if intercept != "" {
		if base, err = site(intercept, 1); err != nil {
			return nil, err
		}
	}
	sites := []draws.Site{{Name: "intercept", Shape: []int{}, Size: 1}}
	for i, c := range d.columns {
		sites = append(sites, draws.Site{Name: c.name, Shape: []int{}, Size: 1, Offset: i + 1})
	}
	out, err := draws.New(sites, posterior.Stats(), posterior.Chains())
	if err != nil {
		return nil, fmt.Errorf("data: the names of a design as sites: %w", err)
	}
	for c := range posterior.Chains() {
		for i := range posterior.Len(c) {
			row, b := posterior.Row(c, i), 0.0
			if base >= 0 {
				b = row[base]
			}
			b, w, err := d.Original(b, row[from:from+len(d.columns)])
			if err != nil {
				return nil, err
			}
			if err := out.AppendChain(c, append([]float64{b}, w...), posterior.StatRow(c, i)); err != nil {
				return nil, err
			}
		}
	}
	for _, n := range posterior.Notes() {
		out.AddNote(n)
	}
	return out, nil
}

// Effects are what the columns of a factor add to the linear predictor in each of its levels, in the order of
// [Design.Levels]: the contrast matrix times its coefficients, of the coefficients w of all columns, on either scale.
// Products are left out. A column that is no factor of the terms is an error.
func (d *Design) Effects(column string, w []float64) ([]float64, error) {
	if len(w) != len(d.columns) {
		return nil, &Error{Row: -1, Problem: fmt.Sprintf("%d coefficients, expected %d", len(w), len(d.columns))}
	}
	var out []float64
	for j, c := range d.columns {
		if a := c.atoms[0]; len(c.atoms) == 1 && a.factor && a.column == column {
			if out == nil {
				out = make([]float64, len(a.levels))
			}
			for level := range out {
				out[level] += a.matrix[level][a.part] * w[j]
			}
		}
	}
	if out == nil {
		return nil, &Error{Row: -1, Column: column, Problem: "it is no factor among the terms of the design"}
	}
	return out, nil
}
