package formula

import (
	"fmt"
	"slices"
)

// group reads (terms | factor). Several factors make several groups.
func (x *expansion) group(bar Expr, added bool) *Error {
	switch {
	case !x.top:
		return x.wrong(bar.at, "a group stands in another group: add them, as (1 | g) + (1 | h)")
	case !added:
		return x.wrong(bar.at, "a group is added, as x + (1 | g): it has no products and cannot be taken away")
	}
	left := bar.Args[0]
	if inner := left.bare(); inner.Kind == Call && (inner.Name == "|" || inner.Name == "||") {
		return x.wrong(inner.at, "a group has one bar: names of correlations, as in (1 | id | g), are not read")
	}
	inner := &expansion{text: x.text, f: x.f}
	terms, intercept, err := inner.terms(left)
	if err != nil {
		return err
	}
	if !intercept && len(terms) == 0 {
		return x.wrong(bar.at, "the group has no terms: (1 | g) has a constant of each level")
	}
	groups, err := x.factors(bar.Args[1])
	if err != nil {
		return err
	}
	for _, g := range groups {
		g.Intercept, g.Terms, g.Correlated, g.at = intercept, terms, bar.Name == "|", bar.at
		if len(groups) > 1 && slices.ContainsFunc(x.f.Groups, g.within) {
			continue // as (1 | g) of (1 | g/h), beside (x | g)
		}
		if err := x.twice(g); err != nil {
			return err
		}
		x.f.Groups = append(x.f.Groups, g)
	}
	return nil
}

// twice is an error where a coefficient of a group is in another one of the same levels.
func (x *expansion) twice(g Group) *Error {
	for _, other := range x.f.Groups {
		if other.key() != g.key() {
			continue
		}
		if other.Intercept && g.Intercept {
			return x.wrong(g.at, "%q has a constant of each level twice: write 0 + in one of the groups", g.Factor())
		}
		for _, t := range g.Terms {
			if contains(other.Terms, t) {
				return x.wrong(g.at, "%q has %q twice: take it out of one of the groups", g.Factor(), t.String())
			}
		}
	}
	return nil
}

// within says whether another group of the same levels has all coefficients of this one.
func (g Group) within(other Group) bool {
	missing := func(t Term) bool { return !contains(other.Terms, t) }
	return g.key() == other.key() && (other.Intercept || !g.Intercept) && !slices.ContainsFunc(g.Terms, missing)
}

// key is the same for groups of the same levels.
func (g Group) key() string { return Term{g.Factors}.key() + "|" + Term{g.Members}.key() }

// factors reads what is right of the bar.
func (x *expansion) factors(e Expr) ([]Group, *Error) {
	if e.Kind == Call && e.Name == "(" {
		return x.factors(e.Args[0])
	}
	if e.Kind == Call && len(e.Args) == 2 && slices.Contains([]string{"+", "/", ":", "*"}, e.Name) {
		left, err := x.factors(e.Args[0])
		if err != nil {
			return nil, err
		}
		right, err := x.factors(e.Args[1])
		if err != nil || e.Name == "+" {
			return append(left, right...), err
		}
		var products []Group
		for _, l := range left {
			for _, r := range right {
				if l.Members != nil || r.Members != nil {
					return nil, x.wrong(e.at, "mm() stands alone right of the bar")
				}
				products = append(products, Group{Factors: join(Term{l.Factors}, Term{r.Factors}).Factors})
			}
		}
		switch {
		case e.Name == "/" && len(left) > 1:
			return nil, x.wrong(e.at, "left of / stands one factor")
		case len(products) > most:
			return nil, x.wrong(e.at, "there are more than %d groups here", most)
		case e.Name == "/":
			return append(left, products...), nil
		case e.Name == "*":
			return append(append(left, right...), products...), nil
		}
		return products, nil
	}
	v := e.bare()
	switch {
	case v.Kind == Column:
		return []Group{{Factors: []Expr{v}}}, nil
	case v.Kind == Call && v.Name == "factor":
		return []Group{{Factors: []Expr{v}}}, x.checkVariable(v)
	case v.Kind == Call && v.Name == "mm":
		return x.memberships(v)
	case v.Kind == Call && (v.Name == "|" || v.Name == "||"):
		return nil, x.wrong(v.at, "a group has one bar")
	}
	return nil, x.wrong(e.at, "right of the bar stands a factor: g, g:h, g/h, factor(x) or mm(a, b)")
}

