package sgmcmc

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// BAOA is stochastic gradient Hamiltonian Monte Carlo by splitting (Leimkuhler and Matthews 2013): a kick (B), half a drift
// (A), the friction and noise solved exactly (O), and the other half of the drift (A), with one gradient for each update.
//
//	m½ = m + ε g(θ)
//	θ½ = θ + ½ε σ⁻² m½
//	m' = e^(−γε) m½ + √(T(1 − e^(−2γε))) σ z,  γ = ασ⁻²
//	θ' = θ½ + ½ε σ⁻² m'
//
// The joint target is exp((logPosterior − |m|²/(2σ²))/T). Half a kick apart it is the symmetric BAOAB, so that the bias of
// θ is of second order in ε. For a Gaussian target there is none at all: with exact gradients θ has variance T/λ and m has
// Tσ² at every stable step, ε²λ < 4σ². Friction never makes it unstable. At T = 0 it is gradient ascent with momentum.
//
// Gradient noise of variance V is not made up for: it heats the momenta by about εV/(2α).
type BAOA struct {
	LR          infer.Schedule // step size ε; required
	Alpha       infer.Schedule // friction α; nil means 1
	Sigma       float64        // σ, standard deviation of the momenta at T = 1; 0 means 1
	Temperature infer.Schedule // T; 1/N with a mean log posterior, nil means 1
	// Momenta are the momenta to start with, of the shape of the params, or [d] for all of K chains alike; nil draws them
	// from N(0, Tσ²), their stationary law, and at T = 0 means 0.
	Momenta *ts.Tensor
}

// BAOAState is the state of [BAOA].
type BAOAState struct {
	Params  infer.Params  // θ, of shape [d] or [K, d]
	Momenta *ts.Tensor    // m, of the same shape
	Step    int64         // updates so far
	Streams torch.Streams // of the K chains
}

// Build checks the configuration and binds it to a log posterior.
func (c BAOA) Build(target infer.Target) (infer.Transform, error) {
	gradient, err := infer.NewGradient(target)
	if err != nil {
		return nil, fmt.Errorf("sgmcmc.BAOA: %w", err)
	}
	if c.LR, err = method.CheckSchedule("sgmcmc.BAOA", "LR", c.LR, nil, 0, true); err != nil {
		return nil, err
	}
	if c.Alpha, err = method.CheckSchedule("sgmcmc.BAOA", "Alpha", c.Alpha, infer.Constant(1), 0, false); err != nil {
		return nil, err
	}
	if c.Temperature, err = method.CheckSchedule("sgmcmc.BAOA", "Temperature", c.Temperature, infer.Constant(1), 0, false); err != nil {
		return nil, err
	}
	if c.Sigma == 0 {
		c.Sigma = 1
	}
	if err := method.CheckValue("sgmcmc.BAOA", "Sigma", c.Sigma, 0, true); err != nil {
		return nil, err
	}
	return &baoa{BAOA: c, gradient: gradient}, nil
}

type baoa struct {
	BAOA
	gradient infer.Gradient
}

func (t *baoa) Init(p infer.Params) (infer.State, error) {
	return t.InitStreams(p, torch.NewStreams(0, p.Chains()))
}

func (t *baoa) InitStreams(p infer.Params, streams torch.Streams) (infer.State, error) {
	s := BAOAState{Params: p, Streams: streams}
	var err error
	s.Params.Flat, s.Momenta, err = startWithMomenta("sgmcmc.BAOA", p, t.Momenta, t.Sigma*math.Sqrt(t.Temperature(0)), nil, &s.Streams)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (t *baoa) Update(state infer.State, b infer.Batch) (infer.State, infer.Info, error) {
	s, err := method.StateAs[BAOAState](state, "sgmcmc.BAOA")
	if err != nil {
		return nil, infer.Info{}, err
	}
	eps, temp, err := rates("sgmcmc.BAOA", s.Step, t.LR, t.Temperature)
	if err != nil {
		return nil, infer.Info{}, err
	}
	alpha := t.Alpha(s.Step)
	if err := method.CheckValue("sgmcmc.BAOA", fmt.Sprintf("Alpha at update %d", s.Step), alpha, 0, false); err != nil {
		return nil, infer.Info{}, err
	}
	next := BAOAState{Params: s.Params, Step: s.Step + 1, Streams: s.Streams}
	var info infer.Info
	err = torch.Do(func(scope *torch.Scope) error {
		theta, m := s.Params.Flat, s.Momenta
		e, err := t.gradient.ValueAndGrad(s.Params, b, 0)
		if err != nil {
			return err
		}
		info = method.NewInfo(e, eps, temp)

		rho := 1 / (t.Sigma * t.Sigma)
		gamma := alpha * rho
		half, err := torch.Combine(torch.Term{Coeff: 1, Tensor: m}, torch.Term{Coeff: eps, Tensor: e.Grad})
		if err != nil {
			return err
		}
		scale := math.Sqrt(-temp*math.Expm1(-2*gamma*eps)) * t.Sigma
		terms, err := withNoise([]torch.Term{{Coeff: math.Exp(-gamma * eps), Tensor: half}}, scale, m, &next.Streams)
		if err != nil {
			return err
		}
		if next.Momenta, err = torch.Combine(terms...); err != nil {
			return err
		}
		drift := eps * rho / 2
		next.Params.Flat, err = torch.Combine(torch.Term{Coeff: 1, Tensor: theta},
			torch.Term{Coeff: drift, Tensor: half}, torch.Term{Coeff: drift, Tensor: next.Momenta})
		if err != nil {
			return err
		}

		next.Params.Flat, next.Momenta, err = heldPair(theta, m, next.Params.Flat, next.Momenta, info.Diverged)
		scope.Keep(next.Params.Flat, next.Momenta)
		method.KeepAux(scope, info.Aux)
		return err
	})
	if err != nil {
		return nil, infer.Info{}, fmt.Errorf("sgmcmc.BAOA: %w", err)
	}
	return next, info, nil
}

// KineticTemperatures is |m|²/(dσ²) of each site, for [infer.Thermal].
func (t *baoa) KineticTemperatures(state infer.State) ([][]float64, error) {
	s, err := method.StateAs[BAOAState](state, "sgmcmc.BAOA")
	if err != nil {
		return nil, err
	}
	return kineticTemperatures(s.Params, s.Momenta, nil, 1/(t.Sigma*t.Sigma))
}

func (t *baoa) Restore(layout *infer.Layout, saved infer.Saved) (infer.State, error) {
	flat, err := saved.Tensor("params")
	if err != nil {
		return nil, err
	}
	m, err := saved.Tensor("momenta")
	return BAOAState{Params: infer.Params{Layout: layout, Flat: flat}, Momenta: m, Step: saved.Steps, Streams: saved.Streams}, err
}

// Position is θ.
func (s BAOAState) Position() infer.Params { return s.Params }

// Steps is the number of updates so far.
func (s BAOAState) Steps() int64 { return s.Step }

// Save names the parts of the state.
func (s BAOAState) Save() infer.Saved {
	return infer.Saved{Steps: s.Step, Streams: s.Streams, Tensors: infer.Tensors{"params": s.Params.Flat, "momenta": s.Momenta}}
}

// Tensors are what the state owns, and what it shares with others.
func (s BAOAState) Tensors() (owned, shared infer.Tensors) {
	saved := s.Save()
	return saved.Tensors, saved.Shared
}
