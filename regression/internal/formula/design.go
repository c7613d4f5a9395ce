package formula

import (
	"errors"
	"fmt"
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
	of      Group // with factor() around numbers
	columns []column
}

// smooth is a [Smooth], or that of one level.
type smooth struct {
	of     Smooth
	level  int      // of a factor By; -1 without one
	name   string   // of the design
	linear []string // names of its columns without penalty
	cubic  cubic
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
	Name    string   // as "s(hour)", or "s(hour, by = g)[a]"
	Columns int      // penalised columns
	Linear  []string // the common columns without penalty that belong to it, as "s(hour)[linear]"
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
func (f *Formula) Fit(train *data.Table, o Options) (*Design, error) {
	g, err := f.checked()
	if err != nil {
		return nil, err
	}
	m := newMemory()
	s, err := newSource(train, g, m, true)
	if err != nil {
		return nil, err
	}
	if err := s.learn(); err != nil {
		return nil, err
	}
	d, err := newDesign(g, m)
	if err != nil {
		return nil, err
	}
	rows, err := d.rows(s)
	if err != nil {
		return nil, err
	}
	if err := d.check(s, rows, o); err != nil {
		return nil, err
	}
	return d, nil
}

// checked is the formula as it is parsed again, since fields may have been changed by hand.
func (f *Formula) checked() (*Formula, error) {
	written := f.String()
	if f.text != "" {
		if g, err := parse(f.text); err == nil && g.String() == written {
			return g, nil
		}
	}
	g, err := parse(written)
	if err != nil {
		return nil, err
	}
	return g, nil
}

// newDesign makes a design of a memory, which has what the formula needs.
func newDesign(f *Formula, m *memory) (*Design, error) {
	d := &Design{f: f, m: m}
	p := &planner{x: &expansion{text: f.text}, m: m, variables: map[string]*variable{}}
	var err error
	if d.columns, err = p.columns(f.Terms, f.Intercept); err != nil {
		return nil, err
	}
	for _, c := range d.columns {
		d.names = append(d.names, c.name)
	}
	for _, s := range f.Smooths {
		made, err := newSmooths(s, m)
		if err != nil {
			return nil, err
		}
		d.smooths = append(d.smooths, made...)
	}
	for _, s := range d.smooths {
		d.names = append(d.names, s.linear...)
	}
	for _, g := range f.Groups {
		made, err := newGroup(g, p)
		if err != nil {
			return nil, err
		}
		d.groups = append(d.groups, made)
	}
	return d, nil
}

func newGroup(g Group, p *planner) (group, error) {
	out := group{of: g.with(p.m), GroupDesign: GroupDesign{Name: g.String(), Factor: g.Factor(),
		Correlated: g.Correlated, Members: max(1, len(g.Members))}}
	if out.Levels = p.m.Levels[out.of.Factor()]; out.Levels == nil {
		return out, fmt.Errorf("the group %q has no levels", g)
	}
	if g.Intercept {
		out.columns = append(out.columns, column{name: "Intercept"})
	}
	columns, err := p.columns(g.Terms, g.Intercept)
	if err != nil {
		return out, err
	}
	out.columns = append(out.columns, columns...)
	for _, c := range out.columns {
		out.Columns = append(out.Columns, c.name)
	}
	return out, nil
}

// with is a group with factor() around columns of numbers.
func (g Group) with(m *memory) Group {
	g.Factors, g.Members = slices.Clone(g.Factors), slices.Clone(g.Members)
	for _, list := range [][]Expr{g.Factors, g.Members} {
		for i, e := range list {
			list[i] = m.grouping(e)
		}
	}
	return g
}

// grouping is a factor right of a bar: factor() of a column of numbers.
func (m *memory) grouping(e Expr) Expr {
	if e.Kind == Call || m.Levels[e.String()] != nil {
		return e
	}
	return Apply("factor", e)
}

// newSmooths are those of a term: one for each level of a factor By.
func newSmooths(of Smooth, m *memory) ([]smooth, error) {
	k := of.k()
	numbers := m.Numbers[of.key()]
	if len(numbers) != 2+k+2*k*(k-2) {
		return nil, errors.New("the smooth " + of.String() + " has no basis")
	}
	base := smooth{of: of, level: -1, name: of.String(), cubic: cubicOf(numbers, k)}
	levels := m.Levels[of.By.String()]
	if levels == nil || of.By.None() {
		if base.linear = []string{base.name + "[linear]"}; !of.By.None() {
			base.linear = []string{base.name + "[constant]", base.name + "[linear]"}
		}
		return []smooth{base}, nil
	}
	out := make([]smooth, len(levels))
	for i, l := range levels {
		out[i] = base
		out[i].level, out[i].name = i, base.name+"["+l+"]"
		out[i].linear = []string{out[i].name + "[linear]"}
	}
	return out, nil
}

func (s Smooth) k() int {
	if s.K == 0 {
		return defaultK
	}
	return s.K
}

// key is that of the memory; smooths of different factors share a basis, and those of numbers another.
func (s Smooth) key() string { return s.String() }

// Names are those of the common columns: "age", "treatment[b]" for the difference of a level, "age:treatment[b]" for a
// product, "poly(x, 2)1" for one of several, and those of smooths without penalty last. The constant is none of them.
func (d *Design) Names() []string { return slices.Clone(d.names) }

// Intercept says whether there is a constant.
func (d *Design) Intercept() bool { return d.f.Intercept }

// Formula is what the design was made of.
func (d *Design) Formula() *Formula {
	f, _ := parse(d.f.text)
	return f
}

// Levels are those of a factor of the common terms, by its expression as it is in names, in order; nil for what is
// none.
func (d *Design) Levels(factor string) []string {
	for _, c := range d.columns {
		for _, p := range c.parts {
			if p.expr.plain() == factor {
				return slices.Clone(p.levels)
			}
		}
	}
	return nil
}

// OutcomeLevels are the levels of an outcome that is a factor, in the order of their indices in Rows.Y; nil otherwise.
func (d *Design) OutcomeLevels() []string { return slices.Clone(d.m.Outcome) }

// Groups are the groups of terms, in the order of the formula.
func (d *Design) Groups() []GroupDesign {
	out := make([]GroupDesign, len(d.groups))
	for i, g := range d.groups {
		out[i] = g.GroupDesign
		out[i].Levels, out[i].Columns = slices.Clone(g.Levels), slices.Clone(g.Columns)
	}
	return out
}

// Smooths are the smooths, in the order of the formula; one of a factor is several, in the order of its levels.
func (d *Design) Smooths() []SmoothDesign {
	out := make([]SmoothDesign, len(d.smooths))
	for i, s := range d.smooths {
		out[i] = SmoothDesign{Name: s.name, Columns: s.of.k() - 2, Linear: slices.Clone(s.linear)}
	}
	return out
}
