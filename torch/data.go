package torch

import (
	"fmt"
	"math"
	"runtime"
	"unsafe"

	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// Number is an element type that slices and tensors have in common.
type Number interface {
	float64 | float32 | int | int64 | int32 | uint8 | bool
}

// DTypeOf is the tensor type of a Go type.
func DTypeOf[T Number]() gotch.DType {
	var v T
	switch any(v).(type) {
	case float64:
		return gotch.Double
	case float32:
		return gotch.Float
	case int, int64:
		return gotch.Int64
	case int32:
		return gotch.Int
	case uint8:
		return gotch.Uint8
	default:
		return gotch.Bool
	}
}

// New copies data into a new tensor of the given shape, in main memory. Without a shape the tensor is a vector:
//
//	x := torch.New([]float64{1, 2, 3, 4}, 2, 2)
//
// It is for shapes that are right or wrong when the program is written, as regexp.MustCompile is for patterns: where
// the shape does not hold the data it panics with the error of [FromSlice], which [Do] and all functions that run a
// model return. For data that are read, use FromSlice.
func New[T Number](data []T, shape ...int) Tensor { return Must(FromSlice(data, shape...)) }

// FromSlice is [New] with an error in place of a panic.
func FromSlice[T Number](data []T, shape ...int) (Tensor, error) {
	return FromSliceOn(CPU, DTypeOf[T](), data, shape...)
}

// checkType refuses types whose tensors are more than their elements: to make a quantised tensor of plain numbers
// damages the memory of the process.
func checkType(dtype gotch.DType) error {
	if dtype >= gotch.Invalid && dtype <= gotch.Bool || dtype == gotch.BFloat16 {
		return nil // libtorch has an error of its own for Invalid
	}
	return misuse("tensors of the type %d are not made of numbers: use integers, floats, complex numbers or bool",
		int(dtype))
}

// FromSliceOn copies data into a new tensor of another type or on another device. Quantised types are an error.
func FromSliceOn[T Number](device gotch.Device, dtype gotch.DType, data []T, shape ...int) (Tensor, error) {
	if err := checkType(dtype); err != nil {
		return Tensor{}, err
	}
	shape, err := shapeFor(len(data), shape)
	if err != nil {
		return Tensor{}, err
	}
	t, err := ts.KelvinFromData(
		unsafe.Pointer(unsafe.SliceData(data)),
		int(DTypeOf[T]().CInt()),
		Int64s(shape),
		int(dtype.CInt()),
		deviceNumber(device),
	)
	runtime.KeepAlive(data)
	return from(t, err)
}

// Scalar is a float64 tensor of shape [] in main memory. [Of] keeps v a Go number, which costs no tensor.
func Scalar(v float64) Tensor { return New([]float64{v}, []int{}...) }

// Borrow returns a tensor over the memory of data, without a copy. The memory is pinned until libtorch no longer uses
// it; while it does, a change of the slice is a change of the tensor.
func Borrow[T Number](data []T, shape ...int) (Tensor, error) {
	shape, err := shapeFor(len(data), shape)
	if err != nil {
		return Tensor{}, err
	}
	if len(data) == 0 {
		return FromSlice(data, shape...)
	}
	var pin runtime.Pinner
	pin.Pin(unsafe.SliceData(data))
	return from(ts.KelvinBorrow(unsafe.Pointer(unsafe.SliceData(data)), int(DTypeOf[T]().CInt()), Int64s(shape),
		pin.Unpin))
}

// ToSlice copies the elements of t, in row-major order, into a new slice, converting type and device as needed.
func ToSlice[T Number](t Tensor) ([]T, error) {
	t = t.made() // a number becomes one tensor, not two
	n, err := Numel(t)
	if err != nil {
		return nil, err
	}
	dst := make([]T, n)
	return dst, CopyTo(dst, t)
}

// CopyTo copies the elements of t into dst, which must have exactly as many.
func CopyTo[T Number](dst []T, t Tensor) error {
	err := ts.KelvinRead(t.T(), unsafe.Pointer(unsafe.SliceData(dst)), int(DTypeOf[T]().CInt()), int64(len(dst)))
	runtime.KeepAlive(dst)
	return err
}

// CopyFrom overwrites the elements of t with those of src.
func CopyFrom[T Number](t Tensor, src []T) error {
	if t.t == nil {
		return misuse("CopyFrom: a Go number has no elements to overwrite: use Scalar")
	}
	err := ts.KelvinWrite(t.t, unsafe.Pointer(unsafe.SliceData(src)), int(DTypeOf[T]().CInt()), int64(len(src)))
	runtime.KeepAlive(src)
	return err
}

// View calls f with the elements of x themselves, without a copy. x must be contiguous, in main memory, and of type T.
// The slice must not be used after f returns. A tensor that is freed meanwhile, by f or by another goroutine, gives its
// memory back when f returns.
func View[T Number](x Tensor, f func(data []T) error) error {
	if f == nil {
		return errNoFunction
	}
	t := x.T()
	if err := ts.KelvinHold(t); err != nil {
		return err
	}
	defer ts.KelvinLet(t)
	p, err := ts.KelvinData(t, int(DTypeOf[T]().CInt()))
	if err != nil {
		return err
	}
	n, err := Numel(wrap(t))
	if err != nil {
		return err
	}
	if n == 0 {
		return f(nil)
	}
	return f(unsafe.Slice((*T)(p), n))
}

// Item is the value of a tensor with one element.
func Item(t Tensor) (float64, error) {
	if t.t == nil {
		return t.c, t.check()
	}
	return t.t.Float64Value(nil)
}

// Shape is the shape of t.
func Shape(t Tensor) ([]int, error) {
	if t.t == nil {
		return []int{}, nil
	}
	d, err := t.t.KelvinDescribe()
	return Ints(d.Shape), err
}

// Ints is a shape that gotch gave, as Kelvin has them.
func Ints(shape []int64) []int { return convert[int](shape) }

// Int64s is a shape as gotch takes them; nil stays nil.
func Int64s(shape []int) []int64 { return convert[int64](shape) }

func convert[To, From int | int64](in []From) []To {
	if in == nil {
		return nil
	}
	out := make([]To, len(in))
	for i, n := range in {
		out[i] = To(n)
	}
	return out
}

// Numel is the number of elements of t.
func Numel(t Tensor) (int, error) {
	shape, err := Shape(t)
	n := 1
	for _, s := range shape {
		n *= s
	}
	return n, err
}

// shapeFor checks that a shape holds n elements; none means a vector.
func shapeFor(n int, shape []int) ([]int, error) {
	if shape == nil {
		return []int{n}, nil
	}
	numel := 1
	for _, s := range shape {
		if s < 0 {
			return nil, misuse("shape %v has a negative size", shape)
		}
		if s > 0 && numel > math.MaxInt/s {
			return nil, misuse("shape %v holds more elements than there can be", shape)
		}
		numel *= s
	}
	if numel != n {
		return nil, misuse("shape %v holds %d elements, the slice has %d", shape, numel, n)
	}
	return shape, nil
}

// Term is one summand of [Combine].
type Term struct {
	Coeff  float64 // c
	Tensor Tensor  // x
}

// Combine returns Σ c_i x_i as a new tensor, in the order of the terms: one call for an update equation. The first term
// has the shape of the result; the others are broadcast to it.
func Combine(terms ...Term) (Tensor, error) {
	if len(terms) == 0 {
		return Tensor{}, fmt.Errorf("torch.Combine: there are no terms")
	}
	coeffs := make([]float64, len(terms))
	tensors := make([]*ts.Tensor, len(terms))
	for i, t := range terms {
		coeffs[i], tensors[i] = t.Coeff, t.Tensor.T()
	}
	return from(ts.KelvinCombine(coeffs, tensors))
}

// ValuesAndNorms reads K values, of shape [K] or [] for K = 1, and the Euclidean norms of the K rows of x, in one call.
func ValuesAndNorms(values, x Tensor, k int) (v, norms []float64, err error) {
	if k < 0 || k > mostChains {
		return nil, nil, misuse("%d values cannot be read: there must be from 0 to %d", k, mostChains)
	}
	out := make([]float64, 2*k)
	if err := ts.KelvinReadout(values.T(), x.T(), out); err != nil {
		return nil, nil, err
	}
	return out[:k:k], out[k:], nil
}

// Copy is a tensor with the same values and memory of its own, outside any autograd graph: a state that were part of
// one would carry all its predecessors along.
func Copy(t Tensor) (c Tensor, err error) {
	err = NoGrad(func() error {
		c, err = Combine(Term{Coeff: 1, Tensor: t})
		return err
	})
	return c, err
}
