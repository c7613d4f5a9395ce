package data

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/kelvin-ppl/kelvin/internal/sample"
)

// Spec says which columns of a table a model takes, and how.
type Spec struct {
	// Terms make the columns of the matrix "x", in order. There is no column of ones.
	Terms []Term
	// Outcome makes "y": a number, scaled or not, or the index of a factor's level. Without a Column a design has no "y".
	Outcome Term
	// Columns become tensors of their own, by their names: numbers as they are, factors as indices of their levels.
	Columns []string
	// EmptyCells keeps columns of products of levels that no row of the training data has together, which are 0 in each
	// row. Their coefficients have their priors alone; such a column is an error otherwise.
	EmptyCells bool
}

// Term is one part of a [Spec]: a number, a factor or a product of terms.
type Term struct {
	Column string // of the table
	// Scale standardises a number: its mean is subtracted, and it is divided by so many standard deviations, both of the
	// training data. 0 leaves it as it is, 1 is usual, 2 makes its coefficient comparable with that of a variable that is
	// 0 or 1 (Gelman 2008, Scaling regression inputs by dividing by two standard deviations, Statistics in Medicine 27).
	Scale float64
	// Map is applied to a number before it is scaled, for example math.Log. It needs As, its name.
	Map func(float64) float64
	As  string // the name in the design; "" is Column
	// Contrast makes columns of a factor.
	Contrast  Contrast
	Reference string // level that [Treatment] leaves out; "" is the first
	// Product has the products of the columns of these terms: an interaction, or a power where one is there twice. It
	// stands alone. Main effects are terms of their own.
	Product []Term
}

// Fit learns from the training data: means, standard deviations and levels. A factor whose levels were not stated has
// those that are there, so that new data with another level are an error.
//
// Missing values, an unknown column, a column of the wrong kind, one that does not vary and is to be scaled, a column
// that is there twice, a product of levels that no row has together, and fields that do not fit together are errors,
// each a *[Error].
func (s Spec) Fit(train *Table) (*Design, error) {
	if train == nil || train.n == 0 {
		return nil, &Error{Row: -1, Problem: "there are no training data"}
	}
	f := &fitting{t: train, seen: map[string]*variable{}}
	d := &Design{}
	for _, term := range s.Terms {
		columns, err := f.expand(term)
		if err != nil {
			return nil, err
		}
		d.columns = append(d.columns, columns...)
	}
	taken := map[string]bool{}
	for _, c := range d.columns {
		id := key(c.atoms) // that of a product in another order is the same
		if taken[id] || taken[c.name] {
			return nil, train.wrong(-1, c.name, "", "the design has it twice")
		}
		taken[id], taken[c.name] = true, true
	}
	if err := f.outcome(s.Outcome, d); err != nil {
		return nil, err
	}
	for _, name := range s.Columns {
		v, err := f.variable(Term{Column: name, Contrast: raw})
		if err != nil {
			return nil, err
		}
		if name == "x" || name == "y" || slices.ContainsFunc(d.own, func(v *variable) bool { return v.column == name }) {
			return nil, train.wrong(-1, name, "", "Spec.Columns has a name that is taken: rename the column")
		}
		d.own = append(d.own, v)
	}
	if len(d.columns)+len(d.own) == 0 && d.outcome == nil {
		return nil, train.wrong(-1, "", "", "the Spec is empty: it needs Terms, an Outcome or Columns")
	}
	for _, v := range f.order {
		if v != d.outcome {
			d.variables = append(d.variables, v)
		}
	}
	d.original = maps(d.columns)
	if _, err := d.Frame(train); err != nil || s.EmptyCells { // what is not finite is an error here, not later
		return d, err
	}
	return d, d.filled(train)
}

// filled is an error where a column of a product has no row of the training data in its cell of factors.
func (d *Design) filled(train *Table) error {
	for _, c := range d.columns {
		var weight []float64 // of each row, by the factors among the atoms
		for _, a := range c.atoms {
			if !a.factor || len(c.atoms) < 2 {
				continue
			}
			codes, err := a.values(train)
			if err != nil {
				return err
			}
			for i, code := range codes {
				if w := a.matrix[int(code)][a.part]; len(weight) <= i {
					weight = append(weight, w)
				} else {
					weight[i] *= w
				}
			}
		}
		if weight != nil && !slices.ContainsFunc(weight, func(w float64) bool { return w != 0 }) {
			return train.wrong(-1, c.name, "", "no row is in this cell of the product, and it is 0 in each row: the data say "+
				"nothing of its coefficient; merge levels, leave the product out, or keep it with Spec.EmptyCells")
		}
	}
	return nil
}

// raw is the contrast of a factor that stays an index.
const raw Contrast = -1

// variable is a column of the table with what was learned of it.
type variable struct {
	column   string
	name     string
	apply    func(float64) float64 // nil for none
	absent   bool                  // apply is not known: the design comes from a file
	scaling  Scaling
	factor   bool
	contrast Contrast
	levels   []string
	index    map[string]int
	matrix   [][]float64 // of the contrast
	labels   []string    // of its columns
}

// fitting is a Spec on its way to a design.
type fitting struct {
	t     *Table
	seen  map[string]*variable // by name, for names that mean two things
	order []*variable
}

