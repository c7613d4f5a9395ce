package sgmcmc

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// SGNHT is the stochastic gradient Nosé-Hoover thermostat (Ding et al. 2014): SGHMC whose friction ξ is a variable. It
// grows while the momenta are hotter than T and falls while they are colder, and so finds the friction that balances the
// noise of the gradient, which needs no estimate. In explicit Euler-Maruyama form (Duffield et al. 2025, section 4), with
// everything on the right of the old point:
//
//	θ' = θ + ε σ⁻² m
//	m' = m + ε g(θ) − ε σ⁻² ξ m + √(Tε(2α − Tεβ)) z
//	ξ' = ξ + ε (σ⁻² |m|²/d − T)
//
// The joint target is exp((logPosterior − |m|²/(2σ²) − d(ξ − α)²/(2σ²))/T), so that ξ is N(α, Tσ²/d). (The σ² under ξ is
// missing in print; without it the target is not stationary unless σ = 1.) With PerParameter each parameter has a thermostat
// of its own, ξᵢ' = ξᵢ + ε(σ⁻² mᵢ² − T), of law N(α, Tσ²): for gradients that are noisier in some directions than in others.
// Gradient noise of variance V that β does not make up for raises the mean of ξ by about εV/(2T).
//
// Whatever the step size, a chain in equilibrium has kinetic temperature |m|²/(dσ²) equal to T on average, or else ξ would
// drift; the error of the step is in θ. The form with σ⁻¹ in place of σ⁻² that is found in print targets another law.
//
// There is no T = 0: ξ could only grow then, and would stop the chain anywhere.
type SGNHT struct {
	LR    infer.Schedule // step size ε; required
	Alpha infer.Schedule // α, which sets the noise; nil means 1, and 0 is allowed
	Beta  float64        // β, estimated variance of the gradient noise; default 0
	Sigma float64        // σ, standard deviation of the momenta at T = 1; 0 means 1
	// Xi is the thermostat to start with, ξ₀, of all chains and parameters; nil means Alpha(0).
	Xi           *float64
	PerParameter bool           // a thermostat for each parameter instead of one for each chain
	Temperature  infer.Schedule // T, always above 0; 1/N with a mean log posterior, nil means 1
	// Momenta are the momenta to start with, of the shape of the params, or [d] for all of K chains alike; nil draws them
	// from N(0, Tσ²), their stationary law.
	Momenta *ts.Tensor
}

// SGNHTState is the state of [SGNHT].
type SGNHTState struct {
	Params  infer.Params  // θ, of shape [d] or [K, d]
	Momenta *ts.Tensor    // m, of the same shape
	Xi      *ts.Tensor    // ξ, of shape [1] or [K, 1]; with PerParameter of the shape of θ
	Step    int64         // updates so far
	Streams torch.Streams // of the K chains
}

// Build checks the configuration and binds it to a log posterior.
func (c SGNHT) Build(target infer.Target) (infer.Transform, error) {
	gradient, err := infer.NewGradient(target)
	if err != nil {
		return nil, fmt.Errorf("sgmcmc.SGNHT: %w", err)
	}
	if c.LR, err = method.CheckSchedule("sgmcmc.SGNHT", "LR", c.LR, nil, 0, true); err != nil {
		return nil, err
	}
	if c.Alpha, err = method.CheckSchedule("sgmcmc.SGNHT", "Alpha", c.Alpha, infer.Constant(1), 0, false); err != nil {
		return nil, err
	}
	if c.Temperature, err = method.CheckSchedule("sgmcmc.SGNHT", "Temperature", c.Temperature, infer.Constant(1), 0, false); err != nil {
		return nil, err
	}
	if err := checkWarm("Temperature", c.Temperature(0)); err != nil {
		return nil, err
	}
	if c.Sigma == 0 {
		c.Sigma = 1
	}
	if err := method.CheckValue("sgmcmc.SGNHT", "Sigma", c.Sigma, 0, true); err != nil {
		return nil, err
	}
	if err := method.CheckValue("sgmcmc.SGNHT", "Beta", c.Beta, 0, false); err != nil {
		return nil, err
	}
	xi := c.Alpha(0)
	if c.Xi != nil {
		xi = *c.Xi
	}
	if math.IsNaN(xi) || math.IsInf(xi, 0) {
		return nil, &infer.FieldError{Type: "sgmcmc.SGNHT", Field: "Xi", Value: xi, Allowed: "it must be finite"}
	}
	c.Xi = &xi // a copy: the caller's number may change
	if _, err := noiseScale("sgmcmc.SGNHT", 0, c.LR(0), c.Alpha(0), c.Beta, c.Temperature(0)); err != nil {
		return nil, err
	}
	return &sgnht{SGNHT: c, gradient: gradient}, nil
}

