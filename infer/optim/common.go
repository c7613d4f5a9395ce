package optim

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// begin copies the point and makes n zero tensors of its shape, outside any autograd graph: a state that were part of one
// would carry all its predecessors along.
func begin(method string, p infer.Params, n int) (infer.Params, []*ts.Tensor, error) {
	if err := p.Check(); err != nil {
		return infer.Params{}, nil, fmt.Errorf("%s: %w", method, err)
	}
	start := p
	zeros := make([]*ts.Tensor, n)
	err := torch.NoGrad(func() (err error) {
		if start.Flat, err = torch.Combine(torch.Term{Coeff: 1, Tensor: p.Flat}); err != nil {
			return err
		}
		for i := range zeros {
			if zeros[i], err = torch.Combine(torch.Term{Coeff: 0, Tensor: p.Flat}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return infer.Params{}, nil, fmt.Errorf("%s: %w", method, err)
	}
	return start, zeros, nil
}

// decayed is g − λθ.
func decayed(g, theta *ts.Tensor, lambda float64) (*ts.Tensor, error) {
	if lambda == 0 {
		return g, nil
	}
	return torch.Combine(torch.Term{Coeff: 1, Tensor: g}, torch.Term{Coeff: -lambda, Tensor: theta})
}

// checkFraction checks a number that must be at least 0 and below 1.
func checkFraction(method, field string, v float64) error {
	if !(v >= 0 && v < 1) {
		return &infer.FieldError{Type: method, Field: field, Value: v, Allowed: "it must be at least 0 and less than 1"}
	}
	return nil
}

// checkGradient checks that there is a gradient.
func checkGradient(method string, gradient infer.Gradient) error {
	if gradient == nil {
		return fmt.Errorf("%s: the gradient is nil: %w", method, infer.ErrConfig)
	}
	return nil
}
