// Package raw is the border between [torch.Tensor] and the tensors of gotch where there are several at once: results of
// a call with their error, and slices. One tensor crosses by [torch.Of] and T.
package raw

import (
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// Of is what a call of gotch returned: raw.Of(x.T().Inverse(false)).
func Of(t *ts.Tensor, err error) (torch.Tensor, error) {
	if t == nil {
		return torch.Tensor{}, err
	}
	return torch.Of(t), err
}

// All are tensors of gotch as Tensors.
func All(tensors []*ts.Tensor) []torch.Tensor {
	out := make([]torch.Tensor, len(tensors))
	for i, t := range tensors {
		out[i] = torch.Of(t)
	}
	return out
}

// Pointers are the tensors of gotch of Tensors.
func Pointers(xs []torch.Tensor) []*ts.Tensor {
	out := make([]*ts.Tensor, len(xs))
	for i, x := range xs {
		out[i] = x.T()
	}
	return out
}
