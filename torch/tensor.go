package torch

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// Tensor is a number or a gotch tensor, with arithmetic that reads like the formula:
//
//	y.Sub(x.Mul(b).Add(a)).Div(logS.Exp()).Square().Sum().Mul(-0.5)
//
// Arguments of type any are a Tensor, a *ts.Tensor, a float64, an int, an int64 or a float32. Shapes broadcast as in
// libtorch. Arithmetic on numbers stays in Go, so that a constant costs no tensor operation. Tensors of int32 and int64
// are float64 beside a number. Dimensions and indices may be negative; they then count from the end.
//
// Methods panic with the typed error of the operation, which names the line that asked for it. [Do], the gradients and
// all functions that run a model return that error. The zero value is a field that was not set, or what a map has not:
// it is an error as an operand, but for what [Tensor.Add] adds to.
type Tensor struct {
	c float64
	t *ts.Tensor // nil for a number
	// given tells a number from the zero value: a field that nobody set is Tensor{}, also where 0 has a meaning.
	given bool

	taken *lookUps // nil where they are not kept
}

// lookUps are what Take has looked up with a tensor as its only index, by table.
type lookUps struct{ of map[*ts.Tensor]Tensor }

// Of is x as a Tensor: a Go number, a gotch tensor or a Tensor. Anything else panics with an error that names its type.
func Of(x any) Tensor {
	switch v := x.(type) {
	case Tensor:
		return v
	case *ts.Tensor:
		if v != nil {
			return Tensor{t: v}
		}
	case float64:
		return number(v)
	case int:
		return number(float64(v))
	case int64:
		return number(float64(v))
	case float32:
		return number(float64(v))
	}
	what := fmt.Sprintf("a %T", x)
	if _, ok := x.(*ts.Tensor); ok {
		what = "a *ts.Tensor that is nil"
	}
	panic(misuse("%s is no operand: a number, a torch.Tensor or a *ts.Tensor is required", what))
}

// Remembered is x as an index that many parts of one computation share: [Tensor.Take] with it looks each table up once,
// and then gives the same tensor again. The tables must not be changed in place meanwhile. It belongs to one goroutine.
func (x Tensor) Remembered() Tensor {
	x.taken = &lookUps{of: map[*ts.Tensor]Tensor{}}
	return x
}

// T is the gotch tensor, nil of the zero value; a number becomes a tensor of shape [] and type float64, a new one at
// each call.
func (x Tensor) T() *ts.Tensor {
	if x.t == nil && x.given {
		return Scalar(x.c).t
	}
	return x.t
}

// Number is the value of a Tensor that is a Go number, and false for one that is a gotch tensor.
func (x Tensor) Number() (v float64, ok bool) { return x.c, x.t == nil }

// Shape is the shape; [] for a number.
func (x Tensor) Shape() []int {
	if x.t == nil {
		return []int{}
	}
	return Must(Shape(x))
}

// Numel is the number of elements.
func (x Tensor) Numel() int {
	if x.t == nil {
		return 1
	}
	return Must(Numel(x))
}

// Item is the value of a Tensor with one element. Inside vmap no value can be read, so models cannot use it.
func (x Tensor) Item() float64 {
	if x.isNumber() {
		return x.c
	}
	return Must(Item(x))
}

// Values are the elements, in row-major order. Inside vmap no value can be read, so models cannot use it.
func (x Tensor) Values() []float64 {
	if x.isNumber() {
		return []float64{x.c}
	}
	return Must(ToSlice[float64](x))
}

// String is the number, or type and shape of the tensor.
func (x Tensor) String() string {
	if x.t == nil {
		return fmt.Sprint(x.c)
	}
	d, err := x.t.KelvinDescribe()
	if err != nil {
		return "freed"
	}
	return fmt.Sprintf("%v %v", d.Shape, x.t.DType())
}

// isNumber says whether an operand is a Go number.
func (x Tensor) isNumber() bool {
	if x.t != nil {
		return false
	}
	Must(0, x.check())
	return true
}

