package laplace

import (
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/kelvin-ppl/kelvin/torch"
)

// DenseGGN is the Laplace approximation with the generalised Gauss-Newton matrix:
//
//	P = Scale Σ_i J_iᵀ H_i J_i + prior precision + T · Jacobian's + Damping I
//
// with J_i = ∂z_i/∂θ and H_i = −∂² log p(y_i|z_i)/∂z². (Khan et al. 2019; Immer et al. 2021.) It is positive
// semi-definite wherever log p(y|z) is concave in z, also away from an optimum, and equals the Hessian where f is
// linear in θ.
type DenseGGN struct {
	Forward curvature.Forward // z = f(θ, x), of shape [n, ...]; required
	Outer   curvature.Outer   // log p(y_i|z_i), of shape [n]; required
	// added once; the zero value means the curvature of the target's prior, or a flat one
	PriorPrecision Precision
	// Scale multiplies each batch's sum: N over the data seen where a pass leaves some out; 0 means 1.
	Scale       float64
	Temperature infer.Schedule // T of the covariance T P⁻¹, at the number of updates made; nil means 1, the posterior
	Damping     float64        // added once to the diagonal of P; default 0
	Memory      int            // bytes for the matrix and rows of the Jacobian; 0 is the default of curvature.Options
	Optimizer   infer.Method   // finds the mode in a run; nil means optim.LBFGS, for all data at once
}

// Build checks the configuration. Info reports the log posterior and its gradient, or where the target has none the log
// likelihood of the batch.
func (c DenseGGN) Build(target infer.Target) (infer.Transform, error) {
	return options{name: "laplace.DenseGGN", prior: c.PriorPrecision, scale: c.Scale, temperature: c.Temperature,
		damping: c.Damping, memory: c.Memory, optimizer: c.Optimizer}.ggn(target, c.Forward, c.Outer, matrix{},
		curvature.GGN)
}

// Defaults are 1000 updates that find the mode, one pass over the data, and then 1000 draws.
func (DenseGGN) Defaults() infer.Options { return defaults() }

// DiagGGN is the Laplace approximation with the diagonal of the generalised Gauss-Newton matrix:
//
//	P = diag(Scale Σ_i J_iᵀ H_i J_i) + prior precision + T · Jacobian's + Damping
//
// with J_i = ∂z_i/∂θ and H_i = −∂² log p(y_i|z_i)/∂z². (Immer et al. 2021.) For exponential families in their natural
// parameters, softmax, logits, Gaussian observations, it is the Fisher matrix, with the expectation over the labels
// that the model expects.
type DiagGGN struct {
	Forward curvature.Forward // z = f(θ, x), of shape [n, ...]; required
	Outer   curvature.Outer   // log p(y_i|z_i), of shape [n]; required
	// added once; the zero value means the curvature of the target's prior, or a flat one
	PriorPrecision Precision
	// Scale multiplies each batch's sum: N over the data seen where a pass leaves some out; 0 means 1.
	Scale       float64
	Temperature infer.Schedule // T of the covariance T P⁻¹, at the number of updates made; nil means 1, the posterior
	Damping     float64        // added once to the diagonal of P; default 0
	Memory      int            // bytes for rows of the Jacobian; 0 is the default of curvature.Options
	// Tables are sites with many rows, such as embeddings, if a datum sees a few of them: see curvature.Options.
	Tables    map[string]string
	Optimizer infer.Method // finds the mode in a run; nil means optim.LBFGS, for all data at once
}

// Build checks the configuration. Info reports the log posterior and its gradient, or where the target has none the log
// likelihood of the batch.
func (c DiagGGN) Build(target infer.Target) (infer.Transform, error) {
	return options{name: "laplace.DiagGGN", prior: c.PriorPrecision, scale: c.Scale, temperature: c.Temperature,
		damping: c.Damping, memory: c.Memory, tables: c.Tables, optimizer: c.Optimizer}.ggn(target, c.Forward, c.Outer,
		diagonal{}, curvature.GGNDiag)
}

// Defaults are 1000 updates that find the mode, one pass over the data, and then 1000 draws.
func (DiagGGN) Defaults() infer.Options { return defaults() }

// ggn builds a Gauss-Newton method; of is the function of package curvature.
func (o options) ggn(target infer.Target, f curvature.Forward, outer curvature.Outer, as structure,
	of func(curvature.Forward, curvature.Outer, infer.Params, infer.Batch, curvature.Options) (torch.Tensor,
		error)) (infer.Transform, error) {
	if f == nil {
		return nil, o.missing("Forward", "the outputs z = f(θ, x), of shape [n, ...]")
	}
	if outer == nil {
		return nil, o.missing("Outer", "the log likelihoods log p(y_i|z_i), of shape [n]")
	}
	o, err := o.checked(target, curvature.Likelihood(f, outer))
	if err != nil {
		return nil, err
	}
	return &accumulator{options: o, structure: as,
		curvature: func(p infer.Params, b infer.Batch) ([]torch.Tensor, float64) {
			return []torch.Tensor{torch.Must(of(f, outer, p, b, o.limits()))}, dataIn(b)
		}}, nil
}

// missing is the error of a function that a method needs and no target has.
func (o *options) missing(field, what string) error {
	return &infer.FieldError{Type: o.name, Field: field, Value: "nil", Allowed: "it is needed: " + what +
		"; laplace.DenseHessian takes any target without it"}
}
