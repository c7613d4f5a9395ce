package formula

import (
	"slices"

	"github.com/kelvin-ppl/kelvin/data"
)

// Options say what a fit lets pass. The zero value is strict.
type Options struct {
	// EmptyCells keeps columns that are 0 in each row of the training data: those of combinations of levels that no row
	// has. Their coefficients have their priors alone.
	EmptyCells bool
	// Collinear keeps columns that others determine. Their coefficients have their sums, and their priors, alone.
	Collinear bool
}

// Design maps tables to numbers with what it has learned from the training data. Make one with [Formula.Fit]. It is
// immutable; any number of goroutines may use it.
type Design struct {
	f       *Formula
	m       *memory
	columns []column
	groups  []group
	smooths []smooth
	names   []string
}

// group is a [Group] with its columns.
type group struct {
	GroupDesign
	of      Group
	columns []column
}

// smooth is a [Smooth], or that of one level.
type smooth struct {
	of     Smooth
	level  int       // of a factor By; -1 without one
	name   string    // of the design
	linear []string  // names of its columns without penalty
	cubic  cubic     // of s, and of the first number of t2
	cross  cubic     // of the second number of t2
	part   int       // of t2: which of its parts
	means  []float64 // of the columns of t2 over the training data
	// A product has no function: these are its mo() and mi(), and the rest of it.
	factors []factorOf
	rest    column
}

// GroupDesign says what a group of terms has.
type GroupDesign struct {
	Name       string   // as "1 + dose | clinic"
	Factor     string   // as "clinic", "g:h" or "mm(a, b)"
	Levels     []string // of the training data, in the order of the table; those of g:h are like "a:b"
	Columns    []string // as "Intercept", "dose", "sex[m]"
	Correlated bool     // whether the coefficients of a level are
	Members    int      // levels that a row belongs to: 1, or the number of factors of mm()
}

// SmoothDesign says what a smooth has.
type SmoothDesign struct {
	Name    string   // as "s(hour)", "s(hour, by = g)[a]" or "mo(dose):age"
	Kind    string   // s, t2, gp, or "product" of mo() and mi()
	Columns int      // of Rows.Smooths
	K       int      // of gp, how many functions its basis has
	By      bool     // gp is times a number
	Linear  []string // the common columns without penalty that belong to it, as "s(hour)[linear]"
	Factors []Factor // of a product
}

// Factor is mo() or mi() in a product.
type Factor struct {
	Column string
	Levels []string // of mo, in their order; nil of mi
}

// Fit learns from the training data: levels, means, standard deviations, knots and bases. A factor has the levels that
// rows have, in the order of the table; an outcome has all levels of the table.
//
// A place in the formula is to blame for an *[Error]: for a name that is no column, a number where a factor is needed
// or the reverse, a factor of common terms with one level, or columns that others determine. A value of the table is to
// blame for a *data.Error: one that is missing, or that a function does not take.
//
// Work and memory are linear in the rows. Looking for columns that others determine takes up to 2 N p² operations for N
// rows and p columns; [Options.Collinear] leaves that out.
func (f *Formula) Fit(train *data.Table, o Options) (d *Design, err error) {
	s, err := newSource(train, f, &memory{levels: map[string][]string{}, numbers: map[string][]float64{}}, true)
	if err != nil {
		return nil, err
	}
	defer func() { s.locate(err) }()
	d = &Design{f: f, m: s.m}
	p := &planner{s: s, variables: map[string]*variable{}}
	if d.columns, err = p.columns(f.Terms, f.Intercept); err != nil {
		return nil, err
	}
	for _, c := range d.columns {
		d.names = append(d.names, c.name)
	}
	if d.smooths, err = p.products(f.Products); err != nil {
		return nil, err
	}
	for _, of := range f.Smooths {
		made, err := s.newSmooths(of)
		if err != nil {
			return nil, err
		}
		for _, m := range made {
			d.smooths, d.names = append(d.smooths, m), append(d.names, m.linear...)
		}
	}
	for _, g := range f.Groups {
		made, err := p.newGroup(g)
		if err != nil {
			return nil, err
		}
		d.groups = append(d.groups, made)
	}
	if err := s.learnOutcome(); err != nil {
		return nil, err
	}
	rows, err := d.rows(s)
	if err != nil {
		return nil, err
	}
	return d, d.check(s, rows, o)
}

// Names are those of the common columns: "age", "treatment[b]" for the difference of a level, "age:treatment[b]" for a
// product, "poly(x, 2)1" for one of several, and those of smooths without penalty last. The constant is none of them.
func (d *Design) Names() []string { return slices.Clone(d.names) }

// Intercept says whether there is a constant.
func (d *Design) Intercept() bool { return d.f.Intercept }

// Formula is what the design was made of.
func (d *Design) Formula() *Formula { return d.f }

// Groups are the groups of terms, in the order of the formula.
func (d *Design) Groups() []GroupDesign {
	out := make([]GroupDesign, len(d.groups))
	for i, g := range d.groups {
		out[i] = g.GroupDesign
		out[i].Levels, out[i].Columns = slices.Clone(g.Levels), slices.Clone(g.Columns)
	}
	return out
}

// Smooths are the products of mo() and mi(), one for each of their columns, and the smooths, in the order of the
// formula; one of a factor is several, in the order of its levels, and t2 is three.
func (d *Design) Smooths() []SmoothDesign {
	out := make([]SmoothDesign, len(d.smooths))
	for i, s := range d.smooths {
		out[i] = SmoothDesign{Name: s.name, Kind: s.of.Kind, Columns: s.width(), K: s.of.k(), Linear: s.linear,
			By: s.of.Kind == "gp" && s.level < 0 && !s.of.By.None()}
		for _, f := range s.factors {
			out[i].Factors = append(out[i].Factors, Factor{f.expr.Args[0].Name, f.levels})
		}
	}
	return out
}
