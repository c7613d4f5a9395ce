package data

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
)

// savedDesign is the form of a design in a file.
type savedDesign struct {
	Design    int             `json:"kelvin_design"` // version of the form
	Variables []savedVariable `json:"variables"`
	Columns   [][][2]int      `json:"columns"` // atoms of each: a variable, and the column of its contrast
	Own       []int           `json:"own"`
	Outcome   int             `json:"outcome"` // -1 for none
}

type savedVariable struct {
	Column   string      `json:"column"`
	Name     string      `json:"name"`
	Mapped   bool        `json:"mapped,omitempty"`
	Mean     float64     `json:"mean"`
	SD       float64     `json:"sd"`
	Factor   bool        `json:"factor,omitempty"`
	Contrast Contrast    `json:"contrast,omitempty"`
	Levels   []string    `json:"levels,omitempty"`
	Matrix   [][]float64 `json:"matrix,omitempty"`
	Labels   []string    `json:"labels,omitempty"`
}

// MarshalJSON writes what the design has learned: levels, contrasts, means and standard deviations, to the bit. A Map
// of a [Term] is a Go function and is not written, only that there is one; see [Design.WithMaps].
func (d *Design) MarshalJSON() ([]byte, error) {
	s := savedDesign{Design: 1, Outcome: -1, Columns: [][][2]int{}, Own: []int{}}
	variables := slices.Clone(d.variables)
	if d.outcome != nil {
		s.Outcome = len(variables)
		variables = append(variables, d.outcome)
	}
	for _, v := range variables {
		s.Variables = append(s.Variables, savedVariable{Column: v.column, Name: v.name, Mapped: v.apply != nil,
			Mean: v.scaling.Mean, SD: v.scaling.SD, Factor: v.factor, Contrast: v.contrast, Levels: v.levels,
			Matrix: v.matrix, Labels: v.labels})
	}
	for _, c := range d.columns {
		atoms := make([][2]int, len(c.atoms))
		for i, a := range c.atoms {
			atoms[i] = [2]int{slices.Index(variables, a.variable), a.part}
		}
		s.Columns = append(s.Columns, atoms)
	}
	for _, v := range d.own {
		s.Own = append(s.Own, slices.Index(variables, v))
	}
	return json.Marshal(s)
}

// UnmarshalJSON reads what [Design.MarshalJSON] has written. Everything is checked: what no design can be is an
// *[Error] that says what is wrong, and leaves d as it was.
func (d *Design) UnmarshalJSON(text []byte) error {
	var s savedDesign
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&s); err != nil {
		return unreadable("%v", err)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return unreadable("something follows it")
	}
	if s.Design != 1 {
		return unreadable("its version is %d, expected 1", s.Design)
	}
	made := Design{}
	variables := make([]*variable, len(s.Variables))
	for i, v := range s.Variables {
		var err error
		if variables[i], err = v.variable(); err != nil {
			return err
		}
		if i == s.Outcome {
			made.outcome = variables[i]
		} else {
			made.variables = append(made.variables, variables[i])
		}
	}
	if s.Outcome != -1 && made.outcome == nil || made.outcome != nil && made.outcome.labels != nil {
		return unreadable("its outcome is variable %d of %d, or has a contrast", s.Outcome, len(variables))
	}
	taken := map[string]bool{}
	for i, c := range s.Columns {
		column, err := restore(c, variables, made.outcome)
		if err != nil {
			return unreadable("column %d: %v", i, err)
		}
		if id := key(column.atoms); taken[id] {
			return unreadable("column %q is there twice", column.name)
		} else {
			taken[id] = true
		}
		made.columns = append(made.columns, column)
	}
	for _, i := range s.Own {
		if i < 0 || i >= len(variables) || variables[i] == made.outcome || variables[i].labels != nil {
			return unreadable("variable %d is no column of its own", i)
		}
		made.own = append(made.own, variables[i])
	}
	if len(made.columns)+len(made.own) == 0 && made.outcome == nil {
		return unreadable("it is empty")
	}
	made.original = maps(made.columns)
	*d = made
	return nil
}