func (x Tensor) unset() bool { return x.t == nil && !x.given }

// check is an error of the zero value.
func (x Tensor) check() error {
	if x.unset() {
		return errUnset
	}
	return nil
}

var errUnset = misuse("an operand is torch.Tensor{}: it was never made, or a batch has no tensor of that name")

func (x Tensor) is(c float64) bool { return x.isNumber() && x.c == c }

func number(c float64) Tensor { return Tensor{c: c, given: true} }

func wrap(t *ts.Tensor) Tensor { return Tensor{t: t} }

// from is what an operation of gotch returned; the zero value beside an error.
func from(t *ts.Tensor, err error) (Tensor, error) { return Tensor{t: t}, err }

func wrapAll(tensors []*ts.Tensor) []Tensor {
	out := make([]Tensor, len(tensors))
	for i, t := range tensors {
		out[i] = wrap(t)
	}
	return out
}

func pointers(xs []Tensor) []*ts.Tensor {
	if xs == nil {
		return nil
	}
	out := make([]*ts.Tensor, len(xs))
	for i, x := range xs {
		out[i] = x.T()
	}
	return out
}

// made is x as a gotch tensor, also where it was a number.
func (x Tensor) made() Tensor { return wrap(x.T()) }

func scalar(c float64) *ts.Scalar { return ts.FloatScalar(c) }

// beside is the tensor for an operation with a number: whole numbers of 32 and 64 bits as float64. Libtorch makes
// float32 of them there, whose 24 bits do not hold a time in seconds. Booleans are float32, as in its sums; it has no
// differences of them.
func (x Tensor) beside() *ts.Tensor {
	if x.t.KelvinFreed() {
		return x.t
	}
	switch x.t.DType() {
	case gotch.Int64, gotch.Int:
		return x.t.MustTotype(gotch.Double, false)
	case gotch.Bool:
		return x.t.MustTotype(gotch.Float, false)
	}
	return x.t
}

// Add is x + y. The zero value is 0 here, so that a sum may begin with var sum Tensor.
func (x Tensor) Add(y any) Tensor {
	w := Of(y)
	x.given = true
	switch {
	case x.isNumber() && w.isNumber():
		return number(x.c + w.c)
	case x.is(0):
		return w
	case w.is(0):
		return x
	case x.isNumber():
		return wrap(w.beside().MustAddScalar(scalar(x.c), false))
	case w.isNumber():
		return wrap(x.beside().MustAddScalar(scalar(w.c), false))
	}
	return wrap(x.t.MustAdd(w.t, false))
}

// Sub is x − y.
func (x Tensor) Sub(y any) Tensor {
	w := Of(y)
	switch {
	case x.isNumber() && w.isNumber():
		return number(x.c - w.c)
	case w.is(0):
		return x
	case x.is(0):
		return w.Neg()
	case x.isNumber():
		return wrap(w.beside().MustRsubScalar(scalar(x.c), false))
	case w.isNumber():
		return wrap(x.beside().MustSubScalar(scalar(w.c), false))
	}
	return wrap(x.t.MustSub(w.t, false))
}

// Mul is the product x y of the elements.
func (x Tensor) Mul(y any) Tensor {
	w := Of(y)
	switch {
	case x.isNumber() && w.isNumber():
		return number(x.c * w.c)
	case x.is(1):
		return w
	case w.is(1):
		return x
	case x.isNumber():
		return wrap(w.beside().MustMulScalar(scalar(x.c), false))
	case w.isNumber():
		return wrap(x.beside().MustMulScalar(scalar(w.c), false))
	}
	return wrap(x.t.MustMul(w.t, false))
}

// Div is the quotient x / y of the elements.
func (x Tensor) Div(y any) Tensor {
	w := Of(y)
	switch {
	case x.isNumber() && w.isNumber():
		return number(x.c / w.c)
	case w.is(1):
		return x
	case x.isNumber():
		return w.Reciprocal().Mul(x)
	case w.isNumber():
		return wrap(x.beside().MustDivScalar(scalar(w.c), false))
	}
	return wrap(x.t.MustDiv(w.t, false))
}

