package laplace

import (
	"errors"
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/kelvin-ppl/kelvin/infer/internal/approx"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// options are the fields that all configurations have, with the target.
type options struct {
	name        string
	prior       Precision
	scale       float64
	temperature infer.Schedule
	damping     float64
	memory      int
	tables      map[string]string // of the diagonal methods
	optimizer   infer.Method

	target   infer.Target
	gradient infer.Gradient // of the target, or without one of the log likelihood
	inferred bool           // the prior is that of the target
	given    bool           // there is a target
}

// checked are the options with their defaults, for a target. likelihood is what Info reports where there is no target.
func (o options) checked(target infer.Target, likelihood curvature.PerDatum) (options, error) {
	if err := o.prior.check(o.name); err != nil {
		return o, err
	}
	check, memory := &method.Checks{Name: o.name}, float64(o.memory)
	check.Value("Scale", &o.scale, 1, true)
	check.Schedule("Temperature", &o.temperature, 1, false)
	check.Value("Damping", &o.damping, 0, false)
	check.Value("Memory", &memory, 0, false)
	if err := check.Err(); err != nil {
		return o, err
	}
	chosen := o.optimizer != nil
	if !chosen {
		o.optimizer = optim.LBFGS{}
	}
	o.inferred, o.given = target.Parts != nil && o.prior.flat(), target.LogPosterior != nil
	if o.target = target; target.LogPosterior == nil && likelihood != nil {
		o.target = infer.Sum(sumOf(likelihood), 1)
	}
	var err error
	if o.gradient, err = infer.NewGradient(o.target); err != nil {
		return o, fmt.Errorf("%s: %w", o.name, err)
	}
	if chosen {
		err = o.checkOptimizer()
	}
	return o, err
}

// checkOptimizer refuses an Optimizer that ends in draws, and not at a point.
func (o *options) checkOptimizer() error {
	climber, mode := o.FindMode()
	transform, err := climber.Build(mode)
	if err != nil {
		return fmt.Errorf("%s: Optimizer: %w", o.name, err)
	}
	switch transform.(type) {
	case infer.Driver, infer.Sampler:
		return &infer.FieldError{Type: o.name, Field: "Optimizer", Value: fmt.Sprintf("a %T", climber),
			Allowed: "it must climb to the mode, as optim.LBFGS, optim.Adam, optim.AdamW and optim.SGD do"}
	}
	return nil
}

// sumOf is the log likelihood of a batch.
func sumOf(likelihood curvature.PerDatum) infer.LogPosterior {
	return func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		each := likelihood(p, b)
		if len(each.Shape()) == 0 {
			torch.Must(0, errors.New("it returned one number, expected a tensor of shape [n]"))
		}
		return each.Sum(), nil
	}
}

// checkRows refuses a batch that a sum over its data cannot take.
func (o *options) checkRows(b infer.Batch) error {
	if _, err := approx.Rows(b); err != nil {
		return fmt.Errorf("%s: %w", o.name, err)
	}
	return nil
}

// Name is the name of the method in checkpoints.
func (o *options) Name() string { return o.name }

// at is the temperature of a state.
func (o *options) at(step int) (float64, error) {
	t := o.temperature(step)
	return t, method.CheckValue(o.name, fmt.Sprintf("Temperature at update %d", step), t, 0, false)
}

// scaled is c·x.
func scaled(c float64, x torch.Tensor) torch.Tensor {
	return torch.Of(x.T().MustMulScalar(ts.FloatScalar(c), false))
}

// plus is a·x + b·y.
func plus(a float64, x torch.Tensor, b float64, y torch.Tensor) torch.Tensor {
	return torch.Must(torch.Combine(torch.Term{Coeff: a, Tensor: x}, torch.Term{Coeff: b, Tensor: y}))
}

// total is the sum of all elements.
func total(x torch.Tensor) float64 { return approx.Item(torch.Of(x.T().MustSum(x.T().DType(), false))) }

// checkMemory refuses numbers of the point's type that do not fit, before any is made. field is the one
// that sets the limit.
func checkMemory(name, what string, p infer.Params, numbers float64, memory int, field, instead string) {
	bytes := numbers * float64(p.Flat.T().DType().Size())
	if err := method.CheckMemory(what, bytes, memory, field, instead); err != nil {
		approx.Fail("%s: %w", name, err)
	}
}
