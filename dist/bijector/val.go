package bijector

import (
	"fmt"
	"slices"

	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/dist/internal/operand"
	"github.com/kelvin-ppl/kelvin/torch"
)

// What the maps share. Parameters are numbers or tensors. Arithmetic on numbers stays in Go, which lets the same
// formula say where the ends of an interval go.

// param turns an argument of a constructor into a Tensor.
func param(bijector, name string, x any) torch.Tensor {
	v, found, allowed := operand.Of(x)
	if allowed != "" {
		panic(&Error{bijector, name, found, allowed})
	}
	return v
}

// constant is a tensor of the type and on the device of another. Without a shape it is a single number.
func constant(like torch.Tensor, data []float64, shape ...int) torch.Tensor {
	if shape == nil {
		shape = []int{}
	}
	return torch.Must(torch.FromSliceOn(device(like), torch.Must(torch.DTypeOfTensor(like)), data, shape...))
}

// pick takes elements along the last dimension.
func pick(t torch.Tensor, index []int) torch.Tensor {
	at := torch.Must(torch.FromSliceOn(device(t), torch.DTypeOf[int](), index, len(index)))
	// from the front: vmap of libtorch 1.13 takes −1 wrongly
	return torch.Of(t.T().MustIndexSelect(int64(len(t.Shape())-1), at.T(), false))
}

// part is a stretch of the last dimension.
func part(t torch.Tensor, from, length int) torch.Tensor {
	return torch.Of(t.T().MustNarrow(-1, int64(from), int64(length), false))
}

// cat joins tensors along the last dimension.
func cat(parts ...torch.Tensor) torch.Tensor { return torch.Cat(-1, parts) }

// cumsum sums along the last dimension.
func cumsum(t torch.Tensor) torch.Tensor { return torch.Of(t.T().MustCumsum(-1, t.T().DType(), false)) }

// tails sums from each element of the last dimension to the last.
func tails(t torch.Tensor) torch.Tensor {
	return torch.Of(cumsum(torch.Of(t.T().MustFlip([]int64{-1}, false))).T().MustFlip([]int64{-1}, false))
}

// last is the last size of a shape, or a panic.
func last(bijector string, shape []int) int {
	if len(shape) == 0 {
		panic(&Error{bijector, "", "a value of shape []", "it needs a last dimension, of a vector"})
	}
	return shape[len(shape)-1]
}

// resize changes the last size of a shape.
func resize(shape []int, last ...int) []int {
	return append(slices.Clone(shape[:len(shape)-1]), last...)
}

// square is the size of the matrices at the end of a shape, or a panic.
func square(bijector string, shape []int) int {
	n := len(shape)
	if n < 2 || shape[n-1] != shape[n-2] {
		panic(&Error{bijector, "", fmt.Sprintf("a value of shape %v", shape),
			"its last two dimensions must be those of a square matrix"})
	}
	return shape[n-1]
}

// broadcast is the common shape of several, or a panic.
func broadcast(bijector string, shapes ...[]int) []int {
	out, ok := operand.Broadcast(shapes...)
	if !ok {
		panic(&Error{bijector, "", fmt.Sprintf("the shapes %v", shapes), "they do not broadcast to one shape"})
	}
	return out
}

// device is where a tensor lives.
func device(t torch.Tensor) gotch.Device { return torch.Must(torch.DeviceOf(t)) }

// identity is the k x k identity matrix.
func identity(like torch.Tensor, k int) torch.Tensor {
	return torch.Of(ts.MustEye(int64(k), like.T().DType(), device(like)))
}

// mask is a vector of booleans where another tensor lives.
func mask(like torch.Tensor, data []bool) torch.Tensor {
	return torch.Must(torch.FromSliceOn(device(like), gotch.Bool, data, len(data)))
}
