package formula

import (
	"cmp"
	"fmt"
	"slices"
	"unicode/utf8"
)

// Parse reads a formula. A mistake is an *[Error] that shows the place and says what would be right.
//
// The right side has the operators of R (Wilkinson and Rogers 1973; Chambers and Hastie 1992, section 2.3.1): a + b, a
// without b as a - b, the product a:b, a*b = a + b + a:b, a/b = a + a:b, b %in% a = b:a, (a + b)^2 for all products of
// up to two, and 0, 1 or -1 for the constant. Each term is there once, and they are ordered by their number of factors.
// A product has its factors in the order of its first mention; R orders them by the first mention of each factor
// instead.
func Parse(text string) (*Formula, error) {
	if n := utf8.RuneCountInString(text); n > longest {
		return nil, &Error{text, longest, fmt.Sprintf("it has %d characters: at most %d are read", n, longest)}
	}
	f, err := parse(text)
	if err != nil {
		return nil, err
	}
	return f, nil
}

const longest = 1 << 14 // runes of a formula

// parse reads a formula of any length: written out, its terms may be longer than it was.
func parse(text string) (*Formula, *Error) {
	words, err := tokens(text)
	if err != nil {
		return nil, err
	}
	p := &parser{text: text, words: words}
	x := &expansion{text: text, f: &Formula{text: text}, top: true}
	if !p.tilde() {
		left, err := p.expression(1)
		if err != nil {
			return nil, err
		}
		if !p.tilde() {
			t := p.next()
			if t.kind != tokenEnd {
				return nil, p.wrong(t.at, "expected an operator, not %s", t.describe())
			}
			return nil, p.wrong(t.at, "a formula has a ~, with the outcome on its left: y ~ x; or ~ x without one")
		}
		if x.f.Outcome, err = x.outcome(left); err != nil {
			return nil, err
		}
	}
	p.take()
	right, err := p.expression(1)
	if err != nil {
		return nil, err
	}
	if t := p.next(); p.tilde() {
		return nil, p.wrong(t.at, "this is a second ~: a formula has one, between the outcome and the terms")
	} else if t.kind != tokenEnd {
		return nil, p.wrong(t.at, "expected an operator or the end, not %s", t.describe())
	}
	terms, intercept, err := x.terms(right)
	for _, t := range terms {
		if slices.ContainsFunc(t.Factors, Expr.special) {
			x.f.Products = append(x.f.Products, t)
		} else {
			x.f.Terms = append(x.f.Terms, t)
		}
	}
	x.f.Intercept = intercept
	return x.f, err
}

func (p *parser) tilde() bool { return p.next().kind == tokenSign && p.next().text == "~" }

// expansion makes terms of a tree.
type expansion struct {
	text      string
	f         *Formula
	top       bool // whether groups, smooths and offsets may be there
	intercept bool
	many      bool // whether a product had too many terms
}

func (x *expansion) wrong(at int, problem string, args ...any) *Error {
	return (&parser{text: x.text}).wrong(at, problem, args...)
}

// terms are those of a right side, or of a group, ordered by the number of factors.
func (x *expansion) terms(e Expr) ([]Term, bool, *Error) {
	x.intercept = true
	out, err := x.expand(e, true)
	slices.SortStableFunc(out, func(a, b Term) int { return cmp.Compare(len(a.Factors), len(b.Factors)) })
	return out, x.intercept, err
}

const most = 2000 // terms of a formula

// expand makes terms; only what is added may be a group, a smooth or an offset.
func (x *expansion) expand(e Expr, added bool) ([]Term, *Error) {
	if e.Kind == Number {
		return nil, x.constant(e, e.Value == 1)
	}
	if e.Kind != Call {
		return x.variable(e)
	}
	if len(e.Args) == 1 && e.Name == "(" {
		if bar := e.Args[0]; bar.Kind == Call && (bar.Name == "|" || bar.Name == "||") {
			return nil, x.group(bar, added)
		}
		return x.expand(e.Args[0], added)
	}
	switch e.Name {
	case "|", "||":
		return nil, x.wrong(e.at, "a group stands in parentheses: (1 %s g)", e.Name)
	case "+", "-", "*", "/", "%in%", ":", "^":
		return x.operator(e, added)
	case "s", "t2", "gp":
		return nil, x.smooth(e, added)
	case "mo", "mi":
		return x.special(e)
	case "offset":
		return nil, x.offset(e, added)
	}
	return x.variable(e)
}

