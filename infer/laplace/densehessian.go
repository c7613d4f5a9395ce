package laplace

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/sugarme/gotch/ts"
)

// DenseHessian is the Laplace approximation in its original form, with the Hessian of the log posterior given to Build:
//
//	P = Scale Σ_b −w_b ∇² log posterior_b(θ̂) + Damping I
//
// summed over the batches b of a pass. The weights make up for what a log posterior does with a batch of n of N data, so that one pass
// gives the Hessian of the sum over data, with the prior once, whatever the sizes of the batches:
//
//	the mean over data, (1/N) log prior + (1/n) Σ log likelihood    w_b = n        SumOver 0    program.MeanLogPosterior()
//	their sum, log prior + (N/n) Σ log likelihood                   w_b = n/N      SumOver N    program.LogPosterior()
//
// where program is a compiled model. A sum without SumOver makes the precision N times too large. A batch that does not count data, being empty
// or with a tensor of shape [], holds all of them: with SumOver its weight is 1, and one update makes the approximation.
//
// (MacKay 1992.) It is positive definite at a maximum only: elsewhere [DenseGGN] is the safer choice.
type DenseHessian struct {
	// SumOver is N where the log posterior is on the scale of the sum over N data, as program.LogPosterior() of a compiled model is, with
	// SumOver: program.Data(). It is 0 where the log posterior is on that of the mean, as program.MeanLogPosterior() is.
	SumOver int64
	// PriorPrecision is added once, for a function given to Build that is a log likelihood without a prior. Leave it out where that
	// function holds the prior: it would count twice.
	PriorPrecision Precision
	Scale          float64        // multiplies each batch's part, N over the data seen where a pass leaves some out; 0 means 1
	Temperature    infer.Schedule // T of the covariance T P⁻¹, at the number of updates made; nil means 1
	Damping        float64        // added once to the diagonal of P; default 0
	Memory         int64          // bytes for the matrix; 0 is the default of curvature.Options
}

// Build checks the configuration and binds it to a log posterior.
func (c DenseHessian) Build(target infer.Target) (infer.Transform, error) {
	const name = "laplace.DenseHessian"
	o, err := newOptions(name, c.PriorPrecision, c.Scale, c.Temperature, c.Damping, c.Memory)
	if err != nil {
		return nil, err
	}
	if c.SumOver < 0 {
		return nil, &infer.FieldError{Type: name, Field: "SumOver", Value: c.SumOver,
			Allowed: "it must be the number of data N, or 0 for a log posterior on the scale of the mean over data"}
	}
	if err := o.report(target.LogPosterior, nil); err != nil {
		return nil, err
	}
	return denseHessian{&accumulator{options: o, dense: true, curvature: func(p infer.Params, b infer.Batch) (*ts.Tensor, error) {
		weight, err := c.weight(b)
		if err != nil {
			return nil, err
		}
		h, err := curvature.Hessian(target.LogPosterior, p, b, curvature.Options{Memory: c.Memory, MemoryField: name + ".Memory"})
		if err != nil {
			return nil, err
		}
		// Rounding leaves the two triangles a little apart.
		return scaled(weight/2, h.MustAdd(transposed(h), false)), nil
	}}}, nil
}

// weight is w_b.
func (c DenseHessian) weight(b infer.Batch) (float64, error) {
	unsized := curvature.Unsized(b)
	if unsized && c.SumOver > 0 {
		return 1, nil
	}
	n, err := b.Size()
	switch {
	case unsized:
		return 0, fmt.Errorf("%w; for a log posterior on the scale of the sum over N data SumOver: N makes up for that", err)
	case err != nil:
		return 0, err
	case c.SumOver == 0:
		return float64(n), nil
	case n > c.SumOver:
		return 0, fmt.Errorf("a batch of %d data where SumOver says that there are %d: %w", n, c.SumOver, infer.ErrConfig)
	}
	return float64(n) / float64(c.SumOver), nil
}

// denseHessian is a type of its own so that a checkpoint knows the method.
type denseHessian struct{ *accumulator }
