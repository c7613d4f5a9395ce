package ppl

import (
	"fmt"
	"math"
	"slices"
)

// crosses says whether a table is in plates each of which has some of its variables, and none all of them: a site in
// two plates that depends on variables in the one and in the other.
func (f *table) crosses() bool {
	for _, p := range f.plates {
		if !slices.ContainsFunc(f.vars, func(v *variable) bool { return inPlates(p, v.plates) }) {
			return false
		}
	}
	inAll := func(v *variable) bool { return samePlates(v.plates, f.plates) }
	return len(f.vars) > 0 && !slices.ContainsFunc(f.vars, inAll)
}

// unroll makes the variables of one of a crossing table's plates single ones, a variable for each repetition, and takes
// the tables that have them apart likewise. It takes the plate whose variables have the fewest joint values, of which
// the sum then needs a table.
func (e *enumeration) unroll(crossing *table, tables []*table) (out []*table) {
	var plate Plate
	fewest := math.Inf(1)
	for _, p := range crossing.plates {
		n := 1.0
		for _, v := range crossing.vars {
			if inPlates(p, v.plates) {
				n *= math.Pow(float64(v.size), float64(e.usedOf(p)))
			} else {
				n *= float64(v.size)
			}
		}
		if n < fewest {
			fewest, plate = n, p
		}
	}
	s := crossing.first()
	if !(fewest <= maxTable) {
		s.fail("it is in the plates %s, which cross, and depends on the discrete variables %s together: the shortest sum "+
			"has all joint values of those in plate %q, a table of %.3g numbers, and at most %d are summed out",
			names(crossing.plates, func(p Plate) string { return fmt.Sprintf("%s (%d)", p.Name, e.usedOf(p)) }),
			names(crossing.vars, func(v *variable) string { return fmt.Sprintf("%s (%d values)", v.name, v.size) }), plate.Name,
			fewest, maxTable)
	}
	if used := e.usedOf(plate); used != plate.Size {
		s.fail("it is in plates that cross, and the sum over its discrete variables needs all of plate %q, of which the "+
			"batch has %d of %d: take all of the data in each update", plate.Name, used, plate.Size)
	}
	apart := map[*variable][]*variable{} // the variables of the plate that are to be single ones
	add := func(f *table) (more bool) {
		for _, v := range f.vars {
			if apart[v] == nil && inPlates(plate, v.plates) {
				apart[v] = make([]*variable, plate.Size)
				for i := range apart[v] {
					one := *v
					one.name, one.id = fmt.Sprintf("%s at %s %d", v.name, plate.Name, i), len(e.vars)+e.singles
					one.plates = without(v.plates, plate)
					apart[v][i] = &one
					e.singles++
				}
				more = true
			}
		}
		return more
	}
	has := func(f *table) bool {
		return slices.ContainsFunc(f.vars, func(v *variable) bool { return apart[v] != nil })
	}
	for more := add(crossing); more; {
		more = false
		for _, f := range tables {
			more = has(f) && add(f) || more
		}
	}
	for _, f := range tables {
		if !has(f) {
			out = append(out, f)
			continue
		}
		for i := range int(plate.Size) {
			one := *f
			one.t, one.row = f.tensor(), row{}
			one.vars, one.plates, one.shared = slices.Clone(f.vars), without(f.plates, plate), false
			for k, v := range one.vars {
				if apart[v] != nil {
					one.vars[k] = apart[v][i]
				}
			}
			if at := len(f.shape) + plate.Dim; !e.dry && f.shape[at] > 1 {
				one.t, one.shape = one.t.Slice(at, i, i+1), slices.Clone(f.shape)
				one.shape[at] = 1
			}
			out = append(out, &one)
		}
	}
	return out
}

// without are plates but for one.
func without(plates []Plate, p Plate) (out []Plate) {
	for _, q := range plates {
		if q.key() != p.key() {
			out = append(out, q)
		}
	}
	return out
}
