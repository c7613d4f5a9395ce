// Package operand is what distributions, bijectors and supports do with their parameters, which are Go numbers or
// tensors.
package operand

import (
	"fmt"
	"slices"

	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// Of is an argument of a constructor as a Tensor. Where it is neither a number nor a tensor, found says what it is and
// allowed what is asked for; allowed is empty otherwise.
func Of(x any) (v torch.Tensor, found, allowed string) {
	switch p := x.(type) {
	case float64, float32, int, int64, torch.Tensor:
		return torch.Of(p), "", ""
	case *ts.Tensor:
		if p == nil {
			return v, "nil", "a number or a tensor is required"
		}
		return torch.Of(p), "", ""
	}
	return v, fmt.Sprintf("a %T", x), "a number, a torch.Tensor or a *ts.Tensor is required"
}

// IsNumber says whether a value is a Go number.
func IsNumber(v torch.Tensor) bool {
	_, ok := v.Number()
	return ok
}

// Number is the number that a value is, and 0 for a tensor.
func Number(v torch.Tensor) float64 {
	n, _ := v.Number()
	return n
}

// SumLast sums a tensor over its last n dimensions.
func SumLast(t torch.Tensor, n int) torch.Tensor {
	if n <= 0 {
		return t
	}
	dims := make([]int, n)
	for i := range dims {
		dims[i] = -1 - i
	}
	return torch.Of(t.T().MustSumDimIntlist(torch.Int64s(dims), false, t.T().DType(), false))
}

// Broadcast is the common shape of several; not ok says that they have none.
func Broadcast(shapes ...[]int) (out []int, ok bool) {
	out = []int{}
	for _, s := range shapes {
		if missing := len(s) - len(out); missing > 0 {
			out = append(slices.Repeat([]int{1}, missing), out...)
		}
		for i, n := range s {
			at := len(out) - len(s) + i
			switch {
			case n == out[at] || n == 1:
			case out[at] == 1:
				out[at] = n
			default:
				return nil, false
			}
		}
	}
	return out, true
}
