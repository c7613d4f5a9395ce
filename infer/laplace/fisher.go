package laplace

import (
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/kelvin-ppl/kelvin/infer/internal/approx"
	"github.com/kelvin-ppl/kelvin/torch"
)

// DenseFisher is the Laplace approximation with the empirical Fisher matrix:
//
//	P = Scale Σ_i g_i g_iᵀ + prior precision + T · Jacobian's + Damping I,   g_i = ∇ log p(y_i|θ̂)
//
// (Duffield et al. 2025, section 2.) It is positive semi-definite; with fewer data than parameters it needs a prior.
type DenseFisher struct {
	// LogLikelihood is log p(y_i|θ) of the data of a batch, of shape [n], without the prior. nil means that of the
	// target, of one datum at a time: a compiled model whose data are in a plate has one.
	LogLikelihood  curvature.PerDatum
	PriorPrecision Precision // added once; the zero value means the curvature of the target's prior, or a flat prior
	// Scale multiplies each batch's sum: N over the data seen where a pass leaves some out; 0 means 1.
	Scale       float64
	Temperature infer.Schedule // T of the covariance T P⁻¹, at the number of updates made; nil means 1, the posterior
	Damping     float64        // added once to the diagonal of P; default 0
	Memory      int            // bytes for the matrix and rows of gradients; 0 is the default of curvature.Options
	Optimizer   infer.Method   // finds the mode in a run; nil means optim.LBFGS, for all data at once
}

// Build checks the configuration. Info reports the log posterior and its gradient, or where the target has none the log
// likelihood of the batch.
func (c DenseFisher) Build(target infer.Target) (infer.Transform, error) {
	return options{name: "laplace.DenseFisher", prior: c.PriorPrecision, scale: c.Scale, temperature: c.Temperature,
		damping: c.Damping, memory: c.Memory, optimizer: c.Optimizer}.fisher(target, c.LogLikelihood, matrix{},
		curvature.Fisher)
}

// Defaults are 1000 updates that find the mode, one pass over the data, and then 1000 draws.
func (DenseFisher) Defaults() infer.Options { return defaults() }

// DiagFisher is the Laplace approximation with the diagonal of the empirical Fisher matrix:
//
//	P_jj = Scale Σ_i g_ij² + prior precision + T · Jacobian's + Damping,   g_i = ∇ log p(y_i|θ̂)
//
// (Ritter et al. 2018; Duffield et al. 2025, section 2.) It costs a gradient for each datum and the memory of the
// parameters. The empirical Fisher matrix is close to the curvature where the model fits well (Kunstner et al. 2019);
// see [DiagGGN] for the alternative.
type DiagFisher struct {
	// LogLikelihood is log p(y_i|θ) of the data of a batch, of shape [n], without the prior. nil means that of the
	// target, of one datum at a time: a compiled model whose data are in a plate has one.
	LogLikelihood  curvature.PerDatum
	PriorPrecision Precision // added once; the zero value means the curvature of the target's prior, or a flat prior
	// Scale multiplies each batch's sum: N over the data seen where a pass leaves some out; 0 means 1.
	Scale       float64
	Temperature infer.Schedule // T of the covariance T P⁻¹, at the number of updates made; nil means 1, the posterior
	Damping     float64        // added once to the diagonal of P; default 0
	Memory      int            // bytes for rows of gradients; 0 is the default of curvature.Options
	// Tables are sites with many rows, such as embeddings, if a datum sees a few of them: see curvature.Options.
	Tables    map[string]string
	Optimizer infer.Method // finds the mode in a run; nil means optim.LBFGS, for all data at once
}

// Build checks the configuration. Info reports the log posterior and its gradient, or where the target has none the log
// likelihood of the batch.
func (c DiagFisher) Build(target infer.Target) (infer.Transform, error) {
	return options{name: "laplace.DiagFisher", prior: c.PriorPrecision, scale: c.Scale, temperature: c.Temperature,
		damping: c.Damping, memory: c.Memory, tables: c.Tables, optimizer: c.Optimizer}.fisher(target, c.LogLikelihood,
		diagonal{}, curvature.FisherDiag)
}

// Defaults are 1000 updates that find the mode, one pass over the data, and then 1000 draws.
func (DiagFisher) Defaults() infer.Options { return defaults() }

// fisher builds a Fisher method; of is the function of package curvature.
func (o options) fisher(target infer.Target, logLikelihood curvature.PerDatum, as structure,
	of func(curvature.PerDatum, infer.Params, infer.Batch, curvature.Options) (torch.Tensor, error)) (infer.Transform,
	error) {
	if logLikelihood == nil && target.Parts == nil {
		return nil, &infer.FieldError{Type: o.name, Field: "LogLikelihood", Value: "nil",
			Allowed: "it is needed for a target that cannot tell its likelihood apart: the log likelihood of each datum, " +
				"of shape [n], which curvature.PerSample makes of a log likelihood of one datum; " +
				"laplace.DenseHessian takes any target"}
	}
	o, err := o.checked(target, logLikelihood)
	if err != nil {
		return nil, err
	}
	t := &accumulator{options: o, structure: as}
	if logLikelihood == nil {
		t.all = target.N()
	}
	t.curvature = func(p infer.Params, b infer.Batch) ([]torch.Tensor, float64) {
		each, data := logLikelihood, dataIn(b)
		if each == nil {
			each, data = approx.Data(target, p, b)
		}
		return []torch.Tensor{torch.Must(of(each, p, b, o.limits()))}, data
	}
	return t, nil
}

// limits are the options of package curvature.
func (o *options) limits() curvature.Options {
	return curvature.Options{Memory: o.memory, MemoryField: o.name + ".Memory", Tables: o.tables}
}
