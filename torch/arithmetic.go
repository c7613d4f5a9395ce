package torch

import (
	"fmt"

	"github.com/sugarme/gotch/ts"
)

// Term is one summand of [Combine].
type Term struct {
	Coeff  float64    // c
	Tensor *ts.Tensor // x
}

// Combine returns Σ c_i x_i as a new tensor, in the order of the terms: one call for an update equation. The first term
// has the shape of the result; the others are broadcast to it.
func Combine(terms ...Term) (*ts.Tensor, error) {
	if len(terms) == 0 {
		return nil, fmt.Errorf("torch.Combine: there are no terms")
	}
	coeffs := make([]float64, len(terms))
	tensors := make([]*ts.Tensor, len(terms))
	for i, t := range terms {
		coeffs[i], tensors[i] = t.Coeff, t.Tensor
	}
	return ts.KelvinCombine(coeffs, tensors)
}

// ValuesAndNorms reads K values, of shape [K] or [] for K = 1, and the Euclidean norms of the K rows of x, in one call.
func ValuesAndNorms(values, x *ts.Tensor, k int) (v, norms []float64, err error) {
	if k < 0 || k > mostChains {
		return nil, nil, misuse("%d values cannot be read: there must be from 0 to %d", k, mostChains)
	}
	out := make([]float64, 2*k)
	if err := ts.KelvinReadout(values, x, out); err != nil {
		return nil, nil, err
	}
	return out[:k:k], out[k:], nil
}

// Copy is a tensor with the same values and memory of its own, outside any autograd graph: a state that were part of
// one would carry all its predecessors along.
func Copy(t *ts.Tensor) (c *ts.Tensor, err error) {
	err = NoGrad(func() error {
		c, err = Combine(Term{Coeff: 1, Tensor: t})
		return err
	})
	return c, err
}
