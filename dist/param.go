package dist

import (
	"fmt"

	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/torch"
)

// Parameters and what the families do to tensors.

// param turns an argument of a constructor into a Tensor: a Go number or a tensor.
func param(family, name string, x any) torch.Tensor {
	switch p := x.(type) {
	case float64, int, int64, float32:
		return torch.Of(p)
	case *ts.Tensor:
		if p == nil {
			panic(&Error{Distribution: family, Parameter: name, Value: "nil", Allowed: "a number or a tensor is required"})
		}
		return floating(torch.Of(p))
	case torch.Tensor:
		if isNum(p) {
			return p
		}
		// Of whole numbers too: arithmetic of integer tensors would round to integers or float32.
		return floating(p)
	}
	panic(&Error{Distribution: family, Parameter: name, Value: fmt.Sprintf("a %T", x),
		Allowed: "a number, a torch.Tensor or a *ts.Tensor is required"})
}

// isNum says whether a parameter is a Go number, and is whether it is that one.
func isNum(v torch.Tensor) bool {
	_, ok := v.Number()
	return ok
}

func is(v torch.Tensor, c float64) bool {
	n, ok := v.Number()
	return ok && n == c
}

// numberOf is the number that a parameter is, and 0 for a tensor.
func numberOf(v torch.Tensor) float64 {
	n, _ := v.Number()
	return n
}

// dense is a value as a tensor: comparisons of numbers would be no masks.
func dense(v torch.Tensor) torch.Tensor { return torch.Of(v.T()) }

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
func expandTo(t torch.Tensor, shape []int64) torch.Tensor { return t.Expand(shape...) }

// sumLast sums a tensor over its last n dimensions.
func sumLast(t torch.Tensor, n int) torch.Tensor {
	if n == 0 {
		return t
	}
	dims := make([]int64, n)
	for i := range dims {
		dims[i] = int64(-1 - i)
	}
	return torch.Of(t.T().MustSumDimIntlist(dims, false, t.T().DType(), false))
}

// join concatenates shapes.
func join(shapes ...[]int64) []int64 {
	out := []int64{}
	for _, s := range shapes {
		out = append(out, s...)
	}
	return out
}
