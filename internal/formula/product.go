package formula

import (
	"math"
	"slices"
)

// factorOf is mo() or mi() in products.
type factorOf struct {
	expr   Expr     // the call
	levels []string // of mo
	low    float64  // of mo with numbers, the first
}

// products are those of mo() and mi(): one for each column that the product has where these are numbers (Bürkner 2017,
// as in brms), so that mo(x):g has one for each level of g, or for each but one beside mo(x).
func (p *planner) products(terms []Term) (out []smooth, err error) {
	columns, err := p.columns(terms, false)
	for _, c := range columns {
		m := smooth{of: Smooth{Kind: "product", at: c.parts[0].expr.at}, level: -1, name: c.name}
		for _, a := range c.parts {
			if a.of != nil {
				m.factors = append(m.factors, *a.of)
			} else {
				m.rest.parts = append(m.rest.parts, a)
			}
		}
		m.rest.name = c.name
		out = append(out, m)
	}
	return out, err
}

// newFactorOf learns the levels of mo(): those of a factor that rows have, or all whole numbers from the least to the
// largest.
func (s *source) newFactorOf(e Expr) (f factorOf, err error) {
	f.expr = e
	of := e.Args[0]
	if e.Name == "mi" {
		_, err := s.incomplete(of)
		return f, err
	}
	factor, err := s.isFactor(of)
	if err != nil {
		return f, err
	}
	if factor {
		f.levels, err = s.learnFactor(of)
		return f, err
	}
	x, err := s.numeric(of)
	if err != nil {
		return f, err
	}
	f.low = slices.Min(x)
	high := slices.Max(x)
	for i, v := range x {
		if v != math.Trunc(v) || high-f.low > 1000 || high == f.low {
			return f, cell(i, of, number(v), "mo() is of a factor with its levels in order, or of whole numbers, at least "+
				"two and at most 1000 apart")
		}
	}
	for v := f.low; v <= high; v++ {
		f.levels = append(f.levels, number(v))
	}
	return f, nil
}

// special has the values of the factors of a product, and the product of the rest of it where there is one.
func (s *source) special(m smooth) ([]float64, error) {
	width := m.width()
	out := make([]float64, s.t.Len()*width)
	for k, f := range m.factors {
		x, err := s.valuesOf(f)
		if err != nil {
			return nil, err
		}
		for i, v := range x {
			out[i*width+k] = v
		}
	}
	if width == len(m.factors) {
		return out, nil
	}
	return out, s.fill([]column{m.rest}, out[width-1:], width)
}

// valuesOf are the places of levels of mo(), from 0, or the values of mi(), of which missing ones are NaN.
func (s *source) valuesOf(f factorOf) (out []float64, err error) {
	of := f.expr.Args[0]
	if f.expr.Name == "mi" {
		return s.incomplete(of)
	}
	if factor, err := s.isFactor(of); err != nil || factor {
		codes, err := s.levels(of)
		for _, c := range codes {
			out = append(out, float64(c))
		}
		return out, err
	}
	v, err := s.numeric(of)
	for i := range v {
		if out = append(out, v[i]-f.low); !slices.Contains(f.levels, number(v[i])) {
			return nil, cell(i, of, number(v[i]), "the training data do not have this level of mo(): they have "+
				list(f.levels))
		}
	}
	return out, err
}

// emptyProduct is the place and the name of a product that is 0 in each row.
func (d *Design) emptyProduct(r *Rows) (m smooth, ok bool) {
	for k, m := range d.smooths {
		width := m.width()
		if m.of.Kind != "product" || width == len(m.factors) {
			continue
		}
		empty := true
		for i := width - 1; i < len(r.Smooths[k]); i += width {
			empty = empty && r.Smooths[k][i] == 0
		}
		if empty {
			return m, true
		}
	}
	return m, false
}
