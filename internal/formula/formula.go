package formula

import (
	"slices"
	"strings"
)

// Formula is a formula as [Parse] understands it.
type Formula struct {
	Outcome   Outcome
	Intercept bool     // whether there is a constant beside the terms
	Terms     []Term   // of the common effects, each once, ordered by their number of factors
	Groups    []Group  // in the order of the text
	Products  []Term   // of mo() and mi(), with others or alone, as Terms
	Smooths   []Smooth // in the order of the text
	Offsets   []Expr   // whose sum is added to the predictor, each with coefficient 1
	text      string   // as it was written
}

// Outcome is the left side of a formula.
type Outcome struct {
	Value Expr            // a number, or a factor; none for a formula that only describes a design
	Added map[string]Expr // what brms calls addition terms, by the keys of Rows.Added
}

// Term is the product of factors: numbers, or factors in the sense of tables. Beside them a product has mo(x), a
// function of ordered levels, or of whole numbers, that rises or falls (Bürkner and Charpentier 2020, British Journal
// of Mathematical and Statistical Psychology 73), or mi(x), a column with missing values.
type Term struct{ Factors []Expr }

// Group are terms whose coefficients differ between the levels of a factor: (1 + dose | clinic).
type Group struct {
	Intercept bool
	Terms     []Term
	// Factors make the levels: those of one factor, or the combinations of several, as of g:h. Nil with Members.
	Factors []Expr
	// Members are the factors of a multi-membership, mm(a, b): each row belongs to a level of each. They share levels.
	Members []Expr
	// Weights of the members, mm(a, b, weights = cbind(v, w)), are divided by their sum. Nil gives all the same.
	Weights    []Expr
	Correlated bool // (terms | g) is, (terms || g) is not
	at         int
}

// Smooth is a function of a column. s(x) is the cubic regression spline of Wood (2017), Generalized Additive Models,
// second edition, section 5.3.1, t2(x, z) one of two columns, and gp(x) a Gaussian process.
type Smooth struct {
	Kind string // s, t2 or gp
	X    Expr
	Z    Expr // of t2 the second number
	K    int  // dimension of the basis, of s before a constraint takes one away; 0 means 10 of s, 5 of t2, 30 of gp
	By   Expr // none; of s and gp a factor, for a function of each level; or a number, that multiplies the function
	at   int
}

// k is the dimension of the basis.
func (s Smooth) k() int {
	switch {
	case s.K != 0:
		return s.K
	case s.Kind == "gp":
		return 30
	case s.Kind == "t2":
		return 5
	}
	return 10
}

// String writes the factors with colons.
func (t Term) String() string {
	names := make([]string, len(t.Factors))
	for i, f := range t.Factors {
		names[i] = f.String()
		if s := f.strength(); s < 9 {
			names[i] = "(" + names[i] + ")"
		}
	}
	return strings.Join(names, ":")
}

// key is the same for the products of the same factors in any order.
func (t Term) key() string {
	names := make([]string, len(t.Factors))
	for i, f := range t.Factors {
		names[i] = f.String()
	}
	slices.Sort(names)
	return strings.Join(names, "\x00")
}

// Factor is what gives the levels, as "g", "g:h" or "mm(a, b)".
func (g Group) Factor() string {
	if len(g.Members) == 0 {
		return Term{g.Factors}.String()
	}
	args := slices.Clone(g.Members)
	if len(g.Weights) > 0 {
		w := Apply("cbind", g.Weights...)
		w.Key = "weights"
		args = append(args, w)
	}
	return Apply("mm", args...).String()
}

// String is what stands between the parentheses: "1 + dose | clinic".
func (g Group) String() string {
	bar := " || "
	if g.Correlated {
		bar = " | "
	}
	return sum(g.Intercept, g.Terms, true, nil) + bar + g.Factor()
}

// String writes it with what is not the default.
func (s Smooth) String() string {
	args := []Expr{s.X}
	if !s.Z.None() {
		args = append(args, s.Z)
	}
	if s.K != 0 {
		args = append(args, Expr{Kind: Number, Value: float64(s.K), Key: "k"})
	}
	if !s.By.None() {
		by := s.By
		by.Key = "by"
		args = append(args, by)
	}
	return Apply(s.Kind, args...).String()
}

// String writes a left side.
func (o Outcome) String() string {
	if o.Value.None() {
		return ""
	}
	var added []string
	for _, f := range additions {
		call := Apply(f.name)
		for _, a := range f.args {
			if e, ok := o.Added[a.key]; ok {
				if f.name == "trunc" {
					e.Key = a.name
				}
				call.Args = append(call.Args, e)
			}
		}
		if call.Args != nil {
			added = append(added, call.String())
		}
	}
	if added == nil {
		return o.Value.String()
	}
	return o.Value.String() + " | " + strings.Join(added, " + ")
}

// String writes the formula so that [Parse] reads the same one.
func (f *Formula) String() string {
	var others []string
	for _, s := range f.Smooths {
		others = append(others, s.String())
	}
	for _, o := range f.Offsets {
		others = append(others, Apply("offset", o).String())
	}
	for _, g := range f.Groups {
		others = append(others, "("+g.String()+")")
	}
	terms := slices.Concat(f.Terms, f.Products)
	return strings.TrimPrefix(f.Outcome.String()+" ~ "+sum(f.Intercept, terms, false, others), " ")
}

// sum writes terms, with the constant where it has to be said, or always.
func sum(intercept bool, terms []Term, always bool, others []string) string {
	var parts []string
	if !intercept {
		parts = append(parts, "0")
	} else if always || len(terms)+len(others) == 0 {
		parts = append(parts, "1")
	}
	for _, t := range terms {
		parts = append(parts, t.String())
	}
	return strings.Join(append(parts, others...), " + ")
}

// Columns are the columns of a table that the formula reads, each once: those to give to data.Table.DropMissing. The
// ends of intervals of cens(c, upper) are none of them, since rows without an interval may lack them.
func (f *Formula) Columns() []string {
	var out []string
	out = f.Outcome.Value.columns(out)
	for _, of := range additions {
		for _, a := range of.args {
			if a.key != "upper" {
				out = f.Outcome.Added[a.key].columns(out)
			}
		}
	}
	terms := func(of []Term) {
		for _, t := range of {
			for _, e := range t.Factors {
				out = e.columns(out)
			}
		}
	}
	terms(f.Terms)
	terms(f.Products)
	for _, s := range f.Smooths {
		out = s.By.columns(s.Z.columns(s.X.columns(out)))
	}
	for _, e := range f.Offsets {
		out = e.columns(out)
	}
	for _, g := range f.Groups {
		terms(g.Terms)
		for _, e := range slices.Concat(g.Factors, g.Members, g.Weights) {
			out = e.columns(out)
		}
	}
	return out
}

// Of are the columns of mo(), or of mi(), in the products, each once.
func (f *Formula) Of(function string) (out []string) {
	for _, t := range f.Products {
		for _, e := range t.Factors {
			if e.special() && e.Name == function {
				out = e.columns(out)
			}
		}
	}
	return out
}
