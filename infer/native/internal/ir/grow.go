package ir

import (
	"errors"
	"math"
	"reflect"
)

// errGrow is why a plan of another size does not follow from some.
var errGrow = errors.New("the plans of three sizes differ in more than whole numbers that grow evenly")

// Grow is the plan of size n that follows from those of three other sizes: each whole number is a linear function of
// the size. It was checked.
func Grow(plans [3]*Plan, at [3]int, n int) (*Plan, error) {
	var in [3]reflect.Value
	for i, p := range plans {
		own := *p
		own.Notes = nil
		in[i] = reflect.ValueOf(own)
	}
	var out Plan
	if !(grower{at, n}).value(reflect.ValueOf(&out).Elem(), in) {
		return nil, errGrow
	}
	out.Notes = plans[0].Notes
	return &out, out.Check()
}

type grower struct {
	at [3]int
	n  int
}

// whole is the number that follows from those of three sizes.
func (g grower) whole(v [3]int) (int, bool) {
	by, steps := v[1]-v[0], g.at[1]-g.at[0]
	slope := by / steps
	on := func(n int) int { return v[0] + slope*(n-g.at[0]) }
	return on(g.n), on(g.at[1]) == v[1] && on(g.at[2]) == v[2]
}

// value makes out of what has the same type in three plans, and says whether it follows.
func (g grower) value(out reflect.Value, in [3]reflect.Value) bool {
	each := func(f func(v reflect.Value) reflect.Value) (parts [3]reflect.Value) {
		for i, v := range in {
			parts[i] = f(v)
		}
		return parts
	}
	switch out.Kind() {
	case reflect.Int, reflect.Int64:
		v, ok := g.whole([3]int{int(in[0].Int()), int(in[1].Int()), int(in[2].Int())})
		out.SetInt(int64(v))
		return ok
	case reflect.Struct:
		for i := range out.NumField() {
			if !g.value(out.Field(i), each(func(v reflect.Value) reflect.Value { return v.Field(i) })) {
				return false
			}
		}
		return true
	case reflect.Pointer:
		if in[0].IsNil() || in[1].IsNil() || in[2].IsNil() {
			return in[0].IsNil() && in[1].IsNil() && in[2].IsNil()
		}
		out.Set(reflect.New(out.Type().Elem()))
		return g.value(out.Elem(), each(reflect.Value.Elem))
	case reflect.Slice:
		n := in[0].Len()
		if in[1].Len() != n || in[2].Len() != n {
			return g.table(out, in)
		}
		if in[0].IsNil() {
			return true
		}
		out.Set(reflect.MakeSlice(out.Type(), n, n))
		for k := range n {
			if !g.value(out.Index(k), each(func(v reflect.Value) reflect.Value { return v.Index(k) })) {
				return false
			}
		}
		return true
	case reflect.Float64:
		out.Set(in[0])
		bits := math.Float64bits(in[0].Float())
		return math.Float64bits(in[1].Float()) == bits && math.Float64bits(in[2].Float()) == bits
	}
	out.Set(in[0])
	return in[0].Equal(in[1]) && in[0].Equal(in[2])
}

// table is a table of equal numbers, of which there are more in a plan of a larger size.
func (g grower) table(out reflect.Value, in [3]reflect.Value) bool {
	n, ok := g.whole([3]int{in[0].Len(), in[1].Len(), in[2].Len()})
	if !ok || n < 0 || out.Type().Elem().Kind() != reflect.Float64 || in[0].Len() == 0 {
		return false
	}
	first := in[0].Index(0)
	for _, v := range in {
		for k := range v.Len() {
			if math.Float64bits(v.Index(k).Float()) != math.Float64bits(first.Float()) {
				return false
			}
		}
	}
	out.Set(reflect.MakeSlice(out.Type(), n, n))
	for k := range n {
		out.Index(k).Set(first)
	}
	return true
}
