package laplace

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/kelvin-ppl/kelvin/infer/internal/approx"
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
	Precision() (torch.Tensor, error)
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
	Linearized(f curvature.Forward, b infer.Batch, o curvature.LinearizedOptions) (mean, cov torch.Tensor, err error)

	gaussian() Gaussian
}

// Gaussian is what all states hold: their fields and methods. Its structure, a diagonal, a matrix or Kronecker factors,
// is that of its tensors. They have a leading K for K chains.
type Gaussian struct {
	Params    infer.Params // θ̂, of shape [d] or [K, d]; no update moves it
	Curvature torch.Tensor // of the data, without the prior where that is known by itself; nil for KFAC
	// Inputs and Outputs are the curvature of KFAC, flat, one layer after the other: Σ a aᵀ, each [in + 1, in + 1] (or
	// [in, in] without bias), and Σ Sᵀ H S, each [out, out].
	Inputs, Outputs torch.Tensor
	Prior           torch.Tensor // prior precision, of the shape of P; of KFAC one number for each layer
	Jacobian        torch.Tensor // −∇² log |Jacobian|, which the precision has T times; nil where there is no Jacobian
	Data            torch.Tensor // number of data so far, of shape [] or [K]; times Scale for KFAC
	Gradient        torch.Tensor // of the log density at temperature T, on the scale of the sum over data: 0 at a mode
	Layers          []Layer      // of KFAC
	Damping         float64      // δ, added to the diagonal of the precision
	Temperature     float64      // T
	Step            int          // updates so far
}

// DiagState is the state of [DiagFisher] and [DiagGGN]: independent normals. Curvature and Prior have the shape of the
// point, and so has Precision.
type DiagState struct{ Gaussian }

// DenseState is the state of [DenseFisher], [DenseGGN] and [DenseHessian]. Curvature, Prior and Precision have shape
// [d, d] or [K, d, d].
type DenseState struct{ Gaussian }

// KFACState is the state of [KFAC]. Its Precision is a matrix with zeros between layers: for small networks, and
// refused beyond 1 GiB.
type KFACState struct{ Gaussian }

// structure is that of the state's tensors; of a state without any a diagonal, whose functions say what is missing.
func (s Gaussian) structure() structure {
	point, _ := torch.Shape(s.Params.Flat)
	curvature, _ := torch.Shape(s.Curvature)
	switch {
	case s.Inputs != (torch.Tensor{}):
		return kronecker{s.Layers}
	case len(curvature) <= len(point):
		return diagonal{}
	}
	return matrix{}
}

// parts are the tensors of the state by their names, nil where it has none: its own, and those of all states of a pass.
func (s *Gaussian) parts() (own, shared map[string]*torch.Tensor) {
	return map[string]*torch.Tensor{"params": &s.Params.Flat, "curvature": &s.Curvature, "inputs": &s.Inputs,
			"outputs": &s.Outputs, "data": &s.Data, "gradient": &s.Gradient},
		map[string]*torch.Tensor{"prior": &s.Prior, "jacobian": &s.Jacobian}
}

func (s Gaussian) gaussian() Gaussian { return s }

// Position is θ̂.
func (s Gaussian) Position() infer.Params { return s.Params }

// Steps is the number of updates so far.
func (s Gaussian) Steps() int { return s.Step }

// Tensors are what the state owns, and what it shares with others: all states of a pass share the
// prior and the Jacobian.
func (s Gaussian) Tensors() (owned, shared infer.Tensors) {
	own, others := s.parts()
	have := func(from map[string]*torch.Tensor) infer.Tensors {
		out := infer.Tensors{}
		for name, x := range from {
			if *x != (torch.Tensor{}) {
				out[name] = *x
			}
		}
		return out
	}
	return have(own), have(others)
}

// Save names the parts of the state.
func (s Gaussian) Save() infer.Saved {
	owned, shared := s.Tensors()
	return infer.Saved{Steps: s.Step, Tensors: owned, Shared: shared}
}

// of is chain k.
func (s Gaussian) of(k int) Gaussian {
	p := s.Params
	own, shared := s.parts()
	for _, parts := range []map[string]*torch.Tensor{own, shared} {
		for _, x := range parts {
			*x = approx.Chain(p, *x, k)
		}
	}
	return s
}

// kept gives the state tensors of its own, which outlive the scope, so that freeing another leaves it whole.
func (s *Gaussian) kept(scope *torch.Scope) {
	own, shared := s.parts()
	for _, x := range own {
		if *x != (torch.Tensor{}) {
			*x = approx.Copy(*x)
			scope.Keep(*x)
		}
	}
	for _, x := range shared {
		torch.Detach(*x) // for all states to come, whatever scopes they are of
	}
}

// likelihood is the curvature of the data and the Jacobian.
func (s Gaussian) likelihood() torch.Tensor {
	if s.Jacobian == (torch.Tensor{}) || s.Temperature == 0 {
		return s.Curvature
	}
	return plus(1, s.Curvature, s.Temperature, s.Jacobian)
}

// sum is the curvature of the log density at temperature T: of the data, the Jacobian and the prior.
func (s Gaussian) sum() torch.Tensor { return s.likelihood().Add(s.Prior) }

// bayes is the state at temperature 1, without damping: what another model takes for its prior.
func (s Gaussian) bayes() Gaussian {
	s.Temperature, s.Damping = 1, 0
	return s
}

// posteriorOf is a state as one of this package.
func posteriorOf(function string, s infer.State) (g Gaussian, err error) {
	p, ok := s.(Posterior)
	if !ok {
		return g, fmt.Errorf("laplace.%s: the state is a %T, expected one of this package: laplace.DiagState, "+
			"DenseState or KFACState", function, s)
	}
	return p.gaussian(), nil
}

