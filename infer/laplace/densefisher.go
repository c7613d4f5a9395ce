package laplace

import (
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
)

// DenseFisher is the Laplace approximation with the empirical Fisher matrix:
//
//	P = Scale Σ_i g_i g_iᵀ + prior precision + Damping I,   g_i = ∇ log p(y_i|θ̂)
//
// (Duffield et al. 2025, section 2.) It is positive semi-definite; with fewer data than parameters it needs a prior.
type DenseFisher struct {
	LogLikelihood  curvature.PerDatum // log p(y_i|θ) of the data of a batch, of shape [n], without the prior; required
	PriorPrecision Precision          // added once; the zero value is a flat prior
	Scale          float64            // multiplies each batch's sum, N over the data seen where a pass leaves some out; 0 means 1
	Temperature    infer.Schedule     // T of the covariance T P⁻¹, at the number of updates made; nil means 1
	Damping        float64            // added once to the diagonal of P; default 0
	Memory         int64              // bytes for the matrix and for rows of gradients; 0 is the default of curvature.Options
}

// Build checks the configuration. Info reports the log posterior and its gradient, or where it is nil the log likelihood of the batch.
func (c DenseFisher) Build(target infer.Target) (infer.Transform, error) {
	o, err := newOptions("laplace.DenseFisher", c.PriorPrecision, c.Scale, c.Temperature, c.Damping, c.Memory)
	if err != nil {
		return nil, err
	}
	t, err := fisher(o, true, c.LogLikelihood, target.LogPosterior, curvature.Fisher)
	if err != nil {
		return nil, err
	}
	return denseFisher{t}, nil
}

// denseFisher is a type of its own so that a checkpoint knows the method.
type denseFisher struct{ *accumulator }
