package lower

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
)

// Same says whether two plans are the same, constants included, to the bit. Names of inputs and outputs do not matter.
func Same(a, b *ir.Plan) bool {
	same := func(x, y any) bool { return equal(reflect.ValueOf(x), reflect.ValueOf(y)) }
	return a.Dim == b.Dim && len(a.Outputs) == len(b.Outputs) && same(a.Buffers, b.Buffers) &&
		same(a.Prologue, b.Prologue) && same(a.Steps, b.Steps)
}

// equal compares values of one type: numbers to the bit, and an empty list is no list.
func equal(a, b reflect.Value) bool {
	number := func(x, y float64) bool { return math.Float64bits(x) == math.Float64bits(y) }
	if x, ok := a.Interface().([]float64); ok { // which may be long
		return slices.EqualFunc(x, b.Interface().([]float64), number)
	}
	switch a.Kind() {
	case reflect.Float64:
		return number(a.Float(), b.Float())
	case reflect.Pointer:
		return a.IsNil() && b.IsNil() || !a.IsNil() && !b.IsNil() && equal(a.Elem(), b.Elem())
	case reflect.Slice:
		if a.Len() != b.Len() {
			return false
		}
		for i := range a.Len() {
			if !equal(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return true
	case reflect.Struct:
		for i := range a.NumField() {
			if !equal(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	}
	return a.Equal(b)
}

// Difference says why two recordings of one function at two points are two plans.
func Difference(a, b *Recording) *Refusal {
	if r := differ(a.Calls, b.Calls); r != nil {
		return r
	}
	return &Refusal{Reason: "a constant that the evaluation captures differs from one point to another: it depends " +
		"on the parameters by a way that is no tensor operation, or is random"}
}

func differ(a, b []*Call) *Refusal {
	site := ""
	for i := range max(len(a), len(b)) {
		if i < len(a) {
			site = cmp.Or(a[i].mark(), site)
		}
		if i >= len(a) || i >= len(b) {
			longer := a
			if i >= len(a) {
				longer = b
			}
			return controlFlow(site, longer[i].Name, "one does more operations than the other")
		}
		if a[i].Name != b[i].Name || a[i].Overload != b[i].Overload {
			return controlFlow(site, a[i].Name, "the other does "+b[i].Name)
		}
		if x, y := describe(a[i].Args), describe(b[i].Args); x != y {
			return controlFlow(site, a[i].Name, fmt.Sprintf("its arguments are %s and %s", x, y))
		}
		if _, known := rules[strings.Trim(strings.TrimPrefix(a[i].Name, "aten::"), "_")]; known {
			continue // what it does inside may take memory that it has not written yet
		}
		if r := differ(a[i].Calls, b[i].Calls); r != nil {
			r.Site = cmp.Or(r.Site, site)
			return r
		}
	}
	return nil
}

func controlFlow(site, op, how string) *Refusal {
	return &Refusal{Op: op, Site: site, Reason: "evaluations at two points do different operations (" + how +
		"): control flow depends on the parameters, or a number does by a way that is no tensor operation"}
}

// describe prints arguments: the shapes of tensors, and numbers.
func describe(args []Arg) string {
	texts := make([]string, len(args))
	for i, a := range args {
		switch a.Kind {
		case TensorKind:
			texts[i] = fmt.Sprintf("%v%v", a.Tensor.Type, a.Tensor.Sizes)
		case Double:
			texts[i] = fmt.Sprint(a.Double)
		case Int, Bool:
			texts[i] = fmt.Sprint(a.Int)
		case List:
			texts[i] = describe(a.List)
		default:
			texts[i] = "-"
		}
	}
	return "(" + strings.Join(texts, ", ") + ")"
}
