package laplace

import (
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
)

// DenseGGN is the Laplace approximation with the generalised Gauss-Newton matrix:
//
//	P = Scale Σ_i J_iᵀ H_i J_i + prior precision + Damping I,   J_i = ∂z_i/∂θ,   H_i = −∂² log p(y_i|z_i)/∂z²
//
// (Khan et al. 2019; Immer et al. 2021.) It is positive semi-definite wherever log p(y|z) is concave in z, also away from an optimum,
// and equals the Hessian where f is linear in θ.
type DenseGGN struct {
	Forward        curvature.Forward // z = f(θ, x), of shape [n, ...]; required
	Outer          curvature.Outer   // log p(y_i|z_i), of shape [n]; required
	PriorPrecision Precision         // added once; the zero value is a flat prior
	Scale          float64           // multiplies each batch's sum, N over the data seen where a pass leaves some out; 0 means 1
	Temperature    infer.Schedule    // T of the covariance T P⁻¹, at the number of updates made; nil means 1
	Damping        float64           // added once to the diagonal of P; default 0
	Memory         int64             // bytes for the matrix and for rows of the Jacobian; 0 is the default of curvature.Options
}

// Build checks the configuration. Info reports the log posterior and its gradient, or where it is nil the log likelihood of the batch.
func (c DenseGGN) Build(target infer.Target) (infer.Transform, error) {
	o, err := newOptions("laplace.DenseGGN", c.PriorPrecision, c.Scale, c.Temperature, c.Damping, c.Memory)
	if err != nil {
		return nil, err
	}
	t, err := ggn(o, true, c.Forward, c.Outer, target.LogPosterior, curvature.GGN)
	if err != nil {
		return nil, err
	}
	return denseGGN{t}, nil
}

// denseGGN is a type of its own so that a checkpoint knows the method.
type denseGGN struct{ *accumulator }
