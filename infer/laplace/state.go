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

// Posterior is what the states of this package are: a Gaussian N(θ̂, T P⁻¹). The functions of the package take any of
// them as an infer.State.
type Posterior interface {
	infer.State
	// Precision is P: the curvature of the data, the prior precision and the damping. Its shape is [d] for a diagonal
	// and [d, d] else, with a leading K for K chains.
	Precision() (*ts.Tensor, error)

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
	// handed is P without the damping, as the precision of a prior.
	handed() (Precision, error)
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
	chain(k int) infer.State
}

// posteriorOf is a state as one of this package.
func posteriorOf(function string, s infer.State) (Posterior, error) {
	p, ok := s.(Posterior)
	if !ok {
		return nil, fmt.Errorf(
			"laplace.%s: the state is a %T, expected one of this package: laplace.DiagState, DenseState or KFACState", function,
			s)
	}
	return p, nil
}

// single is a state of this package without a chain axis.
func single(function string, s infer.State) (Posterior, error) {
	p, err := posteriorOf(function, s)
	if err != nil {
		return nil, err
	}
	if p.Position().Batched() {
		return nil, fmt.Errorf("laplace.%s: the state has %d chains, each a Gaussian of its own: pick one with laplace.Chain",
			function, p.Position().Chains())
	}
	return p, nil
}

// Chain is chain k of a state with K chains, from 0, as a state without a chain axis. The tensors are
// views of the state's.
func Chain(s infer.State, k int) (chosen infer.State, err error) {
	p, err := posteriorOf("Chain", s)
	if err != nil {
		return nil, err
	}
	if n := p.Position().Chains(); k < 0 || k >= n {
		return nil, fmt.Errorf("laplace.Chain: chain %d of a state with %d: they count from 0: %w", k, n,
			infer.ErrConfig)
	}
	if !p.Position().Batched() {
		return s, nil
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
