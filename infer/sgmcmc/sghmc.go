package sgmcmc

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// SGHMC is stochastic gradient Hamiltonian Monte Carlo (Chen, Fox and Guestrin 2014), in the explicit Euler-Maruyama form
// of Duffield et al. (2025, section 4): parameters and momenta both move from the old point.
//
//	θ' = θ + ε σ⁻² m
//	m' = m + ε g(θ) − ε σ⁻² α m + √(Tε(2α − Tεβ)) z
//
// The joint target is exp((logPosterior − |m|²/(2σ²))/T). For a Gaussian target of precision λ the variance is about
// (T/λ)(1 + ελ/α), and the recursion is stable only for ελ < α at moderate steps. At T = 0 it is gradient ascent with
// momentum. In terms of stochastic gradient descent with learning rate ℓ and momentum μ: ℓ = ε²/σ², μ = 1 − εα/σ².
type SGHMC struct {
	LR    infer.Schedule // step size ε; required
	Alpha infer.Schedule // friction α; nil means 1. (The 0.01 of some libraries is unstable at most step sizes.)
	Beta  float64        // β, estimated variance of the gradient noise; default 0
	// EstimateBeta finds β for each element from the gradients of minibatches; nil for Beta. Where there is more gradient
	// noise than noise is wanted none is injected; the statistic "clipped" is the share of such elements.
	EstimateBeta *Estimate
	Sigma        float64        // σ, standard deviation of the momenta at T = 1; 0 means 1
	Temperature  infer.Schedule // T; 1/N with a mean log posterior, nil means 1
	// Momenta are the momenta to start with, of the shape of the params, or [d] for all of K chains alike; nil draws them
	// from N(0, Tσ²), their stationary law, and at T = 0 means 0.
	Momenta *ts.Tensor
}

// SGHMCState is the state of [SGHMC].
type SGHMCState struct {
	Params   infer.Params  // θ, of shape [d] or [K, d]
	Momenta  *ts.Tensor    // m, of the same shape
	Step     int64         // updates so far
	Streams  torch.Streams // of the K chains
	Variance *ts.Tensor    // V, the estimated variance of the gradient, of the same shape; nil without EstimateBeta
}

// Build checks the configuration and binds it to a log posterior.
func (c SGHMC) Build(target infer.Target) (infer.Transform, error) {
	gradient, err := infer.NewGradient(target)
	if err != nil {
		return nil, fmt.Errorf("sgmcmc.SGHMC: %w", err)
	}
	if c.LR, err = method.CheckSchedule("sgmcmc.SGHMC", "LR", c.LR, nil, 0, true); err != nil {
		return nil, err
	}
	if c.Alpha, err = method.CheckSchedule("sgmcmc.SGHMC", "Alpha", c.Alpha, infer.Constant(1), 0, false); err != nil {
		return nil, err
	}
	if c.Temperature, err = method.CheckSchedule("sgmcmc.SGHMC", "Temperature", c.Temperature, infer.Constant(1), 0, false); err != nil {
		return nil, err
	}
	if c.Sigma == 0 {
		c.Sigma = 1
	}
	if err := method.CheckValue("sgmcmc.SGHMC", "Sigma", c.Sigma, 0, true); err != nil {
		return nil, err
	}
	if err := method.CheckValue("sgmcmc.SGHMC", "Beta", c.Beta, 0, false); err != nil {
		return nil, err
	}
	if c.EstimateBeta, err = checkNoise("sgmcmc.SGHMC", c.EstimateBeta, c.Beta); err != nil {
		return nil, err
	}
	if _, err := noiseScale("sgmcmc.SGHMC", 0, c.LR(0), c.Alpha(0), c.Beta, c.Temperature(0)); err != nil {
		return nil, err
	}
	return &sghmc{SGHMC: c, gradient: gradient}, nil
}

type sghmc struct {
	SGHMC
	gradient infer.Gradient
}

func (t *sghmc) Init(p infer.Params) (infer.State, error) {
	return t.InitStreams(p, torch.NewStreams(0, p.Chains()))
}

