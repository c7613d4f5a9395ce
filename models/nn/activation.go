package nn

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Tanh is tanh(x) of each element.
type Tanh struct{}

// Plan takes any shape.
func (Tanh) Plan(in []int) (Plan, error) {
	return elementwise(in, torch.Tensor.Tanh)
}

// ReLU is max(x, 0) of each element. Its second derivative is 0 everywhere.
type ReLU struct{}

// Plan takes any shape.
func (ReLU) Plan(in []int) (Plan, error) {
	return elementwise(in, torch.Tensor.Relu)
}

// SELU is the scaled exponential linear unit of each element (Klambauer et al. 2017): with λ = 1.0507009873554805 and
// α = 1.6732632423543772 it is λx for x > 0 and λα(exp(x) − 1) otherwise. These λ and α keep mean 0 and variance 1 of
// Gaussian x.
type SELU struct{}

// Plan takes any shape.
func (SELU) Plan(in []int) (Plan, error) {
	return elementwise(in, func(x torch.Tensor) torch.Tensor { return torch.Of(x.T().MustSelu(false)) })
}

// Sigmoid is the logistic function 1/(1 + exp(−x)) of each element.
type Sigmoid struct{}

// Plan takes any shape.
func (Sigmoid) Plan(in []int) (Plan, error) {
	return elementwise(in, torch.Tensor.Sigmoid)
}

// Softmax is exp(x_i) / Σ_j exp(x_j) along the last axis.
type Softmax struct{}

// Plan takes any shape but [].
func (Softmax) Plan(in []int) (Plan, error) {
	if len(in) == 0 {
		return Plan{}, misfit(in, "[..., classes]")
	}
	return elementwise(in, func(x torch.Tensor) torch.Tensor { return x.Softmax(-1) })
}

// LogSoftmax is x_i − log Σ_j exp(x_j) along the last axis. dist.CategoricalLogits does not need it.
type LogSoftmax struct{}

// Plan takes any shape but [].
func (LogSoftmax) Plan(in []int) (Plan, error) {
	if len(in) == 0 {
		return Plan{}, misfit(in, "[..., classes]")
	}
	return elementwise(in, func(x torch.Tensor) torch.Tensor { return x.LogSoftmax(-1) })
}

func elementwise(in []int, f func(x torch.Tensor) torch.Tensor) (Plan, error) {
	return Plan{Out: in, Forward: func(_ Call, x torch.Tensor) torch.Tensor { return f(x) }}, nil
}

// Func is any function without parameters, from [n, in...] to [n, out...].
type Func struct {
	F    func(x torch.Tensor) torch.Tensor // the function itself
	Out  func(in []int) ([]int, error)     // shape of one output; nil means that of the input
	Kind string                            // what [Network.String] calls it; "Func" where it is empty
}

// Plan asks Out for the shape.
func (l Func) Plan(in []int) (Plan, error) {
	if l.F == nil {
		return Plan{}, &infer.FieldError{Type: "nn.Func", Field: "F", Value: "nil", Allowed: "it must be a function"}
	}
	p, err := elementwise(in, l.F)
	if p.AnyType = true; l.Out != nil && err == nil {
		if p.Out, err = l.Out(in); err != nil {
			err = fmt.Errorf("inputs have shape %v: %w", in, err)
		}
	}
	return p, err
}
