package torch

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/internal/thread"
	"github.com/sugarme/gotch/ts"
)

// GradOptions are the options of [Grad]; nil is the zero value.
type GradOptions struct {
	// Weights multiply the outputs, each of its output's shape: the result is the vector-Jacobian product. Nil means one,
	// for outputs that are scalars.
	Weights []Tensor
	// CreateGraph makes the gradients differentiable themselves.
	CreateGraph bool
	// KeepGraph lets the outputs be differentiated once more. CreateGraph implies it.
	KeepGraph bool
	// AllowUnused gives gradient zero to an input that the outputs do not depend on, instead of an error.
	AllowUnused bool
}

// Grad returns the gradients of the sum of the outputs in each of the inputs, in their shapes. The inputs must have
// been made by [Leaf], or computed from such.
func Grad(outputs, inputs []Tensor, o *GradOptions) (grads []Tensor, err error) {
	if o == nil {
		o = &GradOptions{}
	}
	if len(o.Weights) != 0 && len(o.Weights) != len(outputs) {
		return nil, fmt.Errorf(
			"torch.Grad: %d weights for %d outputs: there must be one for each, or none",
			len(o.Weights),
			len(outputs),
		)
	}
	err = Do(func(s *Scope) error {
		defer ts.KelvinSetGradMode(ts.KelvinSetGradMode(true))
		g, err := ts.KelvinGrad(pointers(outputs), pointers(inputs), pointers(o.Weights), o.KeepGraph, o.CreateGraph,
			o.AllowUnused)
		grads = wrapAll(g)
		s.Keep(grads...)
		return err
	})
	return grads, err
}

// Leaf returns a tensor with the values of t that gradients can be taken in.
func Leaf(t Tensor) (Tensor, error) { return from(ts.KelvinLeaf(t.T())) }

// ValueAndGrad returns f(x), a scalar (shape []), and its gradient, of the shape of x. Neither is part of a graph.
func ValueAndGrad(f func(x Tensor) Tensor, x Tensor) (value, grad Tensor, err error) {
	value, grad, _, err = ValueAndGradAux(withoutAux(f), x)
	return value, grad, err
}

// ValueAndGradAux is [ValueAndGrad] of a function that returns other tensors besides its value.
// They come back detached.
func ValueAndGradAux(
	f func(x Tensor) (Tensor, []Tensor),
	x Tensor,
) (value, grad Tensor, aux []Tensor, err error) {
	return inScope(f, x, false)
}

// VmapValueAndGrad maps f over the first dimension of x, of shape [K, ...]: it returns the K values, of shape [K], and
// the gradients, of the shape of x. f sees one row at a time, without its first dimension.
func VmapValueAndGrad(f func(x Tensor) Tensor, x Tensor) (values, grads Tensor, err error) {
	values, grads, _, err = VmapValueAndGradAux(withoutAux(f), x)
	return values, grads, err
}

// VmapValueAndGradAux is [VmapValueAndGrad] of a function that returns other tensors besides its value. They come back
// detached and with a leading dimension of K.
func VmapValueAndGradAux(
	f func(x Tensor) (Tensor, []Tensor),
	x Tensor,
) (values, grads Tensor, aux []Tensor, err error) {
	return inScope(f, x, true)
}

func withoutAux(f func(x Tensor) Tensor) func(x Tensor) (Tensor, []Tensor) {
	if f == nil {
		return nil
	}
	return func(x Tensor) (Tensor, []Tensor) { return f(x), nil }
}

func inScope(
	f func(x Tensor) (Tensor, []Tensor),
	x Tensor,
	mapped bool,
) (value, grad Tensor, aux []Tensor, err error) {
	err = Do(func(s *Scope) error {
		value, grad, aux, err = valueAndGrad(f, x, mapped)
		s.Keep(value, grad)
		s.Keep(aux...)
		return err
	})
	return value, grad, aux, err
}

// valueAndGrad does the work inside the caller's scope. The first output is the value.
func valueAndGrad(
	f func(x Tensor) (Tensor, []Tensor),
	x Tensor,
	mapped bool,
) (value, grad Tensor, aux []Tensor, err error) {
	if f == nil {
		return value, grad, nil, errNoFunction
	}
	defer ts.KelvinSetGradMode(ts.KelvinSetGradMode(true))
	defer thread.GradientOnly()()
	defer thread.Evaluate()()
	leaf, err := Leaf(x)
	if err != nil {
		return value, grad, nil, err
	}
	call := func(in []Tensor) ([]Tensor, error) {
		y, more := f(in[0])
		return append([]Tensor{y}, more...), nil
	}
	var out []Tensor
	want := 0
	if mapped {
		want = 1
		out, err = vmap(call, []Tensor{leaf}, nil)
	} else {
		out, err = call([]Tensor{leaf})
	}
	if err != nil {
		return value, grad, nil, err
	}
	y := out[0]
	d, err := y.T().KelvinDescribe()
	if err != nil {
		return value, grad, nil, err
	}
	if len(d.Shape) != want {
		return value, grad, nil, fmt.Errorf(
			"the function to differentiate returned shape %v, expected []: %w",
			d.Shape[want:],
			ErrNotScalar,
		)
	}
	if !d.RequiresGrad {
		return value, grad, nil, fmt.Errorf(
			"the function to differentiate %w: it was computed without them, or with gradients switched off", ErrNoGradient)
	}
	total := y
	if mapped {
		if total, err = from(y.t.Sum(y.t.DType(), false)); err != nil {
			return value, grad, nil, err
		}
	}
	grads, err := ts.KelvinGrad([]*ts.Tensor{total.t}, []*ts.Tensor{leaf.t}, nil, false, false, false)
	if err != nil {
		return value, grad, nil, err
	}
	for i, t := range out {
		if out[i], err = from(t.T().Detach(false)); err != nil {
			return value, grad, nil, err
		}
	}
	return out[0], wrap(grads[0]), out[1:], nil
}