// single refuses a state with a chain axis.
func (s Gaussian) single(function string) error {
	if !s.Params.Batched() {
		return nil
	}
	return fmt.Errorf("laplace.%s: the state has %d chains, each a Gaussian of its own: pick one with Posterior.Chain",
		function, s.Params.Chains())
}

// Precision is that of [Posterior].
func (s Gaussian) Precision() (p torch.Tensor, err error) {
	err = torch.Do(func(scope *torch.Scope) error {
		p = s.structure().precision(s)
		scope.Keep(p)
		return nil
	})
	return p, err
}

// AsPrior is that of [Posterior].
func (s Gaussian) AsPrior() (Precision, error) {
	p, err := s.bayes().Precision()
	if _, ok := s.structure().(diagonal); ok {
		return PerElement(p), err
	}
	return Matrix(p), err
}

// Chain is that of [Posterior].
func (s Gaussian) Chain(k int) (Posterior, error) {
	if n := s.Params.Chains(); k < 0 || k >= n {
		return nil, fmt.Errorf("laplace.Chain: chain %d of a state with %d: they count from 0: %w", k, n, infer.ErrConfig)
	}
	as := s.structure().state
	if !s.Params.Batched() {
		return as(s), nil
	}
	err := torch.Do(func(scope *torch.Scope) error {
		s = s.of(k)
		method.Keep(scope, s)
		torch.Detach(s.Prior, s.Jacobian)
		return nil
	})
	return as(s), err
}

// draw draws n points from N(θ̂, T P⁻¹). Draw i is of chain i mod K.
func (s Gaussian) draw(n int, streams *torch.Streams) (infer.Params, error) {
	if err := method.CheckDraws(nameOf(s.structure()), n, streams); err != nil {
		return infer.Params{}, err
	}
	return method.DrawGaussians(s.Params, n, s.Params.Layout.Dim(), streams, func(eps torch.Tensor) (torch.Tensor,
		error) {
		return s.deviations(eps), nil
	})
}

// deviations turns standard normal numbers [K, n, d] into draws from N(0, T P⁻¹).
func (s Gaussian) deviations(eps torch.Tensor) torch.Tensor {
	x := s.structure().root(s, approx.T(eps))
	return scaled(math.Sqrt(s.Temperature), approx.T(x))
}

// LogEvidence is that of [Posterior].
func (s Gaussian) LogEvidence(logJoint float64) (log float64, err error) {
	if err := s.single("LogEvidence"); err != nil {
		return 0, err
	}
	if math.IsNaN(logJoint) || math.IsInf(logJoint, 0) {
		return 0, fmt.Errorf("laplace.LogEvidence: the log joint density is %v: %w", logJoint, infer.ErrNonFinite)
	}
	s.Temperature = 1
	err = torch.Do(func(*torch.Scope) error {
		log = logJoint + 0.5*float64(s.Params.Layout.Dim())*math.Log(2*math.Pi) - 0.5*s.structure().logDet(s)
		return nil
	})
	return log, err
}

// LogPrior is that of [Posterior].
func (s Gaussian) LogPrior(weight float64) (func(p infer.Params) torch.Tensor, error) {
	if err := s.single("LogPrior"); err != nil {
		return nil, err
	}
	if err := method.CheckValue("laplace.LogPrior", "weight", weight, 0, true); err != nil {
		return nil, err
	}
	mean := s.Params
	var constant float64
	var quadratic func(x torch.Tensor) torch.Tensor
	err := torch.Do(func(scope *torch.Scope) error {
		s := s.bayes()
		constant = 0.5*s.structure().logDet(s) + 0.5*float64(mean.Layout.Dim())*math.Log(weight/(2*math.Pi))
		quadratic = s.structure().quadratic(s, scope)
		mean.Flat = approx.Copy(mean.Flat) // the prior may outlive the state
		scope.Keep(mean.Flat)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("laplace.LogPrior: %w", err)
	}
	return func(p infer.Params) torch.Tensor {
		if !p.Layout.Equal(mean.Layout) {
			torch.Must(p.Flat, fmt.Errorf("laplace.LogPrior: the point has layout %v, expected %v: %w", p.Layout,
				mean.Layout, infer.ErrLayout))
		}
		x := p.Flat.Sub(mean.Flat).T()
		return quadratic(torch.Of(x)).Mul(-weight / 2).Add(constant)
	}, nil
}

// Linearized is that of [Posterior].
func (s Gaussian) Linearized(f curvature.Forward, b infer.Batch, o curvature.LinearizedOptions) (mean, cov torch.Tensor,
	err error) {
	if err := s.single("Linearized"); err != nil {
		return torch.Tensor{}, torch.Tensor{}, err
	}
	if err := method.CheckValue("laplace.Linearized", "NoiseSD", o.NoiseSD, 0, false); err != nil {
		return torch.Tensor{}, torch.Tensor{}, err
	}
	noise := o.NoiseSD
	o.NoiseSD = 0
	err = torch.Do(func(scope *torch.Scope) error {
		linearized, spread := curvature.LinearizedFactor, s.structure().spread(s)
		if len(spread.T().MustSize()) == 1 {
			linearized = curvature.Linearized
		}
		if mean, cov, err = linearized(f, s.Params, b, spread, o); err != nil {
			return err
		}
		cov = scaled(s.Temperature, cov)
		cov.T().MustDiagonal(0, 1, 2, false).MustAddScalar_(ts.FloatScalar(noise * noise))
		scope.Keep(mean, cov)
		return nil
	})
	if err != nil {
		return torch.Tensor{}, torch.Tensor{}, fmt.Errorf("laplace.Linearized: %w", err)
	}
	return mean, cov, nil
}
