package lower

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
)

// Same says whether two plans are the same, constants included, to the bit.
func Same(a, b *ir.Plan) bool {
	return a.Dim == b.Dim && len(a.Outputs) == len(b.Outputs) &&
		slices.EqualFunc(a.Buffers, b.Buffers, func(x, y ir.Buffer) bool {
			return x.Kind == y.Kind && x.Elem == y.Elem && x.Len == y.Len && x.Slot == y.Slot &&
				slices.EqualFunc(x.Data, y.Data, sameNumber)
		}) && slices.EqualFunc(a.Prologue, b.Prologue, sameStep) && slices.EqualFunc(a.Steps, b.Steps, sameStep)
}

func sameNumber(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) }

func sameStep(a, b ir.Step) bool {
	return a.Kind == b.Kind && slices.Equal(a.Sizes, b.Sizes) && a.M == b.M && a.N == b.N && a.K == b.K &&
		sameMatrix(a.Out, b.Out) && sameMatrix(a.A, b.A) && sameMatrix(a.B, b.B) &&
		a.Upper == b.Upper && a.Unit == b.Unit && a.Right == b.Right && a.Product == b.Product &&
		a.Times == b.Times && slices.EqualFunc(a.Inner, b.Inner, sameStep) &&
		slices.EqualFunc(a.Body, b.Body, func(x, y ir.Instr) bool {
			return x.Op == y.Op && x.A == y.A && x.B == y.B && x.C == y.C && sameNumber(x.Num, y.Num) &&
				x.Dim == y.Dim && x.Limit == y.Limit && sameAddress(&x.At, &y.At)
		})
}

func sameMatrix(a, b ir.Matrix) bool {
	return a.Buf == b.Buf && a.Off == b.Off && a.Row == b.Row && a.Col == b.Col && a.Turn == b.Turn &&
		slices.Equal(a.Strides, b.Strides)
}

func sameAddress(a, b *ir.Address) bool {
	if (a.Index == nil) != (b.Index == nil) || a.Index != nil && !sameAddress(a.Index, b.Index) {
		return false
	}
	return a.Buf == b.Buf && a.Off == b.Off && a.Scale == b.Scale && a.Turn == b.Turn && slices.Equal(a.Strides, b.Strides)
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
