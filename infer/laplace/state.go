package laplace

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// Posterior is what the states of this package are: a Gaussian N(θ̂, T P⁻¹), or one for each of K chains. A run leaves
// it in Result.State:
//
//	posterior := result.State.(laplace.Posterior)
//
// Evidence, prior and linearised outputs are of a single Gaussian: Chain picks one.
type Posterior interface {
	infer.State
	// Precision is P: the curvature of the data, the prior precision and the damping. Its shape is [d] for a diagonal
	// and [d, d] else, with a leading K for K chains.
	Precision() (*ts.Tensor, error)
	// Chain is chain k of K, from 0, as a state without a chain axis. The tensors are views of the state's.
	Chain(k int) (Posterior, error)
	// LogEvidence is Laplace's approximation of the log marginal likelihood,
	//
	//	log p(D) ≈ log p(D, θ̂) + (d/2) log 2π − ½ log |P|
	//
	// (MacKay 1992; Tierney and Kadane 1986), exact for linear-Gaussian models. logJoint is log p(D|θ̂) + log p(θ̂), on
	// the scale of the sum over data, with all constants of both densities: without those of the prior, models of
	// different size or prior cannot be compared. The state must hold the curvature of all data and the prior
	// precision; its temperature plays no part.
	LogEvidence(logJoint float64) (float64, error)
	// LogPrior makes a log prior of the posterior: the log density of N(θ̂, (λP)⁻¹), a function of a point of shape [d]
	// that can be part of a log posterior, also under vmap,
	//
	//	½ log |λP| − (d/2) log 2π − (λ/2) (θ − θ̂)ᵀ P (θ − θ̂)
	//
	// It carries what was learned in one episode to the next. P holds the curvature of all episodes before, so one
	// penalty, centred at the last optimum, takes the place of a sum of penalties centred at each (Huszár 2018, a
	// correction of elastic weight consolidation). weight is λ; 1 is Bayes. The value is on the scale of the sum over
	// data: a mean log posterior needs 1/N of it. The damping of the state is no part of P here, or it would add up
	// over the episodes; neither is its temperature.
	LogPrior(weight float64) (func(p infer.Params) torch.Tensor, error)
	// AsPrior is the precision as the PriorPrecision of the next episode, P_n = P_{n−1} + curvature of episode n,
	// without its damping. The precision of [KFAC] is a dense matrix here.
	AsPrior() (Precision, error)
	// Linearized is the law of a model's outputs when the model is linearised at θ̂:
	//
	//	z_i ~ N(f(θ̂, x_i), T J_i P⁻¹ J_iᵀ + NoiseSD² I)
	//
	// with the mean of shape [n, C] and the covariance [n, C, C] (Immer et al. 2021). For a regression with Gaussian
	// noise and NoiseSD its standard deviation it is the predictive distribution, exact where f is linear in θ; for a
	// classifier see [Softmax] and [Probit]. Gauss-Newton and Fisher precisions belong to this predictive: plugging
	// draws of θ into the network itself, which they do not describe away from θ̂, often underfits.
	Linearized(f curvature.Forward, b infer.Batch, o curvature.LinearizedOptions) (mean, cov *ts.Tensor, err error)

	// method names the kind of state, for messages.
	method() string
	// tempering is T.
	tempering() float64
	// deviations turns standard normal numbers [K, d, m] into draws from N(0, P⁻¹).
	deviations(z *ts.Tensor) (*ts.Tensor, error)
	// logDet is log |P| of a single chain; with handed, that of P without the damping.
	logDet(handed bool) (float64, error)
	// quadratic returns x ↦ xᵀ P x for x of shape [d], with P of a single chain and without the damping. The tensors
	// that it needs are kept.
	quadratic(scope *torch.Scope) (func(x *ts.Tensor) *ts.Tensor, error)
	// linearized is the distribution of a linearised model's outputs at T = 1.
	linearized(f curvature.Forward, b infer.Batch, o curvature.LinearizedOptions) (mean, cov *ts.Tensor, err error)
	// search prepares the search for the prior precision.
	search(delta []float64, perSite bool) (priorSearch, error)
	// withPrior is the state with another prior precision.
	withPrior(lambda Precision) (infer.State, error)
	// slope is the gradient of the log density at θ̂, on the scale of the sum over data, of the shape of the point.
	slope() *ts.Tensor
	// newton is P⁻¹g for g of shape [K, d, 1].
	newton(g *ts.Tensor) (*ts.Tensor, error)
	// chain is one chain of the state.
	chain(k int) Posterior
}

