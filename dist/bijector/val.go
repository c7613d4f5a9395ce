package bijector

import (
	"fmt"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// val is a number or a tensor. Arithmetic on numbers stays in Go, which saves tensor operations, and lets the same formula
// say where the ends of an interval go.
type val struct {
	c float64
	t *ts.Tensor // nil for a number
}

func num(c float64) val    { return val{c: c} }
func ten(t *ts.Tensor) val { return val{t: t} }

// param turns an argument of a constructor into a val.
func param(bijector, name string, x any) val {
	switch p := x.(type) {
	case float64:
		return num(p)
	case float32:
		return num(float64(p))
	case int:
		return num(float64(p))
	case int64:
		return num(float64(p))
	case *ts.Tensor:
		if p == nil {
			panic(&Error{bijector, name, "nil", "a number or a tensor is required"})
		}
		return ten(p)
	}
	panic(&Error{bijector, name, fmt.Sprintf("a %T", x), "a number or a *ts.Tensor is required"})
}

func (v val) isNum() bool { return v.t == nil }

// any is the value as a constructor takes it.
func (v val) any() any {
	if v.t != nil {
		return v.t
	}
	return v.c
}

// shape is the tensor's shape, nil for a number.
func (v val) shape() []int64 {
	if v.t == nil {
		return nil
	}
	return shapeOf(v.t)
}

func (v val) add(w val) val {
	switch {
	case v.isNum() && w.isNum():
		return num(v.c + w.c)
	case v.isNum():
		return w.add(v)
	case w.isNum() && w.c == 0:
		return v
	case w.isNum():
		return ten(v.t.MustAddScalar(ts.FloatScalar(w.c), false))
	}
	return ten(v.t.MustAdd(w.t, false))
}

func (v val) sub(w val) val {
	if v.isNum() || w.isNum() {
		return w.neg().add(v)
	}
	return ten(v.t.MustSub(w.t, false))
}

func (v val) mul(w val) val {
	switch {
	case v.isNum() && w.isNum():
		return num(v.c * w.c)
	case v.isNum():
		return w.mul(v)
	case w.isNum() && w.c == 1:
		return v
	case w.isNum():
		return ten(v.t.MustMulScalar(ts.FloatScalar(w.c), false))
	}
	return ten(v.t.MustMul(w.t, false))
}

func (v val) div(w val) val {
	switch {
	case v.isNum() && w.isNum():
		return num(v.c / w.c)
	case v.isNum():
		return ten(w.t.MustReciprocal(false)).mul(v)
	case w.isNum() && w.c == 1:
		return v
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
func (v val) exp() val {
	return v.apply(math.Exp, func(t *ts.Tensor) *ts.Tensor { return t.MustExp(false) })
}
func (v val) log() val {
	return v.apply(math.Log, func(t *ts.Tensor) *ts.Tensor { return t.MustLog(false) })
}
func (v val) abs() val {
	return v.apply(math.Abs, func(t *ts.Tensor) *ts.Tensor { return t.MustAbs(false) })
}
func (v val) expm1() val {
	return v.apply(math.Expm1, func(t *ts.Tensor) *ts.Tensor { return t.MustExpm1(false) })
}
func (v val) sigmoid() val {
	return v.apply(func(c float64) float64 { return 1 / (1 + math.Exp(-c)) }, func(t *ts.Tensor) *ts.Tensor { return t.MustSigmoid(false) })
}
func (v val) softplus() val {
	return v.apply(func(c float64) float64 { return max(c, 0) + math.Log1p(math.Exp(-math.Abs(c))) }, softplus)
}

// softplus is log(1 + e^x), exact to rounding at both ends. (libtorch's softplus is x from 20 on, and its logaddexp loses
// what is below 1e-16.)
func softplus(x *ts.Tensor) *ts.Tensor {
	return x.MustNeg(false).MustLogSigmoid(false).MustNeg(false)
}

// shapeOf is the shape of a tensor.
func shapeOf(t *ts.Tensor) []int64 { return torch.Must(torch.Shape(t)) }

// constant is a tensor of the type and on the device of another. Without a shape it is a single number.
func constant(like *ts.Tensor, data []float64, shape ...int64) *ts.Tensor {
	if shape == nil {
		shape = []int64{}
	}
	return torch.Must(torch.FromSliceOn(device(like), torch.Must(torch.DTypeOfTensor(like)), data, shape...))
}

// pick takes elements along the last dimension.
func pick(t *ts.Tensor, index []int64) *ts.Tensor {
	at := torch.Must(torch.FromSliceOn(device(t), torch.DTypeOf[int64](), index, int64(len(index))))
	return t.MustIndexSelect(int64(len(shapeOf(t))-1), at, false) // from the front: vmap of libtorch 1.13 takes −1 wrongly
}

// part is a stretch of the last dimension.
func part(t *ts.Tensor, from, length int64) *ts.Tensor { return t.MustNarrow(-1, from, length, false) }

// cat joins tensors along the last dimension.
func cat(parts ...*ts.Tensor) *ts.Tensor { return ts.MustCat(parts, -1) }

// cumsum sums along the last dimension.
func cumsum(t *ts.Tensor) *ts.Tensor { return t.MustCumsum(-1, t.DType(), false) }

// tails sums from each element of the last dimension to the last.
func tails(t *ts.Tensor) *ts.Tensor {
	return cumsum(t.MustFlip([]int64{-1}, false)).MustFlip([]int64{-1}, false)
}

// sumLast sums a tensor over its last n dimensions.
func sumLast(t *ts.Tensor, n int) *ts.Tensor {
	if n <= 0 {
		return t
	}
	dims := make([]int64, n)
	for i := range dims {
		dims[i] = int64(-1 - i)
	}
	return t.MustSumDimIntlist(dims, false, t.DType(), false)
}

// last is the last size of a shape, or a panic.
func last(bijector string, shape []int64) int64 {
	if len(shape) == 0 {
		panic(&Error{bijector, "", "a value of shape []", "it needs a last dimension, of a vector"})
	}
	return shape[len(shape)-1]
}

// resize changes the last size of a shape.
func resize(shape []int64, last ...int64) []int64 {
	return append(slices.Clone(shape[:len(shape)-1]), last...)
}

// square is the size of the matrices at the end of a shape, or a panic.
func square(bijector string, shape []int64) int64 {
	n := len(shape)
	if n < 2 || shape[n-1] != shape[n-2] {
		panic(&Error{bijector, "", fmt.Sprintf("a value of shape %v", shape), "its last two dimensions must be those of a square matrix"})
	}
	return shape[n-1]
}

// broadcast is the common shape of several, or a panic.
func broadcast(bijector string, shapes ...[]int64) []int64 {
	out := []int64{}
	for _, s := range shapes {
		for len(out) < len(s) {
			out = append([]int64{1}, out...)
		}
		for i, n := range s {
			at := len(out) - len(s) + i
			switch {
			case n == out[at] || n == 1:
			case out[at] == 1:
				out[at] = n
			default:
				panic(&Error{bijector, "", fmt.Sprintf("the shapes %v", shapes), "they do not broadcast to one shape"})
			}
		}
	}
	return out
}

// device is where a tensor lives.
func device(t *ts.Tensor) gotch.Device { return torch.Must(torch.DeviceOf(t)) }

// identity is the k x k identity matrix.
func identity(like *ts.Tensor, k int64) *ts.Tensor { return ts.MustEye(k, like.DType(), device(like)) }

// mask is a vector of booleans where another tensor lives.
func mask(like *ts.Tensor, data []bool) *ts.Tensor {
	return torch.Must(torch.FromSliceOn(device(like), gotch.Bool, data, int64(len(data))))
}