func (f *fitting) outcome(term Term, d *Design) (err error) {
	if term.Column == "" && term.Product == nil {
		return nil
	}
	if term.Product != nil || term.Contrast != Treatment || term.Reference != "" {
		return f.t.wrong(-1, term.Column, "", "Spec.Outcome is a number or a factor: no Product, Contrast or Reference")
	}
	if c, err := f.t.get(term.Column); err == nil && c.factor {
		term.Contrast = raw
	}
	d.outcome, err = f.variable(term)
	return err
}

// expand makes the columns of a term.
func (f *fitting) expand(term Term) ([]designColumn, error) {
	parts := term.Product
	if parts == nil {
		parts = []Term{term}
	} else if term.Column != "" || term.Scale != 0 || term.Map != nil || term.As != "" || term.Contrast != Treatment ||
		term.Reference != "" || len(parts) < 2 || len(parts) > 8 {
		return nil, f.t.wrong(-1, term.Column, "", "a Term with a Product has 2 to 8 factors and no other field")
	}
	out := []designColumn{{}}
	for _, p := range parts {
		if term.Product != nil && p.Product != nil {
			return nil, f.t.wrong(-1, p.Column, "", "a Product holds a Product: write all factors into one")
		}
		if p.Contrast < Treatment {
			return nil, f.t.wrong(-1, p.Column, "", fmt.Sprintf("contrast %d is unknown", int(p.Contrast)))
		}
		v, err := f.variable(p)
		if err != nil {
			return nil, err
		}
		var next []designColumn
		for j := range max(1, len(v.labels)) {
			for _, c := range out {
				a := atom{v, j}
				next = append(next, designColumn{
					name:  strings.TrimPrefix(c.name+":"+a.name(), ":"),
					atoms: append(slices.Clone(c.atoms), a),
				})
			}
		}
		out = next
	}
	return out, nil
}

// variable learns from a column.
func (f *fitting) variable(term Term) (*variable, error) {
	c, err := f.t.get(term.Column)
	if err != nil {
		return nil, err
	}
	wrong := func(problem string, args ...any) error {
		return f.t.wrong(-1, term.Column, "", fmt.Sprintf(problem, args...))
	}
	switch {
	case c.factor && (term.Scale != 0 || term.Map != nil):
		return nil, wrong("it is a factor, which has no Scale and no Map; levels are %s", list(c.levels))
	case !c.factor && (term.Contrast > Treatment || term.Reference != ""):
		return nil, wrong("it is a number, which has no Contrast and no Reference: state it in CSV.Factors")
	case !(term.Scale >= 0) || math.IsInf(term.Scale, 0):
		return nil, wrong("Scale is %v: it must be finite and at least 0", term.Scale)
	case term.Map != nil && term.As == "":
		return nil, wrong("a Term with a Map needs As, the name of what it makes")
	}
	v := &variable{column: c.name, name: c.name, apply: term.Map, factor: c.factor, contrast: term.Contrast,
		scaling: Scaling{SD: 1}}
	if term.As != "" {
		v.name = term.As
	}
	if was := f.seen[v.name]; was != nil && (was.column != v.column || (was.apply == nil) != (v.apply == nil)) {
		return nil, wrong("%q is the name of something else as well: give As another name", v.name)
	}
	if err := f.t.complete(c); err != nil {
		return nil, err
	}
	if c.factor {
		err = v.learnLevels(f.t, c, term.Reference)
	} else {
		err = v.learnScale(f.t, c, term.Scale)
	}
	if err == nil {
		f.seen[v.name] = v
		f.order = append(f.order, v)
	}
	return v, err
}

func (v *variable) learnScale(t *Table, c column, scale float64) error {
	values, err := v.numbers(t, c)
	if err != nil || scale == 0 {
		return err
	}
	if slices.Min(values) == slices.Max(values) {
		return t.wrong(-1, c.name, "", fmt.Sprintf("it is %v in every row and cannot be scaled", values[0]))
	}
	mean, sd := sample.Moments(values)
	v.scaling = Scaling{Mean: mean, SD: sd * scale}
	if s := v.scaling.SD; !(s > 0) || math.IsInf(s, 0) {
		return t.wrong(-1, c.name, "", fmt.Sprintf("%v standard deviations are %v, beyond the range of numbers", scale, s))
	}
	return nil
}

func (v *variable) learnLevels(t *Table, c column, reference string) (err error) {
	used := make([]bool, len(c.levels))
	for _, code := range c.codes {
		used[code] = true
	}
	v.index = map[string]int{}
	for i, l := range c.levels {
		if c.stated || used[i] {
			v.index[l] = len(v.levels)
			v.levels = append(v.levels, l)
		}
	}
	if v.contrast == raw {
		return nil
	}
	coded := v.levels
	if reference != "" {
		at, ok := v.index[reference]
		if !ok || v.contrast != Treatment {
			return t.wrong(-1, c.name, reference, "Reference is a level that Treatment leaves out; there are "+list(v.levels))
		}
		coded = slices.Concat([]string{reference}, v.levels[:at], v.levels[at+1:])
	}
	if v.matrix, err = v.contrast.Matrix(len(coded)); err != nil {
		return t.wrong(-1, c.name, "", err.(*Error).Problem)
	}
	for j := range v.matrix[0] {
		v.labels = append(v.labels, v.contrast.label(coded, j))
	}
	if reference != "" {
		at := v.index[reference]
		v.matrix = slices.Concat(v.matrix[1:at+1], v.matrix[:1], v.matrix[at+1:])
	}
	return nil
}