// Pow is x to the power y.
func (x Tensor) Pow(y any) Tensor {
	w := Of(y)
	switch {
	case x.isNumber() && w.isNumber():
		return number(math.Pow(x.c, w.c))
	case w.is(1):
		return x
	case w.isNumber():
		return wrap(x.beside().MustPowTensorScalar(scalar(w.c), false))
	case x.isNumber():
		return wrap(ts.MustPowScalar(scalar(x.c), w.beside()))
	}
	return wrap(x.t.MustPow(w.t, false))
}

// Min is the smaller of x and y, element by element. The gradient is that of the one taken, also where the other is
// infinite or has an infinite derivative, as [Where] has it; [Tensor.AtMost] leaves that out. Where they are equal,
// each of two tensors has half the derivative; beside a number, x has 1 or 0 of it, as libtorch's version has it: a
// formula should not take such a place.
func (x Tensor) Min(y any) Tensor {
	w := Of(y)
	guard(x, w)
	return x.AtMost(w)
}

// Max is the larger of x and y, element by element, with derivatives as those of Min; [Tensor.AtLeast] is faster.
func (x Tensor) Max(y any) Tensor {
	w := Of(y)
	guard(x, w)
	return x.AtLeast(w)
}

// AtMost is [Tensor.Min] of finite values and derivatives: as with [Choose], the gradient of what is not taken is 0
// times its derivative.
func (x Tensor) AtMost(y any) Tensor {
	w := Of(y)
	switch {
	case x.isNumber() && w.isNumber():
		return number(math.Min(x.c, w.c))
	case x.isNumber():
		return wrap(w.beside().MustClampMax(scalar(x.c), false))
	case w.isNumber():
		return wrap(x.beside().MustClampMax(scalar(w.c), false))
	}
	return wrap(x.t.MustMinimum(w.t, false))
}

// AtLeast is [Tensor.Max] of finite values and derivatives, as AtMost is Min.
func (x Tensor) AtLeast(y any) Tensor {
	w := Of(y)
	switch {
	case x.isNumber() && w.isNumber():
		return number(math.Max(x.c, w.c))
	case x.isNumber():
		return wrap(w.beside().MustClampMin(scalar(x.c), false))
	case w.isNumber():
		return wrap(x.beside().MustClampMin(scalar(w.c), false))
	}
	return wrap(x.t.MustMaximum(w.t, false))
}

// Clamp is x kept between low and high; outside, the gradient is 0, also where x is infinite, and at low and high as
// that of Min.
func (x Tensor) Clamp(low, high any) Tensor {
	l, h := Of(low), Of(high)
	guard(x)
	if !x.isNumber() && l.isNumber() && h.isNumber() {
		return wrap(x.beside().MustClamp(scalar(l.c), scalar(h.c), false))
	}
	return x.Max(l).Min(h)
}

// apply is a function of one argument, in Go for a number.
func (x Tensor) apply(f func(float64) float64, g func(t *ts.Tensor, del bool) *ts.Tensor) Tensor {
	if x.isNumber() {
		return number(f(x.c))
	}
	return wrap(g(x.t, false))
}

// Neg is −x.
func (x Tensor) Neg() Tensor {
	return x.apply(func(c float64) float64 { return -c }, (*ts.Tensor).MustNeg)
}

// Reciprocal is 1/x.
func (x Tensor) Reciprocal() Tensor {
	return x.apply(func(c float64) float64 { return 1 / c }, (*ts.Tensor).MustReciprocal)
}

// Exp is eˣ.
func (x Tensor) Exp() Tensor { return x.apply(math.Exp, (*ts.Tensor).MustExp) }

// Expm1 is eˣ − 1, exact for small x.
func (x Tensor) Expm1() Tensor { return x.apply(math.Expm1, (*ts.Tensor).MustExpm1) }

