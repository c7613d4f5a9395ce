package torch

import (
	"errors"
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/internal/thread"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// Reductions, shapes, indexing and matrices of [Tensor].

// total is the type that elements are added in: their own, and int64 for booleans and whole numbers.
func total(t *ts.Tensor) gotch.DType {
	switch d := t.DType(); d {
	case gotch.Bool, gotch.Uint8, gotch.Int8, gotch.Int16, gotch.Int:
		return gotch.Int64
	default:
		return d
	}
}

// average is the type of a mean: that of the elements, and float64 for booleans and whole numbers.
func average(t *ts.Tensor) gotch.DType {
	if d := total(t); d != gotch.Int64 {
		return d
	}
	return gotch.Double
}

// at is a dimension counted from the front: some rules of vmap in libtorch 1.13 take −1 wrongly.
func (x Tensor) at(dim int) int {
	if dim < 0 {
		dim += len(x.Shape())
	}
	return dim
}

// Sum adds up the given dimensions, which go; without any, all elements, to shape [].
func (x Tensor) Sum(dims ...int) Tensor {
	switch {
	case x.isNumber() && len(dims) == 0:
		return x
	case len(dims) == 0:
		return wrap(x.t.MustSum(total(x.t), false))
	}
	t := x.T()
	return wrap(t.MustSumDimIntlist(Int64s(dims), false, total(t), false))
}

// Mean is the mean over the given dimensions, which go; without any, over all elements.
func (x Tensor) Mean(dims ...int) Tensor {
	switch {
	case x.isNumber() && len(dims) == 0:
		return x
	case len(dims) == 0:
		return wrap(x.t.MustMean(average(x.t), false))
	}
	t := x.T()
	return wrap(t.MustMeanDim(Int64s(dims), false, average(t), false))
}

// Std is the standard deviation, with n − 1 below, over the given dimensions, which go; without any, over all elements.
func (x Tensor) Std(dims ...int) Tensor {
	t := x.T()
	if d := average(t); d != t.DType() {
		t = t.MustTotype(d, false)
	}
	if len(dims) == 0 {
		return wrap(t.MustStd(true, false))
	}
	return wrap(t.MustStdDim(Int64s(dims), true, false, false))
}

// Prod is the product of all elements, of shape [].
func (x Tensor) Prod() Tensor {
	if x.isNumber() {
		return x
	}
	return wrap(x.t.MustProd(total(x.t), false))
}

// CumSum adds up from the start of a dimension to each of its elements.
func (x Tensor) CumSum(dim int) Tensor {
	t := x.T()
	return wrap(t.MustCumsum(int64(dim), total(t), false))
}

// LogSumExp is log Σ eˣ over the given dimensions, which go, without overflow; without any, over all elements.
func (x Tensor) LogSumExp(dims ...int) Tensor {
	t := x.T()
	if len(dims) == 0 {
		for i := range x.Shape() {
			dims = append(dims, i)
		}
	}
	return wrap(t.MustLogsumexp(Int64s(dims), false, false))
}

// Softmax is eˣ over its sum along a dimension.
func (x Tensor) Softmax(dim int) Tensor {
	t := x.T()
	return wrap(t.MustSoftmax(int64(dim), t.DType(), false))
}

// LogSoftmax is the logarithm of [Tensor.Softmax], without overflow.
func (x Tensor) LogSoftmax(dim int) Tensor {
	t := x.T()
	return wrap(t.MustLogSoftmax(int64(dim), t.DType(), false))
}

// MatMul is the matrix product: [n, m] times [m, k] is [n, k], [n, m] times [m] is [n], [m] times [m] a number. The
// dimensions before the last two are a batch and broadcast.
func (x Tensor) MatMul(y any) Tensor { return wrap(x.T().MustMatmul(Of(y).T(), false)) }

// Dot is the inner product of two vectors of shape [n].
func (x Tensor) Dot(y any) Tensor { return wrap(x.T().MustDot(Of(y).T(), false)) }

// Outer is the outer product of vectors of shape [n] and [m], a matrix of shape [n, m].
func (x Tensor) Outer(y any) Tensor { return wrap(x.T().MustOuter(Of(y).T(), false)) }

// Transpose swaps the last two dimensions.
func (x Tensor) Transpose() Tensor { return wrap(x.T().MustTranspose(-2, -1, false)) }

// Reshape is the same elements in another shape; one size may be −1, for what is left.
func (x Tensor) Reshape(shape ...int) Tensor { return wrap(x.T().MustReshape(Int64s(shape), false)) }

// Unsqueeze inserts a dimension of size 1 in front of the given one; −1 appends it.
func (x Tensor) Unsqueeze(dim int) Tensor { return wrap(x.T().MustUnsqueeze(int64(dim), false)) }

// Squeeze takes out the given dimension if its size is 1.
func (x Tensor) Squeeze(dim int) Tensor { return wrap(x.T().MustSqueezeDim(int64(dim), false)) }

// Expand broadcasts to a shape, without a copy; −1 keeps a size.
func (x Tensor) Expand(shape ...int) Tensor {
	return wrap(x.T().MustExpand(Int64s(shape), true, false))
}

// At is the part at the given indices of the first dimensions: of a matrix, At(i) is a row and At(i, j) an element of
// shape [].
func (x Tensor) At(indices ...int) Tensor {
	for _, i := range indices {
		x = wrap(x.T().MustSelect(0, int64(i), false))
	}
	return x
}

// Slice is the range from ≤ i < to of a dimension.
func (x Tensor) Slice(dim, from, to int) Tensor {
	if from < 0 || to < 0 {
		shape, d := x.Shape(), x.at(dim)
		if d < 0 || d >= len(shape) {
			panic(misuse("Slice: there is no dimension %d in shape %v", dim, shape))
		}
		if from < 0 {
			from += shape[d]
		}
		if to < 0 {
			to += shape[d]
		}
	}
	if from < 0 || to < from {
		panic(misuse("Slice: the range from %d to %d: the end must not lie before the start", from, to))
	}
	return wrap(x.T().MustNarrow(int64(dim), int64(from), int64(to-from), false))
}

// IndexSelect is the elements of a dimension at the given indices, a vector of whole numbers: groups.IndexSelect(0, of)
// has one row for each element of of. An index that is not from 0 to the size of the dimension − 1 is an error.
// One that is not whole is an error as in [Tensor.Take].
func (x Tensor) IndexSelect(dim int, indices any) Tensor {
	t, d, at := x.T(), x.at(dim), Of(indices).index("IndexSelect", x)
	out, err := t.IndexSelect(int64(d), at, false)
	if err != nil {
		panic(x.outside(err, d, at))
	}
	return wrap(out)
}

// Take looks up rows by index: for indices i of any shape it is x[i], of shape of i + x's shape without its first
// dimension. With more indices it is x[i, j, …], of the shape that the indices broadcast to + the dimensions that are
// left. Indices are whole numbers from 0; one that is too large is an error. So is one that is not whole, and NaN; of a
// tensor of float32 or float64 that is checked where no gradient is taken, and when a model is compiled.
func (x Tensor) Take(indices ...any) Tensor {
	var only Tensor
	if len(indices) > 0 {
		only = Of(indices[0])
	}
	keep := only.taken != nil && len(indices) == 1
	if keep {
		if known, ok := only.taken.of[x.t]; ok {
			return known
		}
	}
	shape := x.Shape()
	if len(indices) == 0 || len(indices) > len(shape) {
		panic(misuse("Take: %d indices for a tensor of shape %v; there must be from 1 to %d", len(indices), shape,
			len(shape)))
	}
	at, rows := wrap(only.index("Take", x)), shape[0]
	for d, i := range indices[1:] {
		n := shape[d+1]
		rows *= n
		next := wrap(Of(i).index("Take", x))
		at = Choose(next.Ge(n).T().MustLogicalOr(next.Lt(0).T(), false), rows, at.Mul(n).Add(next))
	}
	flat := wrap(x.T().MustReshape(Int64s(append([]int{rows}, shape[len(indices):]...)), false))
	part, err := flat.T().IndexSelect(0, at.index("Take", x).MustReshape([]int64{-1}, false), false)
	if err != nil {
		all := make([]*ts.Tensor, len(indices))
		for d, i := range indices {
			all[d] = Of(i).index("Take", x)
		}
		panic(x.outside(err, 0, all...))
	}
	out := wrap(part.MustReshape(Int64s(append(at.Shape(), shape[len(indices):]...)), false))
	if keep {
		only.taken.of[x.t] = out
	}
	return out
}

// Gather is, for each element of indices, the element of x with that index in the given dimension and the same indices
// in the others. Indices are as in [Tensor.Take].
func (x Tensor) Gather(dim int, indices any) Tensor {
	t, d, at := x.T(), x.at(dim), Of(indices).index("Gather", x)
	out, err := t.Gather(int64(d), at, false, false)
	if err != nil {
		panic(x.outside(err, d, at))
	}
	return wrap(out)
}

// outside is the error of an operation that looks x up at indices of the dimensions from dim on: it names the first
// index that is not in its dimension. If all indices are, or cannot be read, the error is as it was.
func (x Tensor) outside(err error, dim int, indices ...*ts.Tensor) error {
	var e *Error
	if !errors.As(err, &e) {
		return asPanic(err)
	}
	shape, shapeErr := Shape(x)
	for k, i := range indices {
		d := dim + k
		values, err := ToSlice[int](wrap(i))
		of, ofErr := Shape(wrap(i))
		if err != nil || ofErr != nil || shapeErr != nil || d < 0 || d >= len(shape) {
			break
		}
		for at, v := range values {
			if v < 0 || v >= shape[d] {
				e.Message = fmt.Sprintf("the index %d at element %d of shape %v is out of range: it must be from 0 to %d, since "+
					"dimension %d of shape %v has size %d", v, at, of, shape[d]-1, d, shape, shape[d])
				return e
			}
		}
	}
	return e
}

// index is a tensor of whole numbers, with which op looks y up.
func (x Tensor) index(op string, y Tensor) *ts.Tensor {
	if v, ok := x.Number(); ok && isFraction(v) {
		panic(y.fractional(op, x.T(), v, 0))
	}
	t := x.T()
	dtype := t.DType()
	if dtype == gotch.Int64 {
		return t
	}
	if total(t) == dtype && thread.Checks() {
		y.checkWhole(op, t)
	}
	return t.MustTotype(gotch.Int64, false)
}

// checkWhole makes sure that indices of a type with fractions are whole numbers. Those that differ between the
// evaluations of a vmap cannot be read.
func (x Tensor) checkWhole(op string, indices *ts.Tensor) {
	if d, err := indices.KelvinDescribe(); err != nil || d.Mapped {
		return
	}
	values, err := ToSlice[float64](wrap(indices))
	if err != nil {
		return
	}
	for at, v := range values {
		if isFraction(v) {
			panic(x.fractional(op, indices, v, at))
		}
	}
}

// isFraction says whether a number is none of the whole numbers.
func isFraction(v float64) bool { return v != math.Trunc(v) || math.IsInf(v, 0) }

// fractional is the error of an index that is no whole number.
func (x Tensor) fractional(op string, indices *ts.Tensor, v float64, at int) *Error {
	of := Must(Shape(wrap(indices)))
	e := &Error{Op: op, Message: fmt.Sprintf("the index %v at element %d of shape %v is not a whole number, "+
		"as an index must be", v, at, of)}
	for _, t := range []*ts.Tensor{x.T(), indices} {
		e.Operands = append(e.Operands, fmt.Sprintf("%v %v", Must(Shape(wrap(t))), t.DType()))
	}
	return e
}

// Diag is the diagonal of matrices, [..., n, n] to [..., n]. Of a vector [n] it is the matrix [n, n] with it.
func (x Tensor) Diag() Tensor {
	t := x.T()
	if len(x.Shape()) == 1 {
		return wrap(t.MustDiagEmbed(0, -2, -1, false))
	}
	return wrap(t.MustDiagonal(0, -2, -1, false))
}

// Cholesky is the lower triangular L of symmetric positive definite matrices x = L Lᵀ, of shape [..., n, n]. Where a
// matrix is not positive definite L is NaN: for a sampler such a point has density 0, which is not an error.
func (x Tensor) Cholesky() Tensor {
	l, info := x.T().MustLinalgCholeskyEx(false, false, false)
	failed := info.MustNe(scalar(0), false).MustUnsqueeze(-1, false).MustUnsqueeze(-1, false)
	return wrap(l.MustMaskedFill(failed, scalar(math.NaN()), false))
}

// SolveTriangular is the y with x y = b for triangular x of shape [n, n]; b has shape [n] or [n, k]. Only the upper or
// lower triangle of x is read.
func (x Tensor) SolveTriangular(b any, upper bool) Tensor {
	right := Of(b)
	if len(right.Shape()) == 1 {
		return x.SolveTriangular(right.Unsqueeze(-1), upper).Squeeze(-1)
	}
	return wrap(x.T().MustLinalgSolveTriangular(right.T(), upper, true, false, false))
}

// tensors are the operands of a function of several; numbers get the given shape.
func tensors(xs []any, shape ...int) []*ts.Tensor {
	var out []*ts.Tensor
	for _, x := range xs {
		switch v := x.(type) {
		case []Tensor:
			for _, y := range v {
				out = append(out, tensors([]any{y}, shape...)...)
			}
		case []*ts.Tensor:
			out = append(out, v...)
		default:
			y := Of(x)
			if y.isNumber() && len(shape) > 0 {
				y = y.Reshape(shape...)
			}
			out = append(out, y.T())
		}
	}
	return out
}

// Stack puts tensors of one shape behind each other along a new dimension. A slice of tensors is also an operand.
func Stack(dim int, xs ...any) Tensor { return wrap(ts.MustStack(tensors(xs), int64(dim))) }

// Cat joins tensors along a dimension that they have; the others must agree. A number counts as a tensor of shape [1],
// and a slice of tensors is also an operand.
func Cat(dim int, xs ...any) Tensor { return wrap(ts.MustCat(tensors(xs, 1), int64(dim))) }

// Zeros is a float64 tensor of zeros in main memory.
func Zeros(shape ...int) Tensor { return wrap(ts.MustZeros(Int64s(shape), gotch.Double, CPU)) }
