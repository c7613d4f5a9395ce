package dist

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/dist/internal/operand"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Parameters and what the families do to tensors.

// param turns an argument of a constructor into a Tensor: a Go number, or a tensor of floating-point numbers, since
// arithmetic of integer tensors would round to integers or float32.
func param(family, name string, x any) torch.Tensor {
	v, found, allowed := operand.Of(x)
	if allowed != "" {
		panic(&Error{Distribution: family, Parameter: name, Value: found, Allowed: allowed})
	}
	if operand.IsNumber(v) {
		return v
	}
	return floating(v)
}

// is says whether a parameter is a certain Go number.
func is(v torch.Tensor, c float64) bool {
	n, ok := v.Number()
	return ok && n == c
}

// dense is a value as a tensor: comparisons of numbers would be no masks.
func dense(v torch.Tensor) torch.Tensor { return torch.Of(v.T()) }

// broadcast is the common shape of several, or a panic that names the family and the shapes.
func broadcast(family string, shapes ...[]int64) []int64 {
	out, ok := operand.Broadcast(shapes...)
	if !ok {
		panic(&Error{family, "", fmt.Sprintf("the shapes %v", shapes), "they do not broadcast to one shape"})
	}
	return out
}

// expandTo broadcasts a tensor to a shape; it is a view.
func expandTo(t torch.Tensor, shape []int64) torch.Tensor { return t.Expand(shape...) }

// join concatenates shapes.
func join(shapes ...[]int64) []int64 {
	out := []int64{}
	for _, s := range shapes {
		out = append(out, s...)
	}
	return out
}
