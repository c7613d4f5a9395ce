package laplace

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/kelvin-ppl/kelvin/infer/internal/approx"
	"github.com/kelvin-ppl/kelvin/torch"
)

// KFAC is the Laplace approximation with Kronecker-factored curvature (Martens and Grosse 2015; Ritter et al. 2018).
// Layers are independent, and the Gauss-Newton matrix of a layer s = W a, with the bias as one more column of W and a 1
// at the end of a, is taken to be
//
//	P_layer = (Scale/N) (Σ_i S_iᵀ H_i S_i) ⊗ (Σ_i a_i a_iᵀ) + (prior precision + Damping) I,
//	S_i = ∂z_i/∂s_i,   H_i = −∂² log p(y_i|z_i)/∂z²
//
// for W in row-major order and N data. Each layer's block is exact for one datum, and where S_iᵀ H_i S_i is the same
// for all data, as in a linear network with Gaussian noise; what couples the layers is dropped. A layer costs out² +
// (in + 1)² numbers in place of their product squared.
type KFAC struct {
	Network Network         // the forward function; required
	Layers  []Layer         // its linear layers, which hold all sites; required
	Outer   curvature.Outer // log p(y_i|z_i), of shape [n]; required
	// Empirical takes the gradients g_i of log p(y_i|z_i) in s_i for the second factor, Σ g_i g_iᵀ, in place of
	// Σ S_iᵀ H_i S_i: one backward pass for a batch in place of one for each output.
	Empirical bool
	// PriorPrecision is added once: Isotropic, or PerSite with one number for weights and bias. The zero value means
	// the curvature of the target's prior, which must be one number for each layer, or a flat prior.
	PriorPrecision Precision
	// Scale multiplies each batch's part: N over the data seen where a pass leaves some out; 0 means 1.
	Scale       float64
	Temperature infer.Schedule // T of the covariance T P⁻¹, at the number of updates made; nil means 1, the posterior
	Damping     float64        // added once to the diagonal of P; default 0
	Memory      int            // bytes for the factors; 0 is the default of curvature.Options
	Optimizer   infer.Method   // finds the mode in a run; nil means optim.LBFGS, for all data at once
}

// Build checks the configuration. Info reports the log posterior and its gradient, or where the target has none the log
// likelihood of the batch.
func (c KFAC) Build(target infer.Target) (infer.Transform, error) {
	const name = "laplace.KFAC"
	o := options{name: name, prior: c.PriorPrecision, scale: c.Scale, temperature: c.Temperature, damping: c.Damping,
		memory: c.Memory, optimizer: c.Optimizer}
	if c.Network == nil {
		return nil, o.missing("Network", "the forward function, with its linear layers")
	}
	if c.Outer == nil {
		return nil, o.missing("Outer", "the log likelihoods log p(y_i|z_i), of shape [n]")
	}
	if len(c.Layers) == 0 {
		return nil, &infer.FieldError{Type: name, Field: "Layers", Value: "empty",
			Allowed: "at least one layer is needed"}
	}
	if c.PriorPrecision.given != (torch.Tensor{}) {
		return nil, &infer.FieldError{Type: name, Field: "PriorPrecision", Value: "a tensor",
			Allowed: "Isotropic and PerSite keep the Kronecker form; the dense methods take any"}
	}
	if target.LogJacobian != nil {
		return nil, fmt.Errorf("%s: the target has variables that are not on the real line, whose Jacobian has no "+
			"Kronecker form: use laplace.DenseHessian or laplace.DiagFisher: %w", name, infer.ErrConfig)
	}
	o, err := o.checked(target, curvature.Likelihood(c.Network.Forward(c.Layers...), c.Outer))
	if err != nil {
		return nil, err
	}
	return &accumulator{options: o, structure: kronecker{c.Layers},
		curvature: func(p infer.Params, b infer.Batch) (factors []torch.Tensor, data float64) {
			gradients(func() { factors, data = c.factors(p, b) })
			return factors, data
		}}, nil
}

// Defaults are 1000 updates that find the mode, one pass over the data, and then 1000 draws.
func (KFAC) Defaults() infer.Options { return defaults() }

// factors are the sums over a batch: Σ a aᵀ and Σ Sᵀ H S (or Σ g gᵀ) of all layers, flat, and the number of data.
func (c KFAC) factors(p infer.Params, b infer.Batch) (sums []torch.Tensor, data float64) {
	r := record(c.Network, c.Layers, p, b)
	z := r.z.Reshape(r.shape...).T()
	var left, right []torch.Tensor // [rows, out], with the second factor Σ leftᵀ right
	if c.Empirical {
		l := torch.Must(c.Outer.Densities(torch.Of(z), b))
		left = torch.Must(torch.Grad([]torch.Tensor{torch.Of(l.T().MustSum(l.T().DType(), false))}, r.outputs,
			&torch.GradOptions{AllowUnused: true}))
		right = left
	} else {
		root, signs, err := c.Outer.Root(torch.Of(z), b)
		approx.Try(err)
		for _, j := range r.jacobians() {
			flat := []int{r.n * r.c, j.Shape()[2]}
			rows := root.T().MustBmm(j.T(), false) // so that Sᵀ H S is a sum of squares, also after rounding
			signed := rows
			if signs != (torch.Tensor{}) {
				signed = rows.MustMul(signs.Unsqueeze(2).T(), false)
			}
			left, right = append(left, torch.Of(rows.MustReshape(torch.Int64s(flat), false))), append(right,
				torch.Of(signed.MustReshape(torch.Int64s(flat), false)))
		}
	}
	var a, g []torch.Tensor
	for i, x := range r.inputs {
		a = append(a, approx.T(x).MatMul(x).Reshape(-1))
		g = append(g, approx.T(left[i]).MatMul(right[i]).Reshape(-1))
	}
	inputs, outputs := torch.Cat(0, a).T().MustDetach(false), torch.Cat(0, g).T().MustDetach(false)
	for what, x := range map[string]torch.Tensor{
		"inputs of the layers": torch.Of(inputs), "derivatives in the outputs of the layers": torch.Of(outputs)} {
		if approx.Item(torch.Of(x.T().MustIsfinite(false).MustAll(false))) == 0 {
			approx.Fail("the %s are %w", what, infer.ErrNonFinite)
		}
	}
	return []torch.Tensor{torch.Of(inputs), torch.Of(outputs)}, float64(r.n)
}
