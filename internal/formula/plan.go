package formula

import (
	"fmt"
	"slices"
	"strings"
)

// variable is a factor of terms: numbers, or levels with their contrast.
type variable struct {
	expr     Expr
	levels   []string // nil for numbers
	coding   coding
	contrast [][]float64
	of       *factorOf // of mo() and mi(); nil for others
	labels   []string  // of the columns of the contrast, or of the numbers
}

// part is one column of a variable.
type part struct {
	*variable
	j    int
	full bool // whether it is the indicator of level j, not column j of the contrast
}

func (p part) name() string {
	switch {
	case p.levels == nil:
		return p.expr.plain() + p.labels[p.j]
	case p.full:
		return p.expr.plain() + "[" + p.levels[p.j] + "]"
	}
	return p.expr.plain() + "[" + p.labels[p.j] + "]"
}

// column is the product of its parts; that of none is the constant.
type column struct {
	name  string
	parts []part
}

// planner makes columns of terms, and learns what they need.
type planner struct {
	s         *source
	variables map[string]*variable
}

const mostColumns = 50000

// columns are those of some terms, without the constant. In products the columns of the first factor change first.
func (p *planner) columns(terms []Term, intercept bool) ([]column, error) {
	used := subspaces{}
	if intercept {
		used.subterms("", nil)
	}
	var out []column
	for _, t := range terms {
		var numbers Term
		var factors []*variable
		var keys []string
		variables := make([]*variable, len(t.Factors))
		for i, e := range t.Factors {
			v, err := p.variable(e)
			if err != nil {
				return nil, err
			}
			if variables[i] = v; v.levels == nil {
				numbers.Factors = append(numbers.Factors, e)
			} else {
				factors, keys = append(factors, v), append(keys, e.String())
			}
		}
		if len(factors) > 10 {
			return nil, p.s.wrong(t.Factors[0], "the product %s has %d factors of levels: at most 10", t,
				len(factors))
		}
		for _, codings := range used.subterms(numbers.key(), keys) {
			made, err := p.product(variables, factors, codings)
			if out = append(out, made...); err != nil || len(out) > mostColumns {
				return nil, p.tooMany(t, err)
			}
		}
	}
	return out, nil
}

func (p *planner) tooMany(t Term, err error) error {
	if err != nil {
		return err
	}
	return p.s.wrong(t.Factors[0], "the design has more than %d columns with %s: a factor of many levels is a "+
		"group, as (1 | g)", mostColumns, t)
}

// product has the columns of one subterm: of all numbers of the term, and of the factors that have a coding.
func (p *planner) product(variables, factors []*variable, codings []coded) ([]column, error) {
	out := []column{{}}
	for _, v := range variables {
		c := coded{factor: -1}
		for _, k := range codings {
			if factors[k.factor] == v {
				c = k
			}
		}
		if v.levels != nil && c.factor < 0 {
			continue
		}
		width := len(v.labels)
		if c.full {
			width = len(v.levels)
		}
		if width*len(out) > mostColumns {
			return nil, p.tooMany(Term{[]Expr{v.expr}}, nil)
		}
		if v.levels != nil && !c.full {
			if err := p.contrast(v); err != nil {
				return nil, err
			}
		}
		var next []column
		for j := range width {
			for _, o := range out {
				a := part{v, j, c.full}
				name := strings.TrimPrefix(o.name+":"+a.name(), ":")
				next = append(next, column{name, append(slices.Clone(o.parts), a)})
			}
		}
		out = next
	}
	return out, nil
}

// variable learns one.
func (p *planner) variable(e Expr) (*variable, error) {
	key := e.String()
	if v := p.variables[key]; v != nil {
		return v, nil
	}
	v := &variable{expr: e}
	if e.special() {
		of, err := p.s.newFactorOf(e)
		v.labels, v.of = []string{""}, &of
		p.variables[key] = v
		return v, err
	}
	factor, err := p.s.isFactor(e)
	if err != nil {
		return nil, err
	}
	if factor {
		if v.levels, err = p.s.learnFactor(e); err != nil {
			return nil, err
		}
		if v.coding.column = e; e.Kind == Call && e.Name == "C" {
			v.coding, _ = p.s.reader().coding(e)
		}
		if ref := v.coding.reference; ref != "" && !slices.Contains(v.levels, ref) {
			return nil, p.s.wrong(e, "%s has no level %q: %s", v.coding.column, short(ref), Nearest(ref, v.levels))
		}
		v.labels = make([]string, len(v.levels)-1) // named where the contrast is needed
	} else {
		columns, err := p.s.basis(e)
		if err != nil {
			return nil, err
		}
		for j := range columns {
			v.labels = append(v.labels, "")
			if e.several() {
				v.labels[j] = fmt.Sprint(j + 1)
			}
		}
	}
	p.variables[key] = v
	return v, nil
}

// contrast makes that of a variable.
func (p *planner) contrast(v *variable) (err error) {
	if v.contrast == nil {
		if v.contrast, v.labels, err = contrasted(v.coding, v.levels); err != nil {
			return p.s.wrong(v.expr, "the contrast of %s: %v", v.expr, err)
		}
	}
	return nil
}
