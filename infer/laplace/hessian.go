package laplace

import (
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/kelvin-ppl/kelvin/infer/internal/approx"
	"github.com/kelvin-ppl/kelvin/torch"
)

// DenseHessian is the Laplace approximation in its original form, with the Hessian of the log density of the target:
//
//	P = −N ∇² log posterior(θ̂) − T ∇² log |Jacobian| + Damping I
//
// (MacKay 1992.) The log posterior is a mean over N data. Of minibatches it is the mean of their Hessians, weighted by
// their data, so that a pass over the data in any batches gives the Hessian of all of them, with the prior once. A full
// batch is one update, and may have tensors of different first dimensions, as those of two plates. P is positive
// definite at a maximum only: elsewhere [DenseGGN] is the safer choice.
type DenseHessian struct {
	// PriorPrecision is added once, for a target that is a log likelihood without a prior. Leave it out where the
	// target has a prior: it would count twice.
	PriorPrecision Precision
	// T of the covariance T P⁻¹, at the number of updates made; nil means 1, the posterior
	Temperature infer.Schedule
	Damping     float64      // added once to the diagonal of P; default 0
	Memory      int          // bytes for the matrix; 0 is the default of curvature.Options
	Optimizer   infer.Method // finds the mode in a run; nil means optim.LBFGS, for all data at once
}

// Build checks the configuration and binds it to a target.
func (c DenseHessian) Build(target infer.Target) (infer.Transform, error) {
	o, err := options{name: "laplace.DenseHessian", prior: c.PriorPrecision, temperature: c.Temperature,
		damping: c.Damping, memory: c.Memory, optimizer: c.Optimizer}.checked(target, nil)
	if err != nil {
		return nil, err
	}
	return &accumulator{options: o, structure: matrix{}, mean: true,
		curvature: func(p infer.Params, b infer.Batch) ([]torch.Tensor, float64) {
			h := torch.Must(curvature.Hessian(target.LogPosterior, p, b, o.limits()))
			return []torch.Tensor{symmetric(target.N(), h)}, dataIn(b)
		}}, nil
}

// Defaults are 1000 updates that find the mode, one pass over the data, and then 1000 draws.
func (DenseHessian) Defaults() infer.Options { return defaults() }

// symmetric is c·h with the rounding between its two triangles taken out.
func symmetric(c float64, h torch.Tensor) torch.Tensor {
	return scaled(c/2, h.Add(approx.T(h)))
}

// dataIn is how many data a batch counts for: 1 where it does not count data.
func dataIn(b infer.Batch) float64 {
	n, err := b.Size()
	if err != nil {
		return 1
	}
	return float64(n)
}
