package formula

import (
	"slices"
	"strings"

	"github.com/kelvin-ppl/kelvin/data"
)

// coding is C(column, contrast).
type coding struct {
	column    Expr
	contrast  data.Contrast
	reference string
}

// coding reads C(x, Treatment("b")), or Sum, Helmert or Poly, with or without the contr. of R before it.
func (x *expansion) coding(e Expr) (c coding, err *Error) {
	a := x.arguments(e, "x", "contrast")
	k := a.of["contrast"]
	if c.column = a.of["x"]; c.column.Kind != Column {
		a.wrong(e.at, "C() takes a column, and a contrast")
	}
	if k.None() {
		return c, a.err
	}
	contrasts := map[string]data.Contrast{"treatment": data.Treatment, "sum": data.Sum, "helmert": data.Helmert,
		"poly": data.Polynomial}
	var known bool
	c.contrast, known = contrasts[strings.ToLower(strings.TrimPrefix(k.Name, "contr."))]
	if !known || k.Kind != Column && k.Kind != Call {
		a.wrong(k.at, `the contrast of C() is Treatment, Treatment("level"), Sum, Helmert or Poly`)
	}
	if a.err != nil || k.Kind != Call || len(k.Args) == 0 {
		return c, a.err
	}
	a = x.arguments(k, "reference")
	r := a.of["reference"]
	if r.Kind == Number {
		r.Name = number(r.Value)
	} else if r.Kind != Text {
		a.wrong(r.at, "the reference is a level in quotes")
	}
	if c.contrast != data.Treatment || r.Name == "" {
		a.wrong(r.at, `only Treatment leaves out a level, as Treatment("b")`)
	}
	c.reference = r.Name
	return c, a.err
}

// contrastLabel names column j of a contrast, as package data does.
func contrastLabel(c data.Contrast, levels []string, j int) string {
	switch c {
	case data.Sum:
		return "S." + levels[j]
	case data.Helmert:
		return "H." + levels[j+1]
	case data.Polynomial:
		return "^" + number(float64(j+1))
	}
	return levels[j+1]
}

// contrasted are the columns of the contrast of a factor, a row for each level, and their names. The reference is a
// level, or "" for the first.
func contrasted(c coding, levels []string) (matrix [][]float64, labels []string, err error) {
	order := slices.Clone(levels)
	at := slices.Index(levels, c.reference)
	if at > 0 {
		order = slices.Concat(levels[at:at+1], levels[:at], levels[at+1:])
	}
	m, err := c.contrast.Matrix(len(order))
	if err != nil {
		return nil, nil, err
	}
	for j := range m[0] {
		labels = append(labels, contrastLabel(c.contrast, order, j))
	}
	if at > 0 {
		m = slices.Concat(m[1:at+1], m[:1], m[at+1:])
	}
	return m, labels, nil
}

// coded is a factor of a subterm, with all its levels or with its contrast.
type coded struct {
	factor int // place in the term
	full   bool
}

// subspaces are those that the terms so far span.
type subspaces map[string]bool

// subterms says with which codings the columns of a term come, so that they span what its product spans beyond the
// terms before it, once (marginality, Nelder 1977; the algorithm is that of patsy). Factors are the keys of those with
// levels, numbers is the key of the others. Terms come in order, and the constant, where there is one, before all.
//
// A product of factors a:b has the subspaces 1, a, b and a:b, with contrasts. What earlier terms of the same numbers
// have is left out. Of the rest, a is merged into a:b where both are there: that is a:b with all levels of b.
func (used subspaces) subterms(numbers string, factors []string) [][]coded {
	var rest [][]coded
	for _, subset := range subsets(len(factors)) {
		var names []string
		part := []coded{}
		for _, i := range subset {
			names = append(names, factors[i])
			part = append(part, coded{factor: i})
		}
		slices.Sort(names)
		key := numbers + "\x01" + strings.Join(names, "\x00")
		if !used[key] {
			used[key] = true
			rest = append(rest, part)
		}
	}
	for merged := true; merged; {
		rest, merged = merge(rest)
	}
	for _, part := range rest {
		slices.SortFunc(part, func(a, b coded) int { return a.factor - b.factor })
	}
	return rest
}

// merge joins the first two subspaces that can be: one of them has one factor more, by its contrast.
func merge(parts [][]coded) ([][]coded, bool) {
	for i, short := range parts {
		for j := i + 1; j < len(parts); j++ {
			more, ok := difference(parts[j], short)
			if !ok {
				continue
			}
			parts[i] = append(slices.Clone(short), coded{more.factor, true})
			return slices.Delete(parts, j, j+1), true
		}
	}
	return parts, false
}

// difference is the factor that a has and b has not, where all others are the same and it is coded by its contrast.
func difference(a, b []coded) (more coded, ok bool) {
	if len(a) != len(b)+1 {
		return more, false
	}
	found := false
	for _, c := range a {
		if slices.Contains(b, c) {
			continue
		}
		if found || c.full {
			return more, false
		}
		more, found = c, true
	}
	return more, found
}

// subsets are those of 0, ..., n-1: the small ones first, then by their members.
func subsets(n int) [][]int {
	var out [][]int
	for bits := range 1 << n {
		s := []int{}
		for i := range n {
			if bits>>i&1 == 1 {
				s = append(s, i)
			}
		}
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b []int) int {
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return slices.Compare(a, b)
	})
	return out
}