// Log is the natural logarithm.
func (x Tensor) Log() Tensor { return x.apply(math.Log, (*ts.Tensor).MustLog) }

// Log1p is log(1 + x), exact for small x.
func (x Tensor) Log1p() Tensor { return x.apply(math.Log1p, (*ts.Tensor).MustLog1p) }

// Sqrt is the square root.
func (x Tensor) Sqrt() Tensor { return x.apply(math.Sqrt, (*ts.Tensor).MustSqrt) }

// Square is x².
func (x Tensor) Square() Tensor {
	return x.apply(func(c float64) float64 { return c * c }, (*ts.Tensor).MustSquare)
}

// Abs is |x|.
func (x Tensor) Abs() Tensor { return x.apply(math.Abs, (*ts.Tensor).MustAbs) }

// Sigmoid is 1/(1 + e⁻ˣ).
func (x Tensor) Sigmoid() Tensor {
	return x.apply(func(c float64) float64 { return 1 / (1 + math.Exp(-c)) }, (*ts.Tensor).MustSigmoid)
}

// LogSigmoid is −log(1 + e⁻ˣ), exact to rounding at both ends.
func (x Tensor) LogSigmoid() Tensor {
	return x.apply(func(c float64) float64 { return math.Min(c, 0) - math.Log1p(math.Exp(-math.Abs(c))) },
		(*ts.Tensor).MustLogSigmoid)
}

// Softplus is log(1 + eˣ), exact to rounding at both ends. (libtorch's own softplus is x from 20 on.)
func (x Tensor) Softplus() Tensor { return x.Neg().LogSigmoid().Neg() }

// Tanh is the hyperbolic tangent.
func (x Tensor) Tanh() Tensor { return x.apply(math.Tanh, (*ts.Tensor).MustTanh) }

// Relu is max(x, 0). Its gradient is 0 where x is negative, also where x has an infinite derivative.
func (x Tensor) Relu() Tensor {
	guard(x)
	return x.apply(func(c float64) float64 { return math.Max(c, 0) }, (*ts.Tensor).MustRelu)
}

// Sin is the sine of x in radians.
func (x Tensor) Sin() Tensor { return x.apply(math.Sin, (*ts.Tensor).MustSin) }

// Cos is the cosine of x in radians.
func (x Tensor) Cos() Tensor { return x.apply(math.Cos, (*ts.Tensor).MustCos) }

// Lgamma is log |Γ(x)|.
func (x Tensor) Lgamma() Tensor {
	return x.apply(func(c float64) float64 { l, _ := math.Lgamma(c); return l }, (*ts.Tensor).MustLgamma)
}

// Digamma is the derivative of log Γ(x).
func (x Tensor) Digamma() Tensor {
	if x.isNumber() {
		return wrap(x.T().MustDigamma(false))
	}
	return wrap(x.t.MustDigamma(false))
}

// Erf is the error function.
func (x Tensor) Erf() Tensor { return x.apply(math.Erf, (*ts.Tensor).MustErf) }

// Erfc is the complementary error function 1 − Erf(x), exact for large x.
func (x Tensor) Erfc() Tensor { return x.apply(math.Erfc, (*ts.Tensor).MustErfc) }

// compare is a comparison: of two numbers it is the number 1 or 0, else a tensor of booleans.
func (x Tensor) compare(
	y any,
	f func(a, b float64) bool,
	swapped, byNumber func(*ts.Tensor, *ts.Scalar, bool) *ts.Tensor,
	byTensor func(*ts.Tensor, *ts.Tensor, bool) *ts.Tensor,
) Tensor {
	w := Of(y)
	switch {
	case x.isNumber() && w.isNumber():
		if f(x.c, w.c) {
			return number(1)
		}
		return number(0)
	case x.isNumber():
		return wrap(swapped(w.beside(), scalar(x.c), false))
	case w.isNumber():
		return wrap(byNumber(x.beside(), scalar(w.c), false))
	}
	return wrap(byTensor(x.t, w.t, false))
}