func (x *expansion) memberships(e Expr) ([]Group, *Error) {
	var g Group
	for _, a := range e.Args {
		switch {
		case a.Key == "" && a.Kind == Column:
			g.Members = append(g.Members, a)
		case a.Key == "weights" && a.Kind == Call && (a.Name == "cbind" || a.Name == "c"):
			for _, w := range a.Args {
				if err := x.checkNumber(w); err != nil {
					return nil, err
				}
			}
			g.Weights = a.Args
		default:
			return nil, x.wrong(a.at, "mm() takes factors, and weights = cbind(v, w)")
		}
	}
	if len(g.Members) < 2 || g.Weights != nil && len(g.Weights) != len(g.Members) {
		return nil, x.wrong(e.at, "mm() takes at least two factors, and a weight for each or none")
	}
	return []Group{g}, nil
}

// special reads mo(x) or mi(x).
func (x *expansion) special(e Expr) ([]Term, *Error) {
	e = e.bare()
	if !x.top {
		return nil, x.wrong(e.at, "%s() is added or multiplied outside groups", e.Name)
	}
	a := x.arguments(e, "x")
	if of := a.number("x"); of.Kind != Column {
		a.wrong(of.at, "%s() takes a column", e.Name)
	}
	return []Term{{[]Expr{e}}}, a.err
}

// smooth reads s(x, k = 10, by = f), t2(x, z, k = 5) or gp(x, k = 30, by = f).
func (x *expansion) smooth(e Expr, added bool) *Error {
	if !added || !x.top {
		more := ""
		if e.Name != "t2" {
			more = fmt.Sprintf(": one for each level of a factor is %s(x, by = g), and times a number %s(x, by = z)", e.Name,
				e.Name)
		}
		return x.wrong(e.at, "%s() is added, outside groups and products%s", e.Name, more)
	}
	s := Smooth{Kind: e.Name, at: e.at}
	names := map[string][]string{"s": {"x", "k", "by", "bs"}, "gp": {"x", "k", "by"}, "t2": {"x", "z", "k"}}[s.Kind]
	a := x.arguments(e, names...)
	s.X, s.By = a.number("x"), a.of["by"]
	if basis := a.of["bs"]; !basis.None() && (basis.Kind != Text || basis.Name != "cr") {
		a.wrong(basis.at, `bs is "cr", the cubic regression spline, which is the default: there is no other`)
	}
	of, largest := "one number, and k, the dimension of its basis,", 1000
	if s.Kind == "t2" {
		of, largest = "two numbers, and k, the dimension of each basis,", 30
		if s.Z = a.number("z"); s.Z.None() || s.Z.Kind == Number {
			a.wrong(e.at, "t2() takes two numbers, t2(x, z); a smooth of one is s(x)")
		}
	}
	usual := s.k()
	s.K = a.whole("k", 0, 3, largest, s.Kind+"() is of "+of)
	if s.K == usual {
		s.K = 0
	}
	if s.X.Kind == Number {
		a.wrong(s.X.at, "%s() takes a column", s.Kind)
	}
	if !s.By.None() && s.By.Kind != Column {
		a.wrong(s.By.at, "by is a column: a factor or a number")
	}
	if a.err != nil {
		return a.err
	}
	for _, other := range x.f.Smooths {
		if other.String() == s.String() {
			return nil
		}
	}
	x.f.Smooths = append(x.f.Smooths, s)
	return nil
}

func (x *expansion) offset(e Expr, added bool) *Error {
	if !added || !x.top {
		return x.wrong(e.at, "an offset is added, outside groups and products: its coefficient is 1")
	}
	a := x.arguments(e, "x")
	x.f.Offsets = append(x.f.Offsets, a.number("x"))
	return a.err
}