// checkWarm refuses T = 0.
func checkWarm(field string, temperature float64) error {
	if temperature != 0 {
		return nil
	}
	return &infer.FieldError{Type: "sgmcmc.SGNHT", Field: field, Value: temperature, Allowed: "it must be greater than 0: " +
		"at T = 0 the thermostat ξ' = ξ + ε|m|²/(dσ²) can only grow, and stops the chain away from a mode; " +
		"SGLD, SGHMC and package optim have a T = 0"}
}

type sgnht struct {
	SGNHT
	gradient infer.Gradient
}

func (t *sgnht) Init(p infer.Params) (infer.State, error) {
	return t.InitStreams(p, torch.NewStreams(0, p.Chains()))
}

func (t *sgnht) InitStreams(p infer.Params, streams torch.Streams) (infer.State, error) {
	s := SGNHTState{Params: p, Streams: streams}
	var err error
	s.Params.Flat, s.Momenta, err = startWithMomenta("sgmcmc.SGNHT", p, t.Momenta, t.Sigma*math.Sqrt(t.Temperature(0)), nil, &s.Streams)
	if err != nil {
		return nil, err
	}
	if s.Xi, err = t.thermostats(s.Params.Flat); err != nil {
		return nil, fmt.Errorf("sgmcmc.SGNHT: %w", err)
	}
	return s, nil
}

// thermostats are the first ξ, in the type and on the device of θ.
func (t *sgnht) thermostats(theta *ts.Tensor) (*ts.Tensor, error) {
	shape, err := torch.Shape(theta)
	if err != nil {
		return nil, err
	}
	if !t.PerParameter {
		shape[len(shape)-1] = 1
	}
	n := 1
	for _, s := range shape {
		n *= int(s)
	}
	xi := make([]float64, n)
	for i := range xi {
		xi[i] = *t.Xi
	}
	device, err := torch.DeviceOf(theta)
	if err != nil {
		return nil, err
	}
	dtype, err := torch.DTypeOfTensor(theta)
	if err != nil {
		return nil, err
	}
	return torch.FromSliceOn(device, dtype, xi, shape...)
}

