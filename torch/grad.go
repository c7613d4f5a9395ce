package torch

import (
	"fmt"

	"github.com/sugarme/gotch/ts"
)

// GradOptions are the options of [Grad]; nil is the zero value.
type GradOptions struct {
	// Weights multiply the outputs, each of its output's shape: the result is the vector-Jacobian product. Nil means one,
	// for outputs that are scalars.
	Weights []*ts.Tensor
	// CreateGraph makes the gradients differentiable themselves.
	CreateGraph bool
	// KeepGraph lets the outputs be differentiated once more. CreateGraph implies it.
	KeepGraph bool
	// AllowUnused gives gradient zero to an input that the outputs do not depend on, instead of an error.
	AllowUnused bool
}

// Grad returns the gradients of the sum of the outputs in each of the inputs, in their shapes. The inputs must have been
// made by [Leaf], or computed from such.
func Grad(outputs, inputs []*ts.Tensor, o *GradOptions) (grads []*ts.Tensor, err error) {
	if o == nil {
		o = &GradOptions{}
	}
	if len(o.Weights) != 0 && len(o.Weights) != len(outputs) {
		return nil, fmt.Errorf("torch.Grad: %d weights for %d outputs: there must be one for each, or none", len(o.Weights), len(outputs))
	}
	err = Do(func(s *Scope) error {
		defer ts.KelvinSetGradMode(ts.KelvinSetGradMode(true))
		grads, err = ts.KelvinGrad(outputs, inputs, o.Weights, o.KeepGraph, o.CreateGraph, o.AllowUnused)
		s.Keep(grads...)
		return err
	})
	return grads, err
}

// Leaf returns a tensor with the values of t that gradients can be taken in.
func Leaf(t *ts.Tensor) (*ts.Tensor, error) { return ts.KelvinLeaf(t) }

// ValueAndGrad returns f(x), a scalar (shape []), and its gradient, of the shape of x. Neither is part of a graph.
func ValueAndGrad(f func(x *ts.Tensor) *ts.Tensor, x *ts.Tensor) (value, grad *ts.Tensor, err error) {
	err = Do(func(s *Scope) error {
		value, grad, err = valueAndGrad(f, x, false)
		s.Keep(value, grad)
		return err
	})
	return value, grad, err
}

// VmapValueAndGrad maps f over the first dimension of x, of shape [K, ...]: it returns the K values, of shape [K], and
// the gradients, of the shape of x. f sees one row at a time, without its first dimension.
func VmapValueAndGrad(f func(x *ts.Tensor) *ts.Tensor, x *ts.Tensor) (values, grads *ts.Tensor, err error) {
	err = Do(func(s *Scope) error {
		values, grads, err = valueAndGrad(f, x, true)
		s.Keep(values, grads)
		return err
	})
	return values, grads, err
}

// valueAndGrad does the work inside the caller's scope.
func valueAndGrad(f func(x *ts.Tensor) *ts.Tensor, x *ts.Tensor, mapped bool) (value, grad *ts.Tensor, err error) {
	defer ts.KelvinSetGradMode(ts.KelvinSetGradMode(true))
	leaf, err := ts.KelvinLeaf(x)
	if err != nil {
		return nil, nil, err
	}
	want := 0
	var y *ts.Tensor
	if mapped {
		out, err := vmap(func(in []*ts.Tensor) ([]*ts.Tensor, error) { return []*ts.Tensor{f(in[0])}, nil }, []*ts.Tensor{leaf}, nil)
		if err != nil {
			return nil, nil, err
		}
		y, want = out[0], 1
	} else {
		y = f(leaf)
	}
	d, err := y.KelvinDescribe()
	if err != nil {
		return nil, nil, err
	}
	if len(d.Shape) != want {
		return nil, nil, fmt.Errorf("the function to differentiate returned shape %v, expected []: %w", d.Shape[want:], ErrNotScalar)
	}
	if !d.RequiresGrad {
		return nil, nil, fmt.Errorf("the function to differentiate %w: it was computed without them, or with gradients switched off", ErrNoGradient)
	}
	total := y
	if mapped {
		if total, err = y.Sum(y.DType(), false); err != nil {
			return nil, nil, err
		}
	}
	grads, err := ts.KelvinGrad([]*ts.Tensor{total}, []*ts.Tensor{leaf}, nil, false, false, false)
	if err != nil {
		return nil, nil, err
	}
	value, err = y.Detach(false)
	return value, grads[0], err
}
