package torch

import (
	"fmt"

	"github.com/sugarme/gotch/ts"
)

// Tensor is a number or a gotch tensor, with arithmetic that reads like the formula. Arithmetic on numbers stays in Go.
// Its methods panic with the typed error of the operation, which [Do], the gradients and all functions that run a model
// return. The zero value is the number 0.
type Tensor struct {
	c float64
	t *ts.Tensor // nil for a number
}

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
		return Tensor{c: v}
	case int:
		return Tensor{c: float64(v)}
	case int64:
		return Tensor{c: float64(v)}
	case float32:
		return Tensor{c: float64(v)}
	}
	return Must(Tensor{}, fmt.Errorf("torch.Of: a %T, expected a number, a torch.Tensor or a *ts.Tensor that is not nil", x))
}

// T is the gotch tensor; a number becomes a tensor of shape [].
func (x Tensor) T() *ts.Tensor {
	if x.t == nil {
		return Must(Scalar(x.c))
	}
	return x.t
}
