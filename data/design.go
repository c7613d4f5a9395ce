package data

import (
	"fmt"
	"math"
	"slices"
)

// Design maps tables to numbers with what it has learned from the training data. Make one with [Spec.Fit]. It is
// immutable; any number of goroutines may use it.
type Design struct {
	columns   []designColumn
	variables []*variable // all but the outcome
	outcome   *variable   // nil for none
	own       []*variable
	original  []expansion // of each column, on the scale of the file
}

// designColumn is a column of the matrix: the product of its atoms.
type designColumn struct {
	name  string
	atoms []atom
}

// atom is a number, or one column of the contrast of a factor.
type atom struct {
	*variable
	part int
}

func (a atom) name() string {
	if !a.factor {
		return a.variable.name
	}
	return a.variable.name + "[" + a.labels[a.part] + "]"
}

// Frame is data as numbers.
type Frame struct {
	// X are the rows of the matrix, of len(Names) numbers each; nil where the design has no terms.
	X     [][]float64
	Names []string // of the columns of X, as "age", "region[north]", "age:region[north]"
	// Y is the outcome, scaled as the design says; for a factor the index of its level. Nil without an outcome.
	Y []float64
	// Numbers and Indices are the columns of their own, by name.
	Numbers map[string][]float64
	Indices map[string][]int
	Rows    int
}

// Names are the names of the columns of the matrix: "age" for a number, "region[north]" for a contrast, with S. and H.
// before the level for sums and Helmert, ^2 for the degree of a polynomial, and a colon in products.
func (d *Design) Names() []string {
	names := make([]string, len(d.columns))
	for i, c := range d.columns {
		names[i] = c.name
	}
	return names
}

// Columns are the columns of a table that [Design.Frame] needs, without the outcome, in alphabetical order.
func (d *Design) Columns() (out []string) {
	for _, v := range d.variables {
		out = append(out, v.column)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Outcomes are the columns of a table that make Y; none for a design without an outcome.
func (d *Design) Outcomes() []string {
	if d.outcome == nil {
		return nil
	}
	return []string{d.outcome.column}
}

// Levels are the levels of a factor, in the order of their indices; nil for a number or what the design does not have.
func (d *Design) Levels(column string) []string {
	for _, v := range append(slices.Clone(d.variables), d.outcome) {
		if v != nil && v.column == column && v.factor {
			return slices.Clone(v.levels)
		}
	}
	return nil
}

// Outcome is the scaling of y: its Back brings predictions to the scale of the file.
func (d *Design) Outcome() Scaling {
	if d.outcome == nil {
		return Scaling{SD: 1}
	}
	return d.outcome.scaling
}

// Frame maps a table, old or new. A table without the column of the outcome has no Y, so that predictions need none.
//
// Missing values, a column that is missing or of another kind, a level that the training data do not have, and a result
// that is not finite are errors that name the value, its column and its row.
func (d *Design) Frame(t *Table) (*Frame, error) {
	if t == nil || t.n == 0 {
		return nil, &Error{Row: -1, Problem: "there are no rows"}
	}
	f := &Frame{Names: d.Names(), Numbers: map[string][]float64{}, Indices: map[string][]int{}, Rows: t.n}
	values := map[*variable][]float64{}
	for _, v := range d.variables {
		var err error
		if values[v], err = v.values(t); err != nil {
			return nil, err
		}
	}
	if d.outcome != nil && t.find(d.outcome.column) >= 0 {
		var err error
		if f.Y, err = d.outcome.values(t); err != nil {
			return nil, err
		}
	}
	for _, v := range d.own {
		if !v.factor {
			f.Numbers[v.column] = values[v]
			continue
		}
		codes := make([]int, t.n)
		for i, code := range values[v] {
			codes[i] = int(code)
		}
		f.Indices[v.column] = codes
	}
	if len(d.columns) == 0 {
		return f, nil
	}
	flat := make([]float64, t.n*len(d.columns))
	for i := range t.n {
		row := flat[i*len(d.columns) : (i+1)*len(d.columns) : (i+1)*len(d.columns)]
		for j, c := range d.columns {
			row[j] = 1
			for _, a := range c.atoms {
				x := values[a.variable][i]
				if a.factor {
					x = a.matrix[int(x)][a.part]
				}
				row[j] *= x
			}
			if math.IsInf(row[j], 0) || math.IsNaN(row[j]) {
				return nil, t.wrong(i, c.name, "", "the product is beyond the range of numbers: scale its factors")
			}
		}
		f.X = append(f.X, row)
	}
	return f, nil
}

// values are the scaled numbers of a table, or the indices of the levels.
func (v *variable) values(t *Table) ([]float64, error) {
	c, err := t.get(v.column)
	if err != nil {
		return nil, err
	}
	if c.factor != v.factor {
		return nil, t.wrong(-1, c.name, "", fmt.Sprintf("it is %s here and was %s in the training data: state its kind",
			kind(c.factor), kind(v.factor)))
	}
	if err := t.complete(c); err != nil {
		return nil, err
	}
	if !v.factor {
		out, err := v.numbers(t, c)
		for i := range out {
			if out[i] = v.scaling.To(out[i]); math.IsInf(out[i], 0) && err == nil {
				err = t.wrong(i, c.name, format(c.numbers[i]), "it is beyond the range of numbers when it is scaled")
			}
		}
		return out, err
	}
	out := make([]float64, t.n)
	for i, code := range c.codes {
		at, known := v.index[c.levels[code]]
		if !known {
			return nil, t.wrong(i, c.name, c.levels[code],
				"the training data do not have this level: they have "+list(v.levels))
		}
		out[i] = float64(at)
	}
	return out, nil
}

func kind(factor bool) string {
	if factor {
		return "a factor"
	}
	return "a number"
}

// numbers are the numbers of a column after the map of the term.
func (v *variable) numbers(t *Table, c column) ([]float64, error) {
	out := slices.Clone(c.numbers)
	if v.apply == nil {
		return out, nil
	}
	if v.absent {
		return nil, t.wrong(-1, c.name, "", fmt.Sprintf("the map %q is not in the file of the design: give it, by "+
			"Design.WithMaps", v.name))
	}
	for i, x := range c.numbers {
		if out[i] = v.apply(x); math.IsNaN(out[i]) || math.IsInf(out[i], 0) {
			return nil, t.wrong(i, c.name, format(x), fmt.Sprintf("%s of it is %v: expected a finite number", v.name, out[i]))
		}
	}
	return out, nil
}

// complete is an error where a column has missing values.
func (t *Table) complete(c column) error {
	n := c.missing()
	if n == 0 {
		return nil
	}
	for row := range t.n {
		if c.absent(row) {
			more := ""
			if n > 1 {
				more = fmt.Sprintf(", and so are %d more of the column", n-1)
			}
			return t.wrong(row, c.name, "", "it is missing"+more+
				": drop such rows with Table.DropMissing, or model them")
		}
	}
	return nil
}

// Scaling is the map of a number to the scale of a design and back: z = (x - Mean)/SD. One that does nothing has mean 0
// and SD 1.
type Scaling struct {
	Mean float64 // of the training data
	SD   float64 // of the training data, divisor n-1, times Term.Scale
}

// To is z = (x - Mean)/SD.
func (s Scaling) To(x float64) float64 { return (x - s.Mean) / s.SD }

// Back is x = Mean + SD·z. Standard deviations and other distances have the factor SD alone.
func (s Scaling) Back(z float64) float64 { return s.Mean + s.SD*z }
