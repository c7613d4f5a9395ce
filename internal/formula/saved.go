package formula

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/kelvin-ppl/kelvin/internal/sample"
	"gonum.org/v1/gonum/mat"
)

// savedDesign is a design in a file: its formula, and what it has learned.
type savedDesign struct {
	Version   int                  `json:"kelvin_formula"`
	Text      string               `json:"formula"`
	Levels    map[string][]string  `json:"levels,omitempty"`
	Numbers   map[string][]float64 `json:"numbers,omitempty"`
	Outcome   []string             `json:"outcome,omitempty"`
	Variables []savedVariable      `json:"variables,omitempty"`
	Columns   []savedColumn        `json:"columns,omitempty"`
	Groups    []savedGroup         `json:"groups,omitempty"` // in the order of the formula
	Smooths   []savedSmooth        `json:"smooths,omitempty"`
}

type savedVariable struct {
	Expr     string      `json:"expr"`
	Levels   []string    `json:"levels,omitempty"`
	Labels   []string    `json:"labels"`
	Contrast [][]float64 `json:"contrast,omitempty"`
}

// savedColumn has the parts of a column: a variable, the place j, and 1 where j is a level.
type savedColumn struct {
	Name  string   `json:"name"`
	Parts [][3]int `json:"parts,omitempty"`
}

type savedGroup struct {
	Levels  []string      `json:"levels"`
	Columns []savedColumn `json:"columns"`
}

type savedSmooth struct {
	Of      int           `json:"of"` // place among the smooths of the formula; -1 of a product
	Level   int           `json:"level"`
	Name    string        `json:"name"`
	Linear  []string      `json:"linear,omitempty"`
	Cubic   *savedBase    `json:"cubic,omitempty"`
	Cross   *savedBase    `json:"cross,omitempty"`
	Part    int           `json:"part,omitempty"`
	Means   []float64     `json:"means,omitempty"`
	Factors []savedFactor `json:"factors,omitempty"`
	Rest    savedColumn   `json:"rest,omitzero"`
}

// savedFactor is mo() or mi() in a product.
type savedFactor struct {
	Expr   string   `json:"expr"`
	Levels []string `json:"levels,omitempty"`
	Low    float64  `json:"low,omitempty"`
}

type savedBase struct {
	Mean   float64   `json:"mean"`
	SD     float64   `json:"sd"`
	Knots  []float64 `json:"knots"`
	Value  []float64 `json:"value"` // as many rows as knots
	Second []float64 `json:"second"`
}

// MarshalJSON writes the formula and what was learned for it, to the bit.
func (d *Design) MarshalJSON() ([]byte, error) {
	s := savedDesign{Version: 1, Text: d.f.text, Levels: d.m.levels, Numbers: d.m.numbers, Outcome: d.m.outcome}
	at := map[*variable]int{}
	columns := func(all []column) (out []savedColumn) {
		for _, c := range all {
			w := savedColumn{Name: c.name}
			for _, p := range c.parts {
				if _, ok := at[p.variable]; !ok {
					at[p.variable] = len(s.Variables)
					s.Variables = append(s.Variables, savedVariable{p.expr.String(), p.levels, p.labels, p.contrast})
				}
				w.Parts = append(w.Parts, [3]int{at[p.variable], p.j, number01(p.full)})
			}
			out = append(out, w)
		}
		return out
	}
	s.Columns = columns(d.columns)
	for _, g := range d.groups {
		s.Groups = append(s.Groups, savedGroup{g.Levels, columns(g.columns)})
	}
	for _, m := range d.smooths {
		of := slices.IndexFunc(d.f.Smooths, func(o Smooth) bool { return o.String() == m.of.String() })
		w := savedSmooth{Of: of, Level: m.level, Name: m.name, Linear: m.linear, Cubic: m.cubic.saved(),
			Cross: m.cross.saved(), Part: m.part, Means: m.means}
		for _, f := range m.factors {
			w.Factors = append(w.Factors, savedFactor{f.expr.String(), f.levels, f.low})
		}
		if len(m.rest.parts) > 0 {
			w.Rest = columns([]column{m.rest})[0]
		}
		s.Smooths = append(s.Smooths, w)
	}
	return json.Marshal(s)
}

func (c cubic) saved() *savedBase {
	if c.knots == nil {
		return nil
	}
	return &savedBase{c.mean, c.sd, c.knots, c.value.RawMatrix().Data, c.second.RawMatrix().Data}
}

