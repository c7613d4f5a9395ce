package formula

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/kelvin-ppl/kelvin/data"
)

// savedDesign is the form of a design in a file.
type savedDesign struct {
	Version int     `json:"kelvin_formula"`
	Formula string  `json:"formula"`
	Memory  *memory `json:"learned"`
}

// MarshalJSON writes the formula and what was learned, from which [Design.UnmarshalJSON] makes the same design: its
// rows are the same to the bit.
func (d *Design) MarshalJSON() ([]byte, error) {
	if d.f == nil {
		return nil, unreadable("it is empty: Formula.Fit makes a design")
	}
	return json.Marshal(savedDesign{1, d.f.text, d.m})
}

// UnmarshalJSON reads what [Design.MarshalJSON] has written. Everything is checked: what no design can be is an error
// that says what is wrong, and leaves d as it was.
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
	if s.Version != 1 || s.Memory == nil {
		return unreadable("its version is %d, expected 1, or it has learned nothing", s.Version)
	}
	f, bad := parse(s.Formula)
	if bad != nil {
		return unreadable("%v", bad)
	}
	if err := s.Memory.check(f); err != nil {
		return err
	}
	made, err := newDesign(f, s.Memory)
	if err != nil {
		return unreadable("%v", err)
	}
	*d = *made
	return nil
}

// unreadable is the error of a file that is no design.
func unreadable(problem string, args ...any) error {
	return &data.Error{Row: -1, Problem: "the saved design cannot be used: " + fmt.Sprintf(problem, args...)}
}

// check is an error where a memory lacks what a formula needs.
func (m *memory) check(f *Formula) error {
	for name, levels := range m.Levels {
		if twice := repeated(levels); len(levels) == 0 || twice != "" || slices.Contains(levels, "") {
			return unreadable("factor %q has no levels, an empty one, or %q twice", short(name), short(twice))
		}
	}
	if twice := repeated(m.Outcome); twice != "" || slices.Contains(m.Outcome, "") {
		return unreadable("the outcome has an empty level, or %q twice", short(twice))
	}
	if v := f.Outcome.Value; m.Outcome != nil && (v.Kind != Column || v.None()) {
		return unreadable("the outcome %q is no factor", v)
	}
	x := &expansion{text: f.text}
	var terms []Term
	terms = append(terms, f.Terms...)
	for _, g := range f.Groups {
		terms = append(terms, g.Terms...)
		if g.Members == nil {
			continue
		}
		for _, w := range g.Weights {
			if err := m.checkNumber(w); err != nil {
				return err
			}
		}
	}
	for _, t := range terms {
		for _, e := range t.Factors {
			if err := m.checkFactor(x, e); err != nil {
				return err
			}
		}
	}
	for _, s := range f.Smooths {
		if err := m.checkSmooth(s); err != nil {
			return err
		}
	}
	o := f.Outcome
	for _, e := range append(slices.Clone(f.Offsets), o.Value, o.Trials, o.Weights, o.SE, o.Upper, o.Lower, o.Above) {
		if err := m.checkNumber(e); err != nil {
			return err
		}
	}
	return nil
}

// checkFactor checks a factor of a term.
func (m *memory) checkFactor(x *expansion, e Expr) error {
	key := e.String()
	levels, isFactor := m.Levels[key]
	must := e.Kind == Call && (e.Name == "factor" || e.Name == "C")
	if isFactor && e.Kind != Column && !must || isFactor && len(levels) < 2 || must && !isFactor {
		return unreadable("%s has %d levels", key, len(levels))
	}
	if must && e.Name == "C" {
		c, bad := x.coding(e)
		if bad != nil || c.reference != "" && !slices.Contains(levels, c.reference) {
			return unreadable("%s has not its reference among the levels", key)
		}
	}
	if isFactor {
		return nil
	}
	if e.Kind == Call && e.Name == "poly" {
		degree, raw, _ := x.polynomial(e)
		if n := m.Numbers[key]; !raw && (len(n) != 2*degree+2 || slices.Contains(n[degree+1:], 0)) {
			return unreadable("%s has %d numbers", key, len(n))
		}
		return m.checkNumber(e.Args[0])
	}
	if e.Kind == Call && e.Name == "bs" {
		b, _ := x.spline(e)
		n := m.Numbers[key]
		if want := b.width() - b.degree + 2 - number01(b.intercept); len(n) != want || !slices.IsSorted(n) ||
			n[0] == n[len(n)-1] {
			return unreadable("%s has the knots %v", key, n)
		}
		return m.checkNumber(b.x)
	}
	return m.checkNumber(e)
}

// checkNumber checks what arithmetic needs.
func (m *memory) checkNumber(e Expr) error {
	if e.Kind == Call && (e.Name == "scale" || e.Name == "center") {
		if n := m.Numbers[e.String()]; len(n) != 2 || !(n[1] > 0) {
			return unreadable("%s has the mean and standard deviation %v", e, n)
		}
	}
	for _, a := range e.Args {
		if err := m.checkNumber(a); err != nil {
			return err
		}
	}
	return nil
}

func (m *memory) checkSmooth(s Smooth) error {
	k, n := s.k(), m.Numbers[s.key()]
	if len(n) != 2+k+2*k*(k-2) || !(n[1] > 0) {
		return unreadable("%s has %d numbers", s, len(n))
	}
	for j := 3; j < 2+k; j++ {
		if !(n[j-1] < n[j]) {
			return unreadable("%s has the knots %v, which are not in order", s, n[2:2+k])
		}
	}
	return m.checkNumber(s.X)
}
