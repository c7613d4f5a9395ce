package approx

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/torch"
)

// The default optimiser's learning rate falls as a geometric sequence from first to last over Decay updates, and stays
// there. With it the mean can go about 50 units far. The second moments forget within some hundred updates, because the
// first gradients, of a start that may be far away, would otherwise keep later steps too small.
const (
	firstLR, lastLR = 0.05, 0.001
	Decay           = 4000
)

func defaultOptimizer() infer.Method {
	return optim.Adam{Beta2: 0.99, LR: func(step int) float64 {
		return firstLR * math.Pow(lastLR/firstLR, min(float64(step)/Decay, 1))
	}}
}

// Defaults are the options of a run of a variational method.
func Defaults() infer.Options { return infer.Options{Warmup: Decay, Draws: 1000} }

// Optimizer makes sure that an optimiser can be used for the variational parameters; nil is the default one. It must
// climb, and must leave a parameter alone whose gradient is zero: a decay of log standard deviations would pull the
// standard deviations to 1. name is that of the variational method.
func Optimizer(name string, method infer.Method) (infer.GradientMethod, error) {
	refuse := func(value any, allowed string) (infer.GradientMethod, error) {
		return nil, &infer.FieldError{Type: name, Field: "Optimizer", Value: value, Allowed: allowed}
	}
	if method == nil {
		method = defaultOptimizer()
	}
	g, ok := method.(infer.GradientMethod)
	if !ok {
		return refuse(fmt.Sprintf("a %T", method),
			"it must be an infer.GradientMethod, which takes gradients in the place of a target, such as optim.Adam")
	}
	t, err := g.BuildGradient(probe{})
	if err != nil {
		return nil, fmt.Errorf("%s: Optimizer: %w", name, err)
	}
	if _, ok := t.(infer.Restorer); !ok {
		return refuse(fmt.Sprintf("a %T", method),
			"what it builds must be an infer.Restorer, so that the fit can be saved")
	}
	if _, ok := t.(infer.Seeded); ok {
		return refuse(fmt.Sprintf("a %T", method), "it must not draw random numbers")
	}
	at, err := probed(t)
	if err != nil {
		return nil, fmt.Errorf("%s: Optimizer: a step on a quadratic function: %w", name, err)
	}
	if !(at[0] >= 0) {
		return refuse(fmt.Sprintf("a %T that went from 0 to %g where the gradient is 1", method, at[0]),
			"it must climb the log density, not descend it")
	}
	if at[1] != 1 {
		return refuse(fmt.Sprintf("a %T that went from 1 to %g where the gradient is 0", method, at[1]),
			"it must not have weight decay (WeightDecay; 0.01 is the default of optim.AdamW), which would act on "+
				"the scale of the distribution too: give the log posterior a prior")
	}
	return g, nil
}

// probed is where one update from (0, 1) leads.
func probed(t infer.Transform) (at []float64, err error) {
	err = torch.Do(func(*torch.Scope) error {
		layout := torch.Must(infer.NewLayout(infer.Shapes{"x": {2}}))
		s := torch.Must(t.Init(torch.Must(infer.NewParams(layout, []float64{0, 1}))))
		if s, _, err = t.Update(s, infer.Batch{}); err != nil {
			return err
		}
		if at, err = s.Position().Values(); err == nil && len(at) != 2 {
			err = fmt.Errorf("it ends at %v, expected 2 numbers", at)
		}
		return err
	})
	return at, err
}

// probe is the log density −½(x₀ − 1)², of one point of two numbers: its gradient is 1 at x₀ = 0, and 0 in x₁.
type probe struct{}

func (probe) ValueAndGrad(p infer.Params, _ infer.Batch, _ float64) (e infer.Evaluation, err error) {
	g := 1 - torch.Must(p.Values())[0]
	e.Value, e.Grad = torch.Scalar(-0.5*g*g), torch.New([]float64{g, 0})
	e.Values, e.Norms, err = torch.ValuesAndNorms(e.Value, e.Grad, 1)
	return e, err
}
