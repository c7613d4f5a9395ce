package laplace

import (
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
)

// DiagGGN is the Laplace approximation with the diagonal of the generalised Gauss-Newton matrix:
//
//	P = diag(Scale Σ_i J_iᵀ H_i J_i) + prior precision + Damping,   J_i = ∂z_i/∂θ,   H_i = −∂² log p(y_i|z_i)/∂z²
//
// (Immer et al. 2021.) For exponential families in their natural parameters, softmax, logits, Gaussian observations, it is the Fisher
// matrix, with the expectation over the labels that the model expects.
type DiagGGN struct {
	Forward        curvature.Forward // z = f(θ, x), of shape [n, ...]; required
	Outer          curvature.Outer   // log p(y_i|z_i), of shape [n]; required
	PriorPrecision Precision         // added once; the zero value is a flat prior
	Scale          float64           // multiplies each batch's sum, N over the data seen where a pass leaves some out; 0 means 1
	Temperature    infer.Schedule    // T of the covariance T P⁻¹, at the number of updates made; nil means 1
	Damping        float64           // added once to the diagonal of P; default 0
	Memory         int64             // bytes for rows of the Jacobian; 0 is the default of curvature.Options
	// Tables are sites of which a datum sees a few rows, such as embeddings: see curvature.Options.
	Tables map[string]string
}

// Build checks the configuration. Info reports the log posterior and its gradient, or where it is nil the log likelihood of the batch.
func (c DiagGGN) Build(target infer.Target) (infer.Transform, error) {
	o, err := newOptions("laplace.DiagGGN", c.PriorPrecision, c.Scale, c.Temperature, c.Damping, c.Memory)
	if err != nil {
		return nil, err
	}
	o.tables = c.Tables
	t, err := ggn(o, false, c.Forward, c.Outer, target.LogPosterior, curvature.GGNDiag)
	if err != nil {
		return nil, err
	}
	return diagGGN{t}, nil
}

// diagGGN is a type of its own so that a checkpoint knows the method.
type diagGGN struct{ *accumulator }