func (t *sghmc) InitStreams(p infer.Params, streams torch.Streams) (infer.State, error) {
	s := SGHMCState{Params: p, Streams: streams}
	var err error
	s.Params.Flat, s.Momenta, err = startWithMomenta("sgmcmc.SGHMC", p, t.Momenta, t.Sigma*math.Sqrt(t.Temperature(0)), nil, &s.Streams)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (t *sghmc) Update(state infer.State, b infer.Batch) (infer.State, infer.Info, error) {
	s, err := method.StateAs[SGHMCState](state, "sgmcmc.SGHMC")
	if err != nil {
		return nil, infer.Info{}, err
	}
	eps, temp, err := rates("sgmcmc.SGHMC", s.Step, t.LR, t.Temperature)
	if err != nil {
		return nil, infer.Info{}, err
	}
	alpha := t.Alpha(s.Step)
	if err := method.CheckValue("sgmcmc.SGHMC", fmt.Sprintf("Alpha at update %d", s.Step), alpha, 0, false); err != nil {
		return nil, infer.Info{}, err
	}
	scale, err := noiseScale("sgmcmc.SGHMC", s.Step, eps, alpha, t.Beta, temp)
	if err != nil {
		return nil, infer.Info{}, err
	}
	if err := checkPrepared("sgmcmc.SGHMC", t.EstimateBeta, s.Variance); err != nil {
		return nil, infer.Info{}, err
	}
	next := SGHMCState{Params: s.Params, Step: s.Step + 1, Streams: s.Streams, Variance: s.Variance}
	var info infer.Info
	err = torch.Do(func(scope *torch.Scope) error {
		theta, m := s.Params.Flat, s.Momenta
		e, err := t.gradient.ValueAndGrad(s.Params, b, 0)
		if err != nil {
			return err
		}
		info = method.NewInfo(e, eps, temp)

		rho := 1 / (t.Sigma * t.Sigma)
		next.Params.Flat, err = torch.Combine(torch.Term{Coeff: 1, Tensor: theta}, torch.Term{Coeff: eps * rho, Tensor: m})
		if err != nil {
			return err
		}
		terms := []torch.Term{{Coeff: 1 - eps*rho*alpha, Tensor: m}, {Coeff: eps, Tensor: e.Grad}}
		if t.EstimateBeta == nil {
			terms, err = withNoise(terms, scale, m, &next.Streams)
		} else {
			terms, info.Stats, err = withEstimatedNoise(terms, 2*temp*eps*alpha, nil, eps*eps, s.Variance, m, &next.Streams)
		}
		if err != nil {
			return err
		}
		if next.Momenta, err = torch.Combine(terms...); err != nil {
			return err
		}

		next.Params.Flat, next.Momenta, err = heldPair(theta, m, next.Params.Flat, next.Momenta, info.Diverged)
		scope.Keep(next.Params.Flat, next.Momenta)
		method.KeepAux(scope, info.Aux)
		return err
	})
	if err != nil {
		return nil, infer.Info{}, fmt.Errorf("sgmcmc.SGHMC: %w", err)
	}
	return next, info, nil
}

// Due says whether β is estimated before the next update.
func (t *sghmc) Due(state infer.State, epoch bool) bool {
	s, ok := state.(SGHMCState)
	return ok && t.EstimateBeta.due(s.Step, epoch, s.Variance == nil)
}

// Prepare estimates β.
func (t *sghmc) Prepare(state infer.State, _ bool, next func() (infer.Batch, error)) (infer.State, error) {
	s, err := method.StateAs[SGHMCState](state, "sgmcmc.SGHMC")
	if err != nil {
		return nil, err
	}
	if s.Variance, err = t.EstimateBeta.variance("sgmcmc.SGHMC", t.gradient, s.Params, s.Variance, next); err != nil {
		return nil, err
	}
	return s, nil
}

// KineticTemperatures is |m|²/(dσ²) of each site, for [infer.Thermal].
func (t *sghmc) KineticTemperatures(state infer.State) ([][]float64, error) {
	s, err := method.StateAs[SGHMCState](state, "sgmcmc.SGHMC")
	if err != nil {
		return nil, err
	}
	return kineticTemperatures(s.Params, s.Momenta, nil, 1/(t.Sigma*t.Sigma))
}

func (t *sghmc) Restore(layout *infer.Layout, saved infer.Saved) (infer.State, error) {
	flat, err := saved.Tensor("params")
	if err != nil {
		return nil, err
	}
	m, err := saved.Tensor("momenta")
	return SGHMCState{Params: infer.Params{Layout: layout, Flat: flat}, Momenta: m, Step: saved.Steps, Streams: saved.Streams,
		Variance: saved.Tensors[varianceName]}, err
}

// Position is θ.
func (s SGHMCState) Position() infer.Params { return s.Params }

// Steps is the number of updates so far.
func (s SGHMCState) Steps() int64 { return s.Step }

// Save names the parts of the state.
func (s SGHMCState) Save() infer.Saved {
	return infer.Saved{Steps: s.Step, Streams: s.Streams, Tensors: infer.Tensors{"params": s.Params.Flat, "momenta": s.Momenta},
		Shared: shared(s.Variance, nil)}
}

// Tensors are what the state owns, and what it shares with others.
func (s SGHMCState) Tensors() (owned, shared infer.Tensors) {
	saved := s.Save()
	return saved.Tensors, saved.Shared
}
