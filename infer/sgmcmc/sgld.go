package sgmcmc

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// SGLD is stochastic gradient Langevin dynamics (Welling and Teh 2011):
//
//	θ' = θ + ε g(θ) + √(Tε(2 − Tεβ)) z
//
// With β = 0 its stationary law approaches exp(logPosterior/T) as ε goes to 0: for a Gaussian target of precision λ the
// variance is T/(λ(1 − ελ/2)). Gradient noise of variance V is made up for exactly by β = V/T². At T = 0 it is gradient
// ascent, bit for bit optim.SGD.
type SGLD struct {
	LR          infer.Schedule // step size ε; required
	Temperature infer.Schedule // T; 1/N with a mean log posterior, nil means 1
	Beta        float64        // β, estimated variance of the gradient noise; default 0
	// EstimateBeta finds β for each element from the gradients of minibatches; nil for Beta. Where there is more gradient
	// noise than noise is wanted none is injected; the statistic "clipped" is the share of such elements.
	EstimateBeta *Estimate
}

// SGLDState is the state of [SGLD].
type SGLDState struct {
	Params   infer.Params  // θ, of shape [d] or [K, d]
	Step     int64         // updates so far
	Streams  torch.Streams // of the K chains
	Variance *ts.Tensor    // V, the estimated variance of the gradient, of the shape of θ; nil without EstimateBeta
}

// Build checks the configuration and binds it to a log posterior.
func (c SGLD) Build(target infer.Target) (infer.Transform, error) {
	gradient, err := infer.NewGradient(target)
	if err != nil {
		return nil, fmt.Errorf("sgmcmc.SGLD: %w", err)
	}
	if c.LR, err = method.CheckSchedule("sgmcmc.SGLD", "LR", c.LR, nil, 0, true); err != nil {
		return nil, err
	}
	if c.Temperature, err = method.CheckSchedule("sgmcmc.SGLD", "Temperature", c.Temperature, infer.Constant(1), 0, false); err != nil {
		return nil, err
	}
	if err := method.CheckValue("sgmcmc.SGLD", "Beta", c.Beta, 0, false); err != nil {
		return nil, err
	}
	if c.EstimateBeta, err = checkNoise("sgmcmc.SGLD", c.EstimateBeta, c.Beta); err != nil {
		return nil, err
	}
	if _, err := noiseScale("sgmcmc.SGLD", 0, c.LR(0), 1, c.Beta, c.Temperature(0)); err != nil {
		return nil, err
	}
	return &sgld{SGLD: c, gradient: gradient}, nil
}

type sgld struct {
	SGLD
	gradient infer.Gradient
}

func (t *sgld) Init(p infer.Params) (infer.State, error) {
	return t.InitStreams(p, torch.NewStreams(0, p.Chains()))
}

func (t *sgld) InitStreams(p infer.Params, streams torch.Streams) (infer.State, error) {
	if err := checkStreams("sgmcmc.SGLD", p, streams); err != nil {
		return nil, err
	}
	flat, err := torch.Copy(p.Flat)
	if err != nil {
		return nil, fmt.Errorf("sgmcmc.SGLD: %w", err)
	}
	return SGLDState{Params: infer.Params{Layout: p.Layout, Flat: flat}, Streams: streams}, nil
}

func (t *sgld) Update(state infer.State, b infer.Batch) (infer.State, infer.Info, error) {
	s, err := method.StateAs[SGLDState](state, "sgmcmc.SGLD")
	if err != nil {
		return nil, infer.Info{}, err
	}
	eps, temp, err := rates("sgmcmc.SGLD", s.Step, t.LR, t.Temperature)
	if err != nil {
		return nil, infer.Info{}, err
	}
	scale, err := noiseScale("sgmcmc.SGLD", s.Step, eps, 1, t.Beta, temp)
	if err != nil {
		return nil, infer.Info{}, err
	}
	if err := checkPrepared("sgmcmc.SGLD", t.EstimateBeta, s.Variance); err != nil {
		return nil, infer.Info{}, err
	}
	next := SGLDState{Params: s.Params, Step: s.Step + 1, Streams: s.Streams, Variance: s.Variance}
	var info infer.Info
	err = torch.Do(func(scope *torch.Scope) error {
		theta := s.Params.Flat
		e, err := t.gradient.ValueAndGrad(s.Params, b, 0)
		if err != nil {
			return err
		}
		info = method.NewInfo(e, eps, temp)

		terms := []torch.Term{{Coeff: 1, Tensor: theta}, {Coeff: eps, Tensor: e.Grad}}
		if t.EstimateBeta == nil {
			terms, err = withNoise(terms, scale, theta, &next.Streams)
		} else {
			terms, info.Stats, err = withEstimatedNoise(terms, 2*temp*eps, nil, eps*eps, s.Variance, theta, &next.Streams)
		}
		if err != nil {
			return err
		}
		if next.Params.Flat, err = torch.Combine(terms...); err != nil {
			return err
		}

		next.Params.Flat, err = method.Hold(theta, next.Params.Flat, info.Diverged)
		scope.Keep(next.Params.Flat)
		method.KeepAux(scope, info.Aux)
		return err
	})
	if err != nil {
		return nil, infer.Info{}, fmt.Errorf("sgmcmc.SGLD: %w", err)
	}
	return next, info, nil
}

// Due says whether β is estimated before the next update.
func (t *sgld) Due(state infer.State, epoch bool) bool {
	s, ok := state.(SGLDState)
	return ok && t.EstimateBeta.due(s.Step, epoch, s.Variance == nil)
}

// Prepare estimates β.
func (t *sgld) Prepare(state infer.State, _ bool, next func() (infer.Batch, error)) (infer.State, error) {
	s, err := method.StateAs[SGLDState](state, "sgmcmc.SGLD")
	if err != nil {
		return nil, err
	}
	if s.Variance, err = t.EstimateBeta.variance("sgmcmc.SGLD", t.gradient, s.Params, s.Variance, next); err != nil {
		return nil, err
	}
	return s, nil
}

func (t *sgld) Restore(layout *infer.Layout, saved infer.Saved) (infer.State, error) {
	flat, err := saved.Tensor("params")
	return SGLDState{Params: infer.Params{Layout: layout, Flat: flat}, Step: saved.Steps, Streams: saved.Streams,
		Variance: saved.Tensors[varianceName]}, err
}

// Position is θ.
func (s SGLDState) Position() infer.Params { return s.Params }

// Steps is the number of updates so far.
func (s SGLDState) Steps() int64 { return s.Step }

// Save names the parts of the state.
func (s SGLDState) Save() infer.Saved {
	return infer.Saved{Steps: s.Step, Streams: s.Streams, Tensors: infer.Tensors{"params": s.Params.Flat}, Shared: shared(s.Variance, nil)}
}

// Tensors are what the state owns, and what it shares with others.
func (s SGLDState) Tensors() (owned, shared infer.Tensors) {
	saved := s.Save()
	return saved.Tensors, saved.Shared
}
