package dist

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// val is a number or a tensor. Arithmetic on numbers stays in Go, so that a constant parameter costs no tensor operation.
type val struct {
	c float64
	t *ts.Tensor // nil for a number
}

func num(c float64) val         { return val{c: c} }
func ten(t *ts.Tensor) val      { return val{t: t} }
func (v val) isNum() bool       { return v.t == nil }
func (v val) is(c float64) bool { return v.t == nil && v.c == c }

// param turns an argument of a constructor into a val: a Go number or a tensor.
func param(family, name string, x any) val {
	switch p := x.(type) {
	case float64:
		return num(p)
	case int:
		return num(float64(p))
	case int64:
		return num(float64(p))
	case float32:
		return num(float64(p))
	case *ts.Tensor:
		if p == nil {
			panic(&Error{family, name, "nil", "a number or a tensor is required"})
		}
		// Of whole numbers too: arithmetic of integer tensors would round to integers or float32.
		return ten(floating(p))
	case val:
		return p
	}
	panic(&Error{family, name, fmt.Sprintf("a %T", x), "a number or a *ts.Tensor is required"})
}

// shape is the tensor's shape, [] for a number.
func (v val) shape() []int64 {
	if v.t == nil {
		return nil
	}
	return torch.Must(torch.Shape(v.t))
}

// tensor is the value as a tensor of the given type where it is a number.
func (v val) tensor() *ts.Tensor {
	if v.t != nil {
		return v.t
	}
	return torch.Must(torch.Scalar(v.c))
}

// any is the value as a constructor takes it.
func (v val) any() any {
	if v.t != nil {
		return v.t
	}
	return v.c
}

func (v val) add(w val) val {
	switch {
	case v.isNum() && w.isNum():
		return num(v.c + w.c)
	case v.is(0):
		return w
	case w.is(0):
		return v
	case v.isNum():
		return ten(w.t.MustAddScalar(ts.FloatScalar(v.c), false))
	case w.isNum():
		return ten(v.t.MustAddScalar(ts.FloatScalar(w.c), false))
	}
	return ten(v.t.MustAdd(w.t, false))
}

func (v val) sub(w val) val {
	switch {
	case v.isNum() && w.isNum():
		return num(v.c - w.c)
	case w.is(0):
		return v
	case v.isNum():
		return w.neg().add(v)
	case w.isNum():
		return ten(v.t.MustSubScalar(ts.FloatScalar(w.c), false))
	}
	return ten(v.t.MustSub(w.t, false))
}

func (v val) mul(w val) val {
	switch {
	case v.isNum() && w.isNum():
		return num(v.c * w.c)
	case v.is(1):
		return w
	case w.is(1):
		return v
	case v.isNum():
		return ten(w.t.MustMulScalar(ts.FloatScalar(v.c), false))
	case w.isNum():
		return ten(v.t.MustMulScalar(ts.FloatScalar(w.c), false))
	}
	return ten(v.t.MustMul(w.t, false))
}

func (v val) div(w val) val {
	switch {
	case v.isNum() && w.isNum():
		return num(v.c / w.c)
	case w.is(1):
		return v
	case v.isNum():
		return w.recip().mul(v)
	case w.isNum():
		return ten(v.t.MustDivScalar(ts.FloatScalar(w.c), false))
	}
	return ten(v.t.MustDiv(w.t, false))
}

// apply is a function of one argument, in Go for a number.
func (v val) apply(f func(float64) float64, g func(t *ts.Tensor) *ts.Tensor) val {
	if v.isNum() {
		return num(f(v.c))
	}
	return ten(g(v.t))
}

func (v val) neg() val {
	return v.apply(func(c float64) float64 { return -c }, func(t *ts.Tensor) *ts.Tensor { return t.MustNeg(false) })
}
func (v val) recip() val {
	return v.apply(func(c float64) float64 { return 1 / c }, func(t *ts.Tensor) *ts.Tensor { return t.MustReciprocal(false) })
}
func (v val) log() val {
	return v.apply(math.Log, func(t *ts.Tensor) *ts.Tensor { return t.MustLog(false) })
}
func (v val) log1p() val {
	return v.apply(math.Log1p, func(t *ts.Tensor) *ts.Tensor { return t.MustLog1p(false) })
}
func (v val) exp() val {
	return v.apply(math.Exp, func(t *ts.Tensor) *ts.Tensor { return t.MustExp(false) })
}
func (v val) sqrt() val {
	return v.apply(math.Sqrt, func(t *ts.Tensor) *ts.Tensor { return t.MustSqrt(false) })
}
func (v val) square() val {
	return v.apply(func(c float64) float64 { return c * c }, func(t *ts.Tensor) *ts.Tensor { return t.MustSquare(false) })
}
func (v val) abs() val {
	return v.apply(math.Abs, func(t *ts.Tensor) *ts.Tensor { return t.MustAbs(false) })
}
func (v val) lgamma() val {
	return v.apply(func(c float64) float64 { l, _ := math.Lgamma(c); return l }, func(t *ts.Tensor) *ts.Tensor { return t.MustLgamma(false) })
}

// broadcast is the common shape of several, or a panic that names the family and the shapes.
func broadcast(family string, shapes ...[]int64) []int64 {
	var out []int64
	for _, s := range shapes {
		if len(s) > len(out) {
			out = append(make([]int64, len(s)-len(out)), out...)
			for i := range out {
				out[i] = max(out[i], 1)
			}
		}
	}
	for i := range out {
		out[i] = 1
	}
	for _, s := range shapes {
		for i, n := range s {
			at := len(out) - len(s) + i
			switch {
			case n == out[at] || n == 1:
			case out[at] == 1:
				out[at] = n
			default:
				panic(&Error{family, "", fmt.Sprintf("the shapes %v", shapes), "they do not broadcast to one shape"})
			}
		}
	}
	return out
}

// expandTo broadcasts a tensor to a shape; it is a view.
func expandTo(t *ts.Tensor, shape []int64) *ts.Tensor { return t.MustExpand(shape, true, false) }

// sumLast sums a tensor over its last n dimensions.
func sumLast(t *ts.Tensor, n int) *ts.Tensor {
	if n == 0 {
		return t
	}
	dims := make([]int64, n)
	for i := range dims {
		dims[i] = int64(-1 - i)
	}
	return t.MustSumDimIntlist(dims, false, t.DType(), false)
}

// join concatenates shapes.
func join(shapes ...[]int64) []int64 {
	out := []int64{}
	for _, s := range shapes {
		out = append(out, s...)
	}
	return out
}
