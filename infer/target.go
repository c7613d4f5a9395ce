package infer

import (
	"errors"
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// Aux is what a log posterior wants back besides its value: named tensors. Nil is fine. With K chains each comes back
// with a leading dimension of K.
type Aux map[string]torch.Tensor

// LogPosterior evaluates a log density, up to a constant, of one point θ on one batch: a tensor of shape []. p.Flat has
// shape [d], also when there are several chains. Inside it a failure of an operation arrives as an error of the method
// that called it.
type LogPosterior func(p Params, b Batch) (logp torch.Tensor, aux Aux)

// Target is an unnormalised log density over params. At temperature T its density on unconstrained space is
//
//	exp(Data · LogPosterior / T) · |Jacobian|
//
// so that T = 1 is the Bayes posterior for every method, whatever the size of the data, and T = 0 is the mode of the
// density that the user wrote. The Jacobian is never tempered: at every T the constrained values have the density
// p^(1/T). A step size multiplies the gradient of LogPosterior, so it does not depend on Data. [Mean], [Sum] and
// [FromParts] make a target of functions; a compiled model has one.
type Target struct {
	LogPosterior LogPosterior // mean over the data: (1/N) log prior + (1/n) Σ log likelihood for a batch of n data
	Data         int          // N; 0 or 1 where LogPosterior is the whole log density
	LogJacobian  LogPosterior // log |Jacobian| of the map from unconstrained space; nil for none
	Parts        Parts        // prior and likelihood apart; nil where the model cannot tell them
	// Prior draws from the prior one point for each stream: params of shape [K, d] on unconstrained space. A target that
	// has one says that the prior of its Parts, with the Jacobian, is normalized. The error of a prior that is not names
	// the site. Nil where the prior cannot be drawn from.
	Prior func(b Batch, s torch.Streams) (Params, error)
	// Program is what made the target, for methods that need more of a model than its density: its variables, one by one.
	// Nil for functions.
	Program any

	plain func(x []float64) float64 // the whole log density in plain Go; nil where it has tensors
	wrong error                     // of what made the target

	joint       bool         // Parts evaluate the Jacobian too
	compilation *compilation // of the run that the target is built for; nil for eager gradients
}

// Weights are what the three parts of a log density, Prior, Likelihood and Jacobian, count in an evaluation. A part of
// weight 0 is left out.
type Weights struct{ Prior, Likelihood, Jacobian float64 }

// Parts evaluates the parts of a log density together, each on the scale of the sum over data:
//
//	Prior · log p(θ) + Likelihood · (N/n) Σ log p(y_i|θ) + Jacobian · log |Jacobian|
type Parts func(p Params, b Batch, w Weights) (torch.Tensor, Aux)

// Mean is the target of a log posterior that is a mean over n data. With n = 0 the function is the whole log density.
func Mean(f LogPosterior, n int) Target { return Target{LogPosterior: f, Data: n} }

// Sum is the target of a log posterior that is a sum: the log prior and the log likelihood of n data.
func Sum(f LogPosterior, n int) Target {
	if f == nil || n <= 1 {
		return Target{LogPosterior: f}
	}
	mean := func(p Params, b Batch) (torch.Tensor, Aux) {
		value, aux := f(p, b)
		return scale(value, 1/float64(n)), aux
	}
	return Target{LogPosterior: mean, Data: n}
}

// FromParts is the target of a log prior and a log likelihood of n data that are functions apart, both
// on the scale of the sum over data: of a batch the log likelihood counts N/n times. Its aux are the
// parts, "log_prior" and "log_likelihood".
func FromParts(f func(p Params, b Batch) (logPrior, logLikelihood torch.Tensor), n int) Target {
	if f == nil {
		return Target{Data: n}
	}
	return WithParts(func(p Params, b Batch, w Weights) (torch.Tensor, Aux) {
		prior, likelihood := f(p, b)
		if per := b.PerEpoch(); per > 0 && n > 0 { // in the place of N/n; a mean alone does not tell N
			likelihood = scale(likelihood, float64(per)*float64(torch.Must(b.Size()))/float64(n))
		}
		x, y := prior.T(), likelihood.T()
		value := torch.Must(torch.Combine(torch.Term{Coeff: w.Prior, Tensor: torch.Of(x)},
			torch.Term{Coeff: w.Likelihood, Tensor: torch.Of(y)}))
		return value, Aux{"log_prior": torch.Of(x), "log_likelihood": torch.Of(y)}
	}, n, false)
}

// WithParts is the target of parts that are evaluated together, over n data. jacobian says whether
// they have a Jacobian.
func WithParts(parts Parts, n int, jacobian bool) Target {
	own := parts
	parts = func(p Params, b Batch, w Weights) (torch.Tensor, Aux) {
		return tied(func(p Params, b Batch) (torch.Tensor, Aux) { return own(p, b, w) })(p, b)
	}
	t := Target{Data: n, Parts: parts, joint: jacobian}
	mean := Weights{Prior: 1 / t.N(), Likelihood: 1 / t.N()}
	t.LogPosterior = func(p Params, b Batch) (torch.Tensor, Aux) { return parts(p, b, mean) }
	if jacobian {
		t.LogJacobian = func(p Params, b Batch) (torch.Tensor, Aux) { return parts(p, b, Weights{Jacobian: 1}) }
	}
	return t
}

// tied is a part of a density whose gradient is zero where it does not depend on the point, such as the density of a
// uniform prior or the log Jacobian of a linear map.
func tied(f LogPosterior) LogPosterior {
	return func(p Params, b Batch) (torch.Tensor, Aux) {
		value, aux := f(p, b)
		if !p.tied && (!p.Flat.T().MustRequiresGrad() || value.T().MustRequiresGrad()) {
			return value, aux
		}
		return p.Flat.Mul(0).Sum().Add(value), aux
	}
}

// retied evaluates f with tied parts where they turn out to have no gradient, which mapped over points no value tells.
func retied(f func(tie bool) error) error {
	err := f(false)
	if errors.Is(err, torch.ErrNoGradient) {
		return f(true)
	}
	return err
}

// N is the number of data, at least 1: what turns a mean into a sum.
func (t Target) N() float64 { return float64(max(t.Data, 1)) }

// Density is LogPosterior + jacobian · LogJacobian. With jacobian = T/N its N/T-fold is the log
// density at temperature T.
func (t Target) Density(jacobian float64) LogPosterior {
	if jacobian == 0 || t.LogJacobian == nil {
		return t.LogPosterior
	}
	if t.joint {
		w := Weights{Prior: 1 / t.N(), Likelihood: 1 / t.N(), Jacobian: jacobian}
		return func(p Params, b Batch) (torch.Tensor, Aux) { return t.Parts(p, b, w) }
	}
	return func(p Params, b Batch) (torch.Tensor, Aux) {
		value, aux := t.LogPosterior(p, b)
		logJ, _ := t.LogJacobian(p, b)
		return torch.Must(torch.Combine(torch.Term{Coeff: 1, Tensor: value},
			torch.Term{Coeff: jacobian, Tensor: logJ})), aux
	}
}

// Weigh is the log density whose parts count with weights, on the scale of the sum over data. A target without Parts
// counts prior and likelihood alike, with the weight of the likelihood.
func (t Target) Weigh(w Weights) LogPosterior {
	if t.joint {
		return func(p Params, b Batch) (torch.Tensor, Aux) { return t.Parts(p, b, w) }
	}
	return func(p Params, b Batch) (torch.Tensor, Aux) {
		var terms []torch.Term
		switch {
		case t.Parts != nil && (w.Prior != 0 || w.Likelihood != 0):
			v, _ := t.Parts(p, b, Weights{Prior: w.Prior, Likelihood: w.Likelihood})
			terms = append(terms, torch.Term{Coeff: 1, Tensor: v})
		case t.Parts == nil && w.Likelihood != 0:
			v, _ := t.LogPosterior(p, b)
			terms = append(terms, torch.Term{Coeff: w.Likelihood * t.N(), Tensor: v})
		}
		if t.LogJacobian != nil && w.Jacobian != 0 {
			v, _ := t.LogJacobian(p, b)
			terms = append(terms, torch.Term{Coeff: w.Jacobian, Tensor: v})
		}
		if len(terms) == 0 {
			return p.Flat.Sum().Mul(0), nil
		}
		return torch.Must(torch.Combine(terms...)), nil
	}
}

// Weighted is the target whose parts count with other weights; its Parts must not be nil.
func (t Target) Weighted(by Weights) Target {
	parts := t.Parts
	out := WithParts(func(p Params, b Batch, w Weights) (torch.Tensor, Aux) {
		w.Prior *= by.Prior
		w.Likelihood *= by.Likelihood
		w.Jacobian *= by.Jacobian
		return parts(p, b, w)
	}, t.Data, t.joint)
	if f := t.LogJacobian; f != nil && !t.joint {
		out.LogJacobian = func(p Params, b Batch) (torch.Tensor, Aux) {
			value, aux := f(p, b)
			return scale(value, by.Jacobian), aux
		}
	}
	return out
}

// ByPrior is the target whose evaluations weigh the prior: its LogPosterior is the log likelihood, and its LogJacobian
// the log prior with tempering times the log Jacobian, so that Density(λ/N) is
//
//	(1/N) log likelihood + (λ/N) (log prior + tempering · log |Jacobian|)
//
// Its Parts must not be nil. In a run one compiled function serves all weights.
func (t Target) ByPrior(tempering float64) Target {
	parts, logJacobian := t.Parts, t.LogJacobian
	out := WithParts(func(p Params, b Batch, w Weights) (torch.Tensor, Aux) {
		by := Weights{Prior: w.Jacobian, Likelihood: w.Likelihood}
		if t.joint {
			by.Jacobian = tempering * w.Jacobian
		}
		value, aux := parts(p, b, by)
		if t.joint || logJacobian == nil || w.Jacobian*tempering == 0 {
			return value, aux
		}
		logJ, _ := logJacobian(p, b)
		return torch.Must(torch.Combine(torch.Term{Coeff: 1, Tensor: value},
			torch.Term{Coeff: tempering * w.Jacobian, Tensor: logJ})), aux
	}, t.Data, true)
	out.compilation = t.compilation
	return out
}

// Summed is the target on the scale of the sum over data; its Parts must not be nil.
func (t Target) Summed() Target {
	out := WithParts(t.Parts, 0, t.LogJacobian != nil)
	out.compilation, out.Program = t.compilation, t.Program
	return out
}

// Replaced is a target of which f is the whole log density. In a run its gradients are compiled as those of t are.
func (t Target) Replaced(f LogPosterior) Target {
	return Target{LogPosterior: f, compilation: t.compilation}
}

// Compiled is the target whose gradients are compiled outside of a run too, in a tier.
func (t Target) Compiled(tier native.Tier) Target {
	t.compilation = &compilation{options: native.Options{Tier: tier}}
	return t
}

// check makes sure that there is a density.
func (t Target) check() error {
	if t.wrong != nil {
		return t.wrong
	}
	if t.LogPosterior == nil {
		return fmt.Errorf("the log posterior is nil: %w", ErrConfig)
	}
	if t.Data < 0 {
		return &FieldError{Type: "infer.Target", Field: "Data", Value: t.Data, Allowed: "it must be the number of data, or 0"}
	}
	return t.checkDiscrete()
}

// scale is c·x.
func scale(x torch.Tensor, c float64) torch.Tensor {
	return torch.Of(torch.Must(x.T().MulScalar(ts.FloatScalar(c), false)))
}

// errNoParts says that a function needs parts.
var errNoParts = errors.New("the target cannot tell its prior and likelihood apart: " +
	"make it with infer.FromParts, or compile a model")
