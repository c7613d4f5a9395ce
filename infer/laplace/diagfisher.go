package laplace

import (
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
)

// DiagFisher is the Laplace approximation with the diagonal of the empirical Fisher matrix:
//
//	P_jj = Scale Σ_i g_ij² + prior precision + Damping,   g_i = ∇ log p(y_i|θ̂)
//
// (Ritter et al. 2018; Duffield et al. 2025, section 2.) It costs a gradient for each datum and the memory of the parameters. The
// empirical Fisher matrix is close to the curvature where the model fits well (Kunstner et al. 2019); see [DiagGGN] for the alternative.
type DiagFisher struct {
	LogLikelihood  curvature.PerDatum // log p(y_i|θ) of the data of a batch, of shape [n], without the prior; required
	PriorPrecision Precision          // added once; the zero value is a flat prior
	Scale          float64            // multiplies each batch's sum, N over the data seen where a pass leaves some out; 0 means 1
	Temperature    infer.Schedule     // T of the covariance T P⁻¹, at the number of updates made; nil means 1
	Damping        float64            // added once to the diagonal of P; default 0
	Memory         int64              // bytes for rows of gradients; 0 is the default of curvature.Options
	// Tables are sites of which a datum sees a few rows, such as embeddings: see curvature.Options.
	Tables map[string]string
}

// Build checks the configuration. Info reports the log posterior and its gradient, or where it is nil the log likelihood of the batch.
func (c DiagFisher) Build(target infer.Target) (infer.Transform, error) {
	o, err := newOptions("laplace.DiagFisher", c.PriorPrecision, c.Scale, c.Temperature, c.Damping, c.Memory)
	if err != nil {
		return nil, err
	}
	o.tables = c.Tables
	t, err := fisher(o, false, c.LogLikelihood, target.LogPosterior, curvature.FisherDiag)
	if err != nil {
		return nil, err
	}
	return diagFisher{t}, nil
}

// diagFisher is a type of its own so that a checkpoint knows the method.
type diagFisher struct{ *accumulator }