// posteriorOf is a state as one of this package.
func posteriorOf(function string, s infer.State) (Posterior, error) {
	p, ok := s.(Posterior)
	if !ok {
		return nil, fmt.Errorf("laplace.%s: the state is a %T, expected one of this package: laplace.DiagState, "+
			"DenseState or KFACState", function, s)
	}
	return p, nil
}

// single refuses a state with a chain axis.
func single(function string, p Posterior) error {
	if !p.Position().Batched() {
		return nil
	}
	return fmt.Errorf("laplace.%s: the state has %d chains, each a Gaussian of its own: pick one with Posterior.Chain",
		function, p.Position().Chains())
}

// pick is Chain.
func pick(p Posterior, k int) (chosen Posterior, err error) {
	if n := p.Position().Chains(); k < 0 || k >= n {
		return nil, fmt.Errorf("laplace.Chain: chain %d of a state with %d: they count from 0: %w", k, n, infer.ErrConfig)
	}
	if !p.Position().Batched() {
		return p, nil
	}
	err = torch.Do(func(scope *torch.Scope) error {
		chosen = p.chain(k)
		method.Keep(scope, chosen)
		for _, x := range chosen.Save().Shared {
			torch.Detach(x)
		}
		return nil
	})
	return chosen, err
}

// draw draws n points from N(θ̂, T P⁻¹). Draw i is of chain i mod K.
func draw(s Posterior, n int, streams *torch.Streams) (infer.Params, error) {
	if err := method.CheckDraws(s.method(), n, streams); err != nil {
		return infer.Params{}, err
	}
	p := s.Position()
	return method.DrawGaussians(p, n, int64(p.Layout.Dim()), streams, func(eps *ts.Tensor) (*ts.Tensor, error) {
		x, err := s.deviations(transposed(eps))
		if err != nil {
			return nil, err
		}
		return scaled(math.Sqrt(s.tempering()), transposed(x)), nil
	})
}

// logPrior is LogPrior.
func logPrior(s Posterior, weight float64) (func(p infer.Params) torch.Tensor, error) {
	if err := single("LogPrior", s); err != nil {
		return nil, err
	}
	if err := method.CheckValue("laplace.LogPrior", "weight", weight, 0, true); err != nil {
		return nil, err
	}
	mean := s.Position()
	var constant float64
	var quadratic func(x *ts.Tensor) *ts.Tensor
	err := torch.Do(func(scope *torch.Scope) error {
		logDet, err := s.logDet(true)
		if err != nil {
			return err
		}
		constant = 0.5*logDet + 0.5*float64(mean.Layout.Dim())*math.Log(weight/(2*math.Pi))
		quadratic, err = s.quadratic(scope)
		mean.Flat = same(mean.Flat) // the prior may outlive the state
		scope.Keep(mean.Flat)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("laplace.LogPrior: %w", err)
	}
	return func(p infer.Params) torch.Tensor {
		if !p.Layout.Equal(mean.Layout) {
			torch.Must(p.Flat, fmt.Errorf("laplace.LogPrior: the point has layout %v, expected %v: %w", p.Layout,
				mean.Layout, infer.ErrLayout))
		}
		x := p.Flat.MustSub(mean.Flat, false)
		return torch.Of(quadratic(x)).Mul(-weight / 2).Add(constant)
	}, nil
}