// UnmarshalJSON reads what [Design.MarshalJSON] has written. What no design can be is an error that says where.
func (d *Design) UnmarshalJSON(text []byte) error {
	var s savedDesign
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&s); err != nil {
		return unreadable("%v", err)
	}
	if _, err := decoder.Token(); err != io.EOF || s.Version != 1 {
		return unreadable("its version is %d, expected 1, or something follows it", s.Version)
	}
	f, err := Parse(s.Text)
	if err != nil {
		return unreadable("%v", err)
	}
	r := restorer{s: s, made: Design{f: f, m: &memory{levels: s.Levels, numbers: s.Numbers, outcome: s.Outcome}}}
	for _, step := range []func() error{r.learned, r.variables, r.common, r.groups, r.smooths} {
		if err := step(); err != nil {
			return err
		}
	}
	*d = r.made
	return nil
}

func unreadable(format string, args ...any) error {
	return fmt.Errorf("formula: a design in a file: "+format, args...)
}

// restorer makes a design of its file.
type restorer struct {
	s    savedDesign
	made Design
	all  []*variable
}

// calls are the expressions that a formula has, those in functions too, by their text.
func (f *Formula) calls() map[string]Expr {
	out := map[string]Expr{}
	var walk func(e Expr)
	walk = func(e Expr) {
		out[e.String()] = e
		for _, a := range e.Args {
			walk(a)
		}
	}
	terms := slices.Concat(f.Terms, f.Products)
	for _, g := range f.Groups {
		terms = append(append(terms, g.Terms...), Term{slices.Concat(g.Factors, g.Members, g.Weights)})
	}
	for _, s := range f.Smooths {
		terms = append(terms, Term{[]Expr{s.X, s.Z, s.By}})
	}
	for _, t := range append(terms, Term{f.Offsets}, Term{[]Expr{f.Outcome.Value}}) {
		for _, e := range t.Factors {
			walk(e)
		}
	}
	for _, e := range f.Outcome.Added {
		walk(e)
	}
	return out
}

// learned checks what functions have learned: it must be as much as they read.
func (r *restorer) learned() error {
	x := &expansion{text: r.s.Text}
	for name, e := range r.made.f.calls() {
		want := 0
		switch {
		case e.Kind != Call:
			continue
		case e.Name == "scale" || e.Name == "center":
			want = 2
		case e.Name == "poly":
			p, err := x.polynomial(e)
			if err != nil {
				return unreadable("%v", err)
			}
			if want = 3 + 2*p.degree; p.raw {
				continue
			}
		case e.Name == "bs":
			b, err := x.spline(e)
			if err != nil {
				return unreadable("%v", err)
			}
			want = b.df - b.degree + 2 - number01(b.intercept)
		default:
			continue
		}
		if have := r.s.Numbers[name]; len(have) != want || !slices.IsSorted(have) && e.Name == "bs" {
			return unreadable("%s has learned %d numbers, expected %d, in order for knots", short(name), len(have), want)
		}
	}
	return nil
}

func (r *restorer) variables() error {
	known := r.made.f.calls()
	for _, v := range r.s.Variables {
		e, ok := known[v.Expr]
		levels := len(v.Levels)
		if !ok || v.Contrast != nil && len(v.Contrast) != levels || v.Levels != nil &&
			!slices.Equal(v.Levels, r.s.Levels[v.Expr]) {
			return unreadable("the formula has no variable %s of %d levels", short(v.Expr), levels)
		}
		for _, row := range v.Contrast {
			if len(row) != len(v.Labels) {
				return unreadable("the contrast of %s has %d columns, expected %d", short(v.Expr), len(row), len(v.Labels))
			}
		}
		r.all = append(r.all, &variable{expr: e, levels: v.Levels, labels: v.Labels, contrast: v.Contrast})
	}
	return nil
}

// width is how many columns a variable of numbers has.
func (r *restorer) width(e Expr) int {
	x := &expansion{text: r.s.Text}
	switch {
	case e.several() && e.Name == "poly":
		p, _ := x.polynomial(e)
		return p.degree
	case e.several():
		b, _ := x.spline(e)
		return b.df
	}
	return 1
}