func (t *sgnht) Update(state infer.State, b infer.Batch) (infer.State, infer.Info, error) {
	s, err := method.StateAs[SGNHTState](state, "sgmcmc.SGNHT")
	if err != nil {
		return nil, infer.Info{}, err
	}
	eps, temp, err := rates("sgmcmc.SGNHT", s.Step, t.LR, t.Temperature)
	if err != nil {
		return nil, infer.Info{}, err
	}
	if err := checkWarm(fmt.Sprintf("Temperature at update %d", s.Step), temp); err != nil {
		return nil, infer.Info{}, err
	}
	alpha := t.Alpha(s.Step)
	if err := method.CheckValue("sgmcmc.SGNHT", fmt.Sprintf("Alpha at update %d", s.Step), alpha, 0, false); err != nil {
		return nil, infer.Info{}, err
	}
	scale, err := noiseScale("sgmcmc.SGNHT", s.Step, eps, alpha, t.Beta, temp)
	if err != nil {
		return nil, infer.Info{}, err
	}
	next := SGNHTState{Params: s.Params, Step: s.Step + 1, Streams: s.Streams}
	var info infer.Info
	err = torch.Do(func(scope *torch.Scope) error {
		theta, m, xi := s.Params.Flat, s.Momenta, s.Xi
		e, err := t.gradient.ValueAndGrad(s.Params, b, 0)
		if err != nil {
			return err
		}
		info = method.NewInfo(e, eps, temp)
		if info.Stats, err = meanOf("xi", xi); err != nil {
			return err
		}

		rho := 1 / (t.Sigma * t.Sigma)
		next.Params.Flat, err = torch.Combine(torch.Term{Coeff: 1, Tensor: theta}, torch.Term{Coeff: eps * rho, Tensor: m})
		if err != nil {
			return err
		}
		xim, err := m.Mul(xi, false)
		if err != nil {
			return err
		}
		terms, err := withNoise([]torch.Term{{Coeff: 1, Tensor: m}, {Coeff: eps, Tensor: e.Grad}, {Coeff: -eps * rho, Tensor: xim}},
			scale, m, &next.Streams)
		if err != nil {
			return err
		}
		if next.Momenta, err = torch.Combine(terms...); err != nil {
			return err
		}
		if next.Xi, err = t.warmed(xi, m, eps, rho, temp); err != nil {
			return err
		}

		next.Params.Flat, next.Momenta, err = heldPair(theta, m, next.Params.Flat, next.Momenta, info.Diverged)
		if err != nil {
			return err
		}
		next.Xi, err = method.Hold(xi, next.Xi, info.Diverged)
		scope.Keep(next.Params.Flat, next.Momenta, next.Xi)
		method.KeepAux(scope, info.Aux)
		return err
	})
	if err != nil {
		return nil, infer.Info{}, fmt.Errorf("sgmcmc.SGNHT: %w", err)
	}
	return next, info, nil
}

// warmed is ξ' = ξ + ε(ρm² − T), with the mean of m² over the parameters unless each has its own.
func (t *sgnht) warmed(xi, m *ts.Tensor, eps, rho, temp float64) (*ts.Tensor, error) {
	square, err := m.Square(false)
	if err != nil {
		return nil, err
	}
	if !t.PerParameter {
		dtype, err := torch.DTypeOfTensor(m)
		if err != nil {
			return nil, err
		}
		if square, err = square.MeanDim([]int64{-1}, true, dtype, false); err != nil {
			return nil, err
		}
	}
	hotter, err := torch.Combine(torch.Term{Coeff: 1, Tensor: xi}, torch.Term{Coeff: eps * rho, Tensor: square})
	if err != nil {
		return nil, err
	}
	return hotter, hotter.AddScalar_(ts.FloatScalar(-eps * temp))
}

// KineticTemperatures is |m|²/(dσ²) of each site, for [infer.Thermal].
func (t *sgnht) KineticTemperatures(state infer.State) ([][]float64, error) {
	s, err := method.StateAs[SGNHTState](state, "sgmcmc.SGNHT")
	if err != nil {
		return nil, err
	}
	return kineticTemperatures(s.Params, s.Momenta, nil, 1/(t.Sigma*t.Sigma))
}

func (t *sgnht) Restore(layout *infer.Layout, saved infer.Saved) (infer.State, error) {
	flat, err := saved.Tensor("params")
	if err != nil {
		return nil, err
	}
	m, err := saved.Tensor("momenta")
	if err != nil {
		return nil, err
	}
	xi, err := saved.Tensor("xi")
	return SGNHTState{Params: infer.Params{Layout: layout, Flat: flat}, Momenta: m, Xi: xi, Step: saved.Steps, Streams: saved.Streams}, err
}

// Position is θ.
func (s SGNHTState) Position() infer.Params { return s.Params }

// Steps is the number of updates so far.
func (s SGNHTState) Steps() int64 { return s.Step }

// Save names the parts of the state.
func (s SGNHTState) Save() infer.Saved {
	return infer.Saved{Steps: s.Step, Streams: s.Streams, Tensors: infer.Tensors{"params": s.Params.Flat, "momenta": s.Momenta, "xi": s.Xi}}
}

// Tensors are what the state owns, and what it shares with others.
func (s SGNHTState) Tensors() (owned, shared infer.Tensors) {
	saved := s.Save()
	return saved.Tensors, saved.Shared
}