// constant takes 0 or 1, which is there or not.
func (x *expansion) constant(e Expr, there bool) *Error {
	if e.Value != 0 && e.Value != 1 {
		return x.wrong(e.at, "%s is no term: 1 is the constant, 0 leaves it out, and arithmetic stands in I()",
			number(e.Value))
	}
	x.intercept = there
	return nil
}

func (x *expansion) operator(e Expr, added bool) ([]Term, *Error) {
	last := e.Args[len(e.Args)-1]
	if e.Name == "-" {
		if last.Kind == Number {
			if err := x.constant(last, last.Value == 0); err != nil || len(e.Args) == 1 {
				return nil, err
			}
			return x.expand(e.Args[0], added)
		}
		if len(e.Args) == 1 {
			return nil, x.wrong(e.at, "a minus takes a term out of those before it: there is none")
		}
	} else if e.Name != "+" {
		added = false
		for i, a := range e.Args {
			if a.bare().Kind == Number && !(e.Name == "^" && i == 1) {
				return nil, x.wrong(a.at, "a number is no factor of a product: arithmetic stands in I()")
			}
		}
	}
	left, err := x.expand(e.Args[0], added)
	if err != nil {
		return nil, err
	}
	if e.Name == "^" {
		return x.power(left, e)
	}
	right, err := x.expand(last, added && e.Name == "+")
	if err != nil {
		return nil, err
	}
	switch e.Name {
	case "+":
		return x.unite(e, left, right)
	case "-":
		return slices.DeleteFunc(slices.Clone(left), func(t Term) bool { return contains(right, t) }), nil
	case "*":
		return x.unite(e, left, right, x.product(left, right))
	case "/":
		var all Term
		for _, t := range left {
			all = join(all, t)
		}
		return x.unite(e, left, x.product([]Term{all}, right))
	}
	return x.unite(e, x.product(left, right))
}

func (x *expansion) power(base []Term, e Expr) ([]Term, *Error) {
	n := e.Args[1].bare()
	if n.Kind != Number || n.Value < 1 || n.Value > 20 || n.Value != float64(int(n.Value)) {
		return nil, x.wrong(n.at, "the power of terms is a whole number from 1 to 20: a power of a column is I(x^2)")
	}
	out, err := x.unite(e, base)
	for i := 1; i < int(n.Value) && err == nil; i++ {
		out, err = x.unite(e, out, x.product(out, base))
	}
	return out, err
}

// unite is the union of terms, in the order of their first mention.
func (x *expansion) unite(e Expr, lists ...[]Term) ([]Term, *Error) {
	seen := map[string]bool{}
	out := []Term{}
	for _, l := range lists {
		for _, t := range l {
			if k := t.key(); !seen[k] {
				seen[k] = true
				out = append(out, t)
			}
		}
	}
	if len(out) > most || x.many {
		return nil, x.wrong(e.at, "there are more than %d terms here", most)
	}
	return out, nil
}

// product has all products of two terms.
func (x *expansion) product(left, right []Term) (out []Term) {
	if len(left)*len(right) > 8*most {
		x.many = true
		return nil
	}
	for _, l := range left {
		for _, r := range right {
			out = append(out, join(l, r))
		}
	}
	return out
}

// join is a product; a factor is in it once.
func join(a, b Term) Term {
	out := Term{slices.Clone(a.Factors)}
	for _, f := range b.Factors {
		if !slices.ContainsFunc(out.Factors, func(g Expr) bool { return g.String() == f.String() }) {
			out.Factors = append(out.Factors, f)
		}
	}
	return out
}

func contains(terms []Term, t Term) bool {
	key := t.key()
	return slices.ContainsFunc(terms, func(u Term) bool { return u.key() == key })
}

// variable is a term of one factor.
func (x *expansion) variable(e Expr) ([]Term, *Error) {
	v := e.bare()
	if err := x.checkVariable(v); err != nil {
		return nil, err
	}
	return []Term{{[]Expr{v}}}, nil
}
