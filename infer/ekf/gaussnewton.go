package ekf

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/kelvin-ppl/kelvin/infer/method"
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
	TransitionSDs *ts.Tensor
	// InitSD is the standard deviation of each parameter to start with. 0 means the target's prior: its mean and its
	// covariance, or for one that is not Gaussian its mode and curvature on unconstrained space; and 1 for a target
	// without parts.
	InitSD float64
	// InitSDs are standard deviations for each parameter, of shape [d] or that of the params, in place of InitSD; nil for
	// none.
	InitSDs    *ts.Tensor
	InitCov    *ts.Tensor // covariance matrix to start with, of shape [d, d], in place of InitSD and InitSDs; nil for none
	Iterations int        // linearisations of each update; 0 means 1
	Memory     int64      // bytes that a matrix [d, d] may take; 0 is the default of curvature.Options
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
	bayes := c.LR == nil
	var err error
	if c.LR, err = method.CheckSchedule(name, "LR", c.LR, infer.Constant(1), 0, false); err != nil {
		return nil, err
	}
	g, err := newGaussian(name, c.TransitionSD, c.TransitionSDs, c.InitSD, c.InitSDs, c.InitCov, c.Memory)
	if err != nil {
		return nil, err
	}
	g.target, g.perDatum, g.lr = target, curvature.Likelihood(c.Forward, c.Outer), c.LR
	g.bayes = bayes
	g.prior = target.Parts != nil && c.InitSD == 0 && c.InitSDs == nil && c.InitCov == nil
	return &gaussNewton{gaussian: g, c: c}, nil
}

// Defaults are 1000 draws after one pass over the data.
func (GaussNewton) Defaults() infer.Options { return infer.Options{Draws: 1000} }

var _ interface {
	infer.Transform
	infer.Restorer
	infer.Sampler
	infer.Passer
	infer.Batcher
	infer.Noter
} = (*gaussNewton)(nil)

type gaussNewton struct {
	gaussian
	c GaussNewton
}

func (t *gaussNewton) Update(state infer.State, b infer.Batch) (infer.State, infer.Info, error) {
	s, err := method.StateAs[DenseState](state, t.name)
	if err != nil {
		return nil, infer.Info{}, err
	}
	lr, err := t.rate(s.Step, b)
	if err != nil {
		return nil, infer.Info{}, err
	}
	q, err := t.walk.at(s.Step)
	if err != nil {
		return nil, infer.Info{}, err
	}
	next := DenseState{Params: s.Params, Step: s.Step + 1}
	var info infer.Info
	err = torch.Do(func(scope *torch.Scope) error {
		if s, err = t.started(s, b); err != nil {
			return err
		}
		predicted, err := t.predict(s, q)
		if err != nil {
			return err
		}
		n := s.Params.Chains()
		e := infer.Evaluation{Values: make([]float64, n), Norms: make([]float64, n)}
		predictive := make([]float64, n)
		means, roots := make([]*ts.Tensor, n), make([]*ts.Tensor, n)
		for k := range n {
			at := infer.Params{Layout: s.Params.Layout, Flat: chain(s.Params, s.Params.Flat, k)}
			u, err := t.update(at, predicted[k], b, lr)
			if err != nil {
				return err
			}
			e.Values[k], e.Norms[k], predictive[k], means[k], roots[k] = u.value, u.norm, u.predictive, u.mean, u.root
			if u.mean == nil {
				means[k] = same(at.Flat)
			}
		}
		info = method.NewInfo(e, lr, 0)
		info.Stats = map[string][]float64{"log_predictive": predictive}
		return next.set(scope, s, means, roots)
	})
	if err != nil {
		return nil, infer.Info{}, fmt.Errorf("%s: %w", t.name, err)
	}
	return next, info, nil
}

// step is an update of one chain. The mean is nil where the log likelihood or its gradient is not finite.
type step struct {
	value, norm, predictive float64
	mean, root              *ts.Tensor
}

// update works in the coordinates v of θ = μ + L v, with the root L of the predicted covariance.
func (t *gaussNewton) update(at infer.Params, l *ts.Tensor, b infer.Batch, lr float64) (u step, err error) {
	start, v := at.Flat, at.Flat.MustZerosLike(false)
	for j := range t.c.Iterations {
		value, grad, err := t.gradient(at, b)
		if err != nil {
			return u, err
		}
		values, norms, err := torch.ValuesAndNorms(value, grad, 1)
		if err != nil {
			return u, err
		}
		if j == 0 {
			u.value, u.norm = values[0], norms[0]
		}
		if bad := values[0] + norms[0]; math.IsNaN(bad) || math.IsInf(bad, 0) {
			// Reported as diverged, also when only a later linearisation fails.
			return step{value: values[0], norm: norms[0], predictive: math.NaN()}, nil
		}
		w, err := t.ggn(at, b, l, lr)
		if err != nil {
			return u, err
		}
		pull := transposed(l).MustMv(grad, false).MustMulScalar(ts.FloatScalar(lr), false)
		jump, err := w.solve(pull)
		if err != nil {
			return u, err
		}
		if j == 0 {
			logDet, err := w.logDet()
			if err != nil {
				return u, err
			}
			u.predictive = lr*u.value + torch.Must(torch.Item(pull.MustDot(jump, false)))/2 - logDet/2
		} else {
			back, err := w.solve(v)
			if err != nil {
				return u, err
			}
			jump = jump.MustSub(back, false)
		}
		v = v.MustAdd(jump, false)
		u.root, u.mean = w.root(l), start.MustAdd(l.MustMv(v, false), false)
		at.Flat = u.mean
	}
	return u, nil
}

// gradient is the log likelihood of the batch, summed over its data, and its gradient.
func (t *gaussNewton) gradient(p infer.Params, b infer.Batch) (value, grad *ts.Tensor, err error) {
	value, grad, err = torch.ValueAndGrad(func(flat *ts.Tensor) *ts.Tensor {
		each := t.perDatum(infer.Params{Layout: p.Layout, Flat: flat}, b)
		if len(each.Shape()) == 0 {
			torch.Must(0, errNoLikelihood)
		}
		return each.Sum().T()
	}, p.Flat)
	if err != nil {
		return nil, nil, fmt.Errorf("log likelihood: %w", err)
	}
	return value, grad, nil
}