// Gt is x > y, for [Where]: a tensor of booleans; of two numbers 1 or 0.
func (x Tensor) Gt(y any) Tensor {
	return x.compare(y, func(a, b float64) bool { return a > b },
		(*ts.Tensor).MustLt, (*ts.Tensor).MustGt, (*ts.Tensor).MustGtTensor)
}

// Lt is x < y; see [Tensor.Gt].
func (x Tensor) Lt(y any) Tensor {
	return x.compare(y, func(a, b float64) bool { return a < b },
		(*ts.Tensor).MustGt, (*ts.Tensor).MustLt, (*ts.Tensor).MustLtTensor)
}

// Ge is x ≥ y; see [Tensor.Gt].
func (x Tensor) Ge(y any) Tensor {
	return x.compare(y, func(a, b float64) bool { return a >= b },
		(*ts.Tensor).MustLe, (*ts.Tensor).MustGe, (*ts.Tensor).MustGeTensor)
}

// Le is x ≤ y; see [Tensor.Gt].
func (x Tensor) Le(y any) Tensor {
	return x.compare(y, func(a, b float64) bool { return a <= b },
		(*ts.Tensor).MustGe, (*ts.Tensor).MustLe, (*ts.Tensor).MustLeTensor)
}

// Eq is x = y; see [Tensor.Gt].
func (x Tensor) Eq(y any) Tensor {
	return x.compare(y, func(a, b float64) bool { return a == b },
		(*ts.Tensor).MustEq, (*ts.Tensor).MustEq, (*ts.Tensor).MustEqTensor)
}

// Where is a where the condition holds, else b. Its gradient is that of the branch taken, also where the other's is
// infinite or NaN, as that of sqrt(x) below 0, of 1/x at 0 or of an exponential that overflows: on the way back through
// functions of single elements a gradient of 0 stays 0. Through others, such as products of matrices, LogSumExp and
// factorisations, 0 times infinity is NaN as ever: give these arguments that they can bear. Derivatives of any order
// are so. What a branch was computed from takes four more operations for each such function, backward: [Choose] saves
// them.
func Where(condition, a, b any) Tensor {
	x, y := Of(a), Of(b)
	if cond := Of(condition); !cond.isNumber() {
		guard(x, y)
	}
	return Choose(condition, x, y)
}

// guard makes gradients of 0 stay 0 on the way back through what branches were computed from.
func guard(branches ...Tensor) {
	for _, b := range branches {
		if b.t != nil {
			Must(0, ts.KelvinGuard(b.t))
		}
	}
}

// Choose is [Where] of branches whose derivatives are finite where they are not taken too: their gradient there is 0
// times the derivative.
func Choose(condition, a, b any) Tensor {
	cond, x, y := Of(condition), Of(a), Of(b)
	if cond.isNumber() {
		if cond.c != 0 {
			return x
		}
		return y
	}
	var out *ts.Tensor
	var err error
	switch {
	case x.isNumber() && y.isNumber():
		out, err = ts.WhereScalarself(cond.t, scalar(x.c), y.T())
	case x.isNumber():
		out, err = ts.WhereScalarself(cond.t, scalar(x.c), y.beside())
	case y.isNumber():
		out, err = x.beside().WhereScalarother(cond.t, scalar(y.c), false)
	default:
		out, err = x.t.WhereSelf(cond.t, y.t, false)
	}
	if err != nil {
		panic(noCondition(err, cond.t))
	}
	return wrap(out)
}

// noCondition is the error of Where; of a condition that is not of booleans it says what to do.
func noCondition(err error, condition *ts.Tensor) error {
	var e *Error
	if !errors.As(err, &e) || !strings.Contains(e.Message, "boolean") {
		return asPanic(err)
	}
	if dtype, err := DTypeOfTensor(wrap(condition)); err == nil && dtype != gotch.Bool {
		e.Message = fmt.Sprintf("the condition is of type %v, and must be of booleans: compare, as in d.Gt(0) or d.Eq(1)",
			dtype)
	}
	return e
}
