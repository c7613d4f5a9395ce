package ekf

import (
	"errors"
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/kelvin-ppl/kelvin/infer/internal/approx"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// GaussNewton is the extended Kalman filter proper: it linearises the forward function z = f(θ, x) at the mean, and
// takes the curvature H of −log p(y|z) in the outputs, a Gaussian likelihood's inverse noise covariance or that of
// another exponential family:
//
//	P_pred = P + q² I
//	P'⁻¹   = P_pred⁻¹ + ε Σ J_iᵀ H_i J_i
//	μ'     = μ + ε P' Σ g_i
//
// with J_i = ∂z_i/∂θ and g_i the gradient of log p(y_i|z_i) in θ, summed over the batch. Where f is linear in θ and the
// noise is Gaussian this is the Kalman filter: without a random walk it gives the posterior of Bayesian linear
// regression, in whatever order and batches the data come, and Info.Stats "log_predictive" adds up to the log marginal
// likelihood.
//
// With Iterations above 1 the linearisation is repeated at the new mean, which is Gauss-Newton's method for the mode of
// the updated density (Bell and Cathey 1993): μ_{j+1} = μ_j + P_{j+1} (ε Σ g_i(μ_j) − P_pred⁻¹ (μ_j − μ)).
//
// Info.LogPosterior is the log likelihood of the batch at μ, summed over its data, and Info.Stats "log_predictive" an
// approximation of the log of their density given all data before, exact for linear-Gaussian models at ε = 1: ε Σ log
// p(y_i|z_i) + ½ ε² gᵀP'g − ½ log |I + ε P_pred Σ JᵀHJ|, with g = Σ g_i.
//
// Forward and Outer are the likelihood, and the prior is the Gaussian to start with. At ε = 1 and without a random walk
// it is the Bayes posterior.
type GaussNewton struct {
	Forward curvature.Forward // z = f(θ, x), of shape [n, ...]; required
	Outer   curvature.Outer   // log p(y_i|z_i), of shape [n]; required; log-concave in z
	LR      infer.Schedule    // ε, the inverse temperature of the likelihood; nil means 1

	TransitionSD infer.Schedule // q; nil means 0, or 1 with TransitionSDs
	// TransitionSDs multiply q, one factor for each parameter, of shape [d]; nil means 1.
	TransitionSDs torch.Tensor
	// InitSD is the standard deviation of each parameter to start with. 0 means the target's prior: its mean and its
	// covariance, or for one that is not Gaussian its mode and curvature on unconstrained space; and 1 for a target
	// without parts.
	InitSD float64
	// InitSDs are standard deviations for each parameter, of shape [d] or that of the params, in place of InitSD; nil for
	// none.
	InitSDs torch.Tensor
	// InitCov is a covariance matrix to start with, of shape [d, d], in place of InitSD and InitSDs; none if not set.
	InitCov    torch.Tensor
	Iterations int // linearisations of each update; 0 means 1
	Memory     int // bytes that a matrix [d, d] may take; 0 is the default of curvature.Options
}

// Build checks the configuration. Forward and Outer are the likelihood. The prior is that of the target, if it has
// parts, or InitSD, InitSDs or InitCov, which go first; the target may be empty.
func (c GaussNewton) Build(target infer.Target) (infer.Transform, error) {
	const name = "ekf.GaussNewton"
	if c.Forward == nil {
		return nil, &infer.FieldError{Type: name, Field: "Forward", Value: "nil",
			Allowed: "it is needed: the outputs z = f(θ, x), of shape [n, ...]"}
	}
	if c.Outer == nil {
		return nil, &infer.FieldError{Type: name, Field: "Outer", Value: "nil",
			Allowed: "it is needed: the log likelihoods log p(y_i|z_i), of shape [n]"}
	}
	if c.Iterations < 0 {
		return nil, &infer.FieldError{Type: name, Field: "Iterations", Value: c.Iterations,
			Allowed: "it must be at least 0, where 0 means 1"}
	}
	c.Iterations = max(c.Iterations, 1)
	o, err := options{name: name, target: target, perDatum: curvature.Likelihood(c.Forward, c.Outer), lr: c.LR,
		memory: c.Memory, walk: walk{c.TransitionSD, c.TransitionSDs}, sd: c.InitSD, sds: c.InitSDs,
		cov: c.InitCov}.checked()
	if err != nil {
		return nil, err
	}
	if o.bayes {
		o.lr = infer.Constant(1)
	}
	return o.rooted(func(each curvature.PerDatum, at infer.Params, l torch.Tensor, b infer.Batch, lr float64) step {
		return c.update(each, at, l, b, lr, o.limits())
	}, true), nil
}

// Defaults are 1000 draws after one pass over the data.
func (GaussNewton) Defaults() infer.Options { return infer.Options{Draws: 1000} }

// update works in the coordinates v of θ = μ + L v, with the root L of the predicted covariance.
func (c GaussNewton) update(each curvature.PerDatum, at infer.Params, l torch.Tensor, b infer.Batch, lr float64,
	limits curvature.Options) (u step) {
	start, v := at.Flat, at.Flat.T().MustZerosLike(false)
	for j := range c.Iterations {
		value, grad := gradient(each, at, b)
		values, norms, err := torch.ValuesAndNorms(value, grad, 1)
		approx.Try(err)
		if j == 0 {
			u.value, u.norm = values[0], norms[0]
		}
		if !finite(values[0], norms[0]) {
			// Reported as diverged, also when only a later linearisation fails.
			return step{value: values[0], norm: norms[0], predictive: math.NaN()}
		}
		w := c.whitened(at, b, l, lr, limits)
		pull := approx.T(l).T().MustMv(grad.T(), false).MustMulScalar(ts.FloatScalar(lr), false)
		jump := w.solve(torch.Of(pull))
		if j == 0 {
			u.predictive = lr*u.value + approx.Item(torch.Of(pull.MustDot(jump.T(), false)))/2 - w.logDet()/2
		} else {
			jump = jump.Sub(w.solve(torch.Of(v)))
		}
		v = v.MustAdd(jump.T(), false)
		u.root, u.mean = w.root(l), start.Add(l.T().MustMv(v, false))
		at.Flat = u.mean
	}
	return u
}

// gradient is the log likelihood of the batch, summed over its data, and its gradient.
func gradient(each curvature.PerDatum, p infer.Params, b infer.Batch) (value, grad torch.Tensor) {
	value, grad, err := torch.ValueAndGrad(func(flat torch.Tensor) torch.Tensor {
		l := each(infer.Params{Layout: p.Layout, Flat: flat}, b)
		if len(l.Shape()) == 0 {
			approx.Fail("the outer density returned one number, expected a tensor of shape [n]")
		}
		return l.Sum()
	}, p.Flat)
	if err != nil {
		approx.Fail("log likelihood: %w", err)
	}
	return value, grad
}

// whitened makes the update of a chain for the Gauss-Newton matrix of a batch, times lr.
func (c GaussNewton) whitened(at infer.Params, b infer.Batch, root torch.Tensor, lr float64,
	limits curvature.Options) whitened {
	a, err := curvature.GGNFactor(c.Forward, c.Outer, at, b, limits)
	if err == nil {
		return condition(torch.Of(a.MatMul(root).T().MustMulScalar(ts.FloatScalar(math.Sqrt(lr)), false)))
	}
	if !errors.Is(err, curvature.ErrIndefinite) {
		approx.Try(err)
	}
	f := torch.Must(curvature.GGN(c.Forward, c.Outer, at, b, limits))
	m := approx.T(root).MatMul(f).MatMul(root).T().MustMulScalar(ts.FloatScalar(lr/2), false)
	return conditionOn(torch.Of(m.MustAdd(approx.T(torch.Of(m)).T(), false)))
}