func (r *restorer) columns(all []savedColumn) (out []column, err error) {
	for _, c := range all {
		made := column{name: c.Name}
		for _, p := range c.Parts {
			if p[0] < 0 || p[0] >= len(r.all) {
				return nil, unreadable("column %s is of variable %d of %d", short(c.Name), p[0], len(r.all))
			}
			v, full := r.all[p[0]], p[2] == 1
			n := len(v.labels)
			switch {
			case v.levels == nil:
				n = r.width(v.expr)
			case full:
				n = len(v.levels)
			case v.contrast == nil:
				n = 0
			}
			if p[1] < 0 || p[1] >= n {
				return nil, unreadable("column %s is column %d of %s, which has %d", short(c.Name), p[1], v.expr, n)
			}
			made.parts = append(made.parts, part{v, p[1], full})
		}
		out = append(out, made)
	}
	return out, nil
}

func (r *restorer) common() (err error) {
	r.made.columns, err = r.columns(r.s.Columns)
	for _, c := range r.made.columns {
		r.made.names = append(r.made.names, c.name)
	}
	return err
}

func (r *restorer) groups() error {
	if len(r.s.Groups) != len(r.made.f.Groups) {
		return unreadable("it has %d groups, and its formula %d", len(r.s.Groups), len(r.made.f.Groups))
	}
	for i, g := range r.s.Groups {
		columns, err := r.columns(g.Columns)
		if err != nil {
			return err
		}
		made := newGroup(r.made.f.Groups[i])
		made.Levels, made.columns = g.Levels, columns
		for _, c := range columns {
			made.Columns = append(made.Columns, c.name)
		}
		r.made.groups = append(r.made.groups, made)
	}
	return nil
}

func (r *restorer) smooths() error {
	for _, s := range r.s.Smooths {
		if s.Of == -1 {
			m, err := r.product(s)
			if err != nil {
				return err
			}
			r.made.smooths = append(r.made.smooths, m)
			continue
		}
		if s.Of < 0 || s.Of >= len(r.made.f.Smooths) {
			return unreadable("smooth %s is %d of %d", short(s.Name), s.Of, len(r.made.f.Smooths))
		}
		m := smooth{of: r.made.f.Smooths[s.Of], level: s.Level, name: s.Name, linear: s.Linear, part: s.Part,
			means: s.Means}
		linear, means := 0, 0
		k, err := m.of.k(), error(nil)
		switch m.of.Kind {
		case "s":
			m.cubic, err = s.Cubic.restore(k)
			linear = 1 + number01(!m.of.By.None() && m.level < 0)
		case "t2":
			if m.cubic, err = s.Cubic.restore(k); err == nil {
				m.cross, err = s.Cross.restore(k)
			}
			linear, means = 3*number01(m.part == 0), m.tensorWidth()
		}
		if err != nil || len(m.linear) != linear || len(m.means) != means {
			return unreadable("smooth %s has %d columns and %d means, expected %d and %d: %v", short(s.Name), len(m.linear),
				len(m.means), linear, means, err)
		}
		r.made.smooths, r.made.names = append(r.made.smooths, m), append(r.made.names, m.linear...)
	}
	return nil
}

// product is one of mo() and mi().
func (r *restorer) product(s savedSmooth) (m smooth, err error) {
	m = smooth{of: Smooth{Kind: "product"}, level: -1, name: s.Name}
	known := r.made.f.calls()
	for _, f := range s.Factors {
		e, ok := known[f.Expr]
		if !ok || !e.special() || (e.Name == "mi") != (len(f.Levels) == 0) {
			return m, unreadable("the formula has no factor %s of %d levels", short(f.Expr), len(f.Levels))
		}
		m.factors = append(m.factors, factorOf{e, f.Levels, f.Low})
	}
	if len(m.factors) == 0 {
		return m, unreadable("product %s has no factors", short(s.Name))
	}
	if len(s.Rest.Parts) > 0 {
		rest, err := r.columns([]savedColumn{s.Rest})
		if err != nil {
			return m, err
		}
		m.rest = rest[0]
	}
	return m, nil
}

// restore is a spline of k knots.
func (b *savedBase) restore(k int) (cubic, error) {
	if b == nil || len(b.Knots) != k || k < 3 || len(b.Value) != k*(k-2) || len(b.Second) != k*(k-2) ||
		!slices.IsSorted(b.Knots) || !sample.Finite(b.SD) {
		return cubic{}, fmt.Errorf("it is no spline of %d knots", k)
	}
	return cubic{b.Mean, b.SD, b.Knots, mat.NewDense(k, k-2, b.Value), mat.NewDense(k, k-2, b.Second)}, nil
}