// restore is a column of a file.
func restore(atoms [][2]int, variables []*variable, outcome *variable) (designColumn, error) {
	var c designColumn
	if len(atoms) < 1 || len(atoms) > 8 {
		return c, fmt.Errorf("it has %d factors, expected 1 to 8", len(atoms))
	}
	for i, a := range atoms {
		if a[0] < 0 || a[0] >= len(variables) || variables[a[0]] == outcome {
			return c, fmt.Errorf("factor %d is of variable %d, which is none of the matrix", i, a[0])
		}
		v := variables[a[0]]
		if a[1] < 0 || a[1] >= max(1, len(v.labels)) || v.factor && v.labels == nil {
			return c, fmt.Errorf("variable %q has no part %d", v.name, a[1])
		}
		c.atoms = append(c.atoms, atom{v, a[1]})
		if i > 0 {
			c.name += ":"
		}
		c.name += c.atoms[i].name()
	}
	return c, nil
}

// variable checks a variable of a file.
func (s savedVariable) variable() (*variable, error) {
	v := &variable{column: s.Column, name: s.Name, scaling: Scaling{Mean: s.Mean, SD: s.SD}, factor: s.Factor,
		contrast: s.Contrast, levels: s.Levels, matrix: s.Matrix, labels: s.Labels}
	if s.Mapped {
		v.apply = func(float64) float64 { return math.NaN() }
		v.absent = true
	}
	if s.Column == "" || s.Name == "" || !(s.SD > 0) || math.IsInf(s.SD, 0) {
		return nil, unreadable("variable %q of column %q has the standard deviation %v", s.Name, s.Column, s.SD)
	}
	if !s.Factor {
		if len(s.Levels)+len(s.Matrix)+len(s.Labels) > 0 || s.Contrast != Treatment && s.Contrast != raw {
			return nil, unreadable("variable %q is a number, and has levels or a contrast", s.Name)
		}
		return v, nil
	}
	v.index = map[string]int{}
	for i, l := range s.Levels {
		if _, twice := v.index[l]; twice || l == "" {
			return nil, unreadable("factor %q has the level %q twice, or an empty one", s.Name, short(l))
		}
		v.index[l] = i
	}
	if len(s.Levels) == 0 || s.Mapped || s.Mean != 0 || s.SD != 1 || s.Contrast < raw || s.Contrast > Indicator {
		return nil, unreadable("factor %q has no levels, a map, a scale or contrast %d", s.Name, int(s.Contrast))
	}
	if (s.Contrast == raw) != (len(s.Matrix) == 0) || (s.Contrast == raw) != (len(s.Labels) == 0) ||
		s.Contrast != raw && len(s.Matrix) != len(s.Levels) {
		return nil, unreadable("factor %q has %d levels and a contrast with %d rows", s.Name, len(s.Levels), len(s.Matrix))
	}
	for _, row := range s.Matrix {
		if len(row) != len(s.Labels) {
			return nil, unreadable("the contrast of factor %q has a row of %d numbers, expected %d", s.Name, len(row),
				len(s.Labels))
		}
	}
	return v, nil
}

// unreadable is the error of a file that is no design.
func unreadable(problem string, args ...any) error {
	return &Error{Row: -1, Problem: "the saved design cannot be used: " + fmt.Sprintf(problem, args...)}
}

// WithMaps is the design with the functions that files do not keep, by the names that the terms gave them (As): those
// of the Spec that it was made of. Names that the design does not have, and functions that are nil, are errors. Until
// all are there, [Design.Frame] is an error that names what is missing.
func (d *Design) WithMaps(functions map[string]func(float64) float64) (*Design, error) {
	replaced := map[*variable]*variable{}
	given := map[string]bool{}
	swap := func(v *variable) *variable {
		if v == nil {
			return nil
		}
		f, ok := functions[v.name]
		if !ok || v.apply == nil {
			return v
		}
		given[v.name] = true
		if replaced[v] == nil {
			own := *v
			own.apply, own.absent = f, f == nil
			replaced[v] = &own
		}
		return replaced[v]
	}
	out := &Design{outcome: swap(d.outcome), original: d.original}
	for _, v := range d.variables {
		out.variables = append(out.variables, swap(v))
	}
	for _, v := range d.own {
		out.own = append(out.own, swap(v))
	}
	for _, c := range d.columns {
		own := designColumn{name: c.name}
		for _, a := range c.atoms {
			own.atoms = append(own.atoms, atom{swap(a.variable), a.part})
		}
		out.columns = append(out.columns, own)
	}
	for name, f := range functions {
		if f == nil || !given[name] {
			return nil, &Error{Row: -1, Column: name, Problem: "the function is nil, or the design has no map of this name"}
		}
	}
	return out, nil
}
