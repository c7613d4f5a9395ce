package sgmcmc

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// SymplecticSGHMC is stochastic gradient Hamiltonian Monte Carlo by symplectic Euler steps (Wenzel et al. 2020, algorithm
// 1): the parameters move with the new momenta, where [SGHMC] moves them with the old ones.
//
//	m' = (1 − hγ) m + h g(θ) + √(Th(2γM − Thβ)) z
//	θ' = θ + h M⁻¹ m'
//
// h = C·LR is the time step, γ the friction, M the diagonal mass. The joint target is exp((logPosterior − m·M⁻¹m/2)/T).
// For a Gaussian target of precision λ the bias of θ is of second order in h, that of m of first; the recursion is stable
// for hγ < 2 and h²λ/M < 4 − 2hγ.
//
// The same in the terms of stochastic gradient descent, when Momentum is given: LR is then its learning rate ℓ, Momentum its
// μ, and the step and friction are h = C√ℓ and γ = (1 − μ)/√ℓ for M = 1. Momenta are in units of √ℓ₀, with ℓ₀ the first
// learning rate, so that m is the buffer of SGD:
//
//	m' = (1 − c(1 − μ)) m + c g(θ) + √(T(2c(1 − μ)M/ℓ₀ − Tc²β)) z,  c = C√(ℓ/ℓ₀)
//	θ' = θ + c ℓ₀ M⁻¹ m'
//
// At T = 0 and with C = M = 1 and a constant learning rate it is, bit for bit, optim.SGD with LR and Momentum, which also
// starts from m = 0. A factor C is thus a learning rate of C²ℓ with momentum 1 − C(1 − μ).
//
// Wenzel's n stands with the log posterior: for the mean log posterior of n data his temperature T is T/n here, and h and γ
// in his own scale are √(ℓ/n) and (1 − μ)√(n/ℓ).
type SymplecticSGHMC struct {
	LR       infer.Schedule // step size h; with Momentum, the learning rate ℓ; required
	Gamma    infer.Schedule // friction γ; nil means 1. Not together with Momentum
	Momentum infer.Schedule // μ of SGD, in [0, 1); nil leaves LR and Gamma to be h and γ
	Cycle    infer.Schedule // C, a factor of the time step, for example infer.Cosine(1, L); nil means 1
	Beta     float64        // β, estimated variance of the gradient noise; default 0
	// EstimateBeta finds β for each element from the gradients of minibatches; nil for Beta. Where there is more gradient
	// noise than noise is wanted none is injected; the statistic "clipped" is the share of such elements.
	EstimateBeta *Estimate
	Temperature  infer.Schedule // T; 1/N with a mean log posterior, nil means 1
	// Mass is M of each site, a number above 0 for all its elements; 1 for sites that are not named. A site with a larger
	// mass moves more slowly.
	Mass map[string]float64
	// EstimateMass finds the masses from the gradients of minibatches (Wenzel's algorithm 4; K = 32): those with larger
	// gradients move more slowly, and the lightest site of each chain has mass 1. Momenta are transported, m' = √(M'/M) m, and start
	// with mass 1. Nil for Mass.
	EstimateMass *Estimate
	// Momenta are the momenta to start with, of the shape of the params, or [d] for all of K chains alike; nil draws them
	// from their stationary law, N(0, TM), or N(0, TM/ℓ₀) with Momentum; at T = 0 that is 0.
	Momenta *ts.Tensor
}

// SymplecticSGHMCState is the state of [SymplecticSGHMC].
type SymplecticSGHMCState struct {
	Params  infer.Params  // θ, of shape [d] or [K, d]
	Momenta *ts.Tensor    // m, of the same shape
	Step    int64         // updates so far
	Streams torch.Streams // of the K chains
	// Variance is V, the estimated variance of the gradient, of the shape of θ; nil without EstimateBeta.
	Variance *ts.Tensor

	mass *masses // made of the configuration when nil, unless they are estimated
}

// Mass is M of each element, of the shape of θ or, for all chains alike, [d]; nil when all are 1.
func (s SymplecticSGHMCState) Mass() *ts.Tensor {
	if s.mass == nil {
		return nil
	}
	return s.mass.mass
}

// Build checks the configuration and binds it to a log posterior.
func (c SymplecticSGHMC) Build(target infer.Target) (infer.Transform, error) {
	gradient, err := infer.NewGradient(target)
	if err != nil {
		return nil, fmt.Errorf("sgmcmc.SymplecticSGHMC: %w", err)
	}
	if c.LR, err = method.CheckSchedule("sgmcmc.SymplecticSGHMC", "LR", c.LR, nil, 0, true); err != nil {
		return nil, err
	}
	if c.Momentum != nil {
		if c.Gamma != nil {
			return nil, &infer.FieldError{Type: "sgmcmc.SymplecticSGHMC", Field: "Gamma", Value: c.Gamma(0),
				Allowed: "it must be nil when Momentum is given, which says the friction"}
		}
		if err := checkMomentum("Momentum", c.Momentum(0)); err != nil {
			return nil, err
		}
	}
	if c.Gamma, err = method.CheckSchedule("sgmcmc.SymplecticSGHMC", "Gamma", c.Gamma, infer.Constant(1), 0, false); err != nil {
		return nil, err
	}
	if c.Cycle, err = method.CheckSchedule("sgmcmc.SymplecticSGHMC", "Cycle", c.Cycle, infer.Constant(1), 0, false); err != nil {
		return nil, err
	}
	if c.Temperature, err = method.CheckSchedule("sgmcmc.SymplecticSGHMC", "Temperature", c.Temperature, infer.Constant(1), 0, false); err != nil {
		return nil, err
	}
	if err := method.CheckValue("sgmcmc.SymplecticSGHMC", "Beta", c.Beta, 0, false); err != nil {
		return nil, err
	}
	if c.EstimateBeta, err = checkNoise("sgmcmc.SymplecticSGHMC", c.EstimateBeta, c.Beta); err != nil {
		return nil, err
	}
	if c.EstimateMass != nil {
		if len(c.Mass) > 0 {
			return nil, &infer.FieldError{Type: "sgmcmc.SymplecticSGHMC", Field: "Mass", Value: c.Mass, Allowed: "it must be nil when EstimateMass is given, which finds it"}
		}
		checked, err := c.EstimateMass.check("sgmcmc.SymplecticSGHMC", "EstimateMass", 1)
		if err != nil {
			return nil, err
		}
		c.EstimateMass = &checked
	}
	c.Mass = maps.Clone(c.Mass)
	t := &symplectic{SymplecticSGHMC: c, gradient: gradient, unit: 1}
	lightest := math.Inf(1) // of the sites that are named; the others are not known yet
	for _, site := range slices.Sorted(maps.Keys(c.Mass)) {
		if err := method.CheckValue("sgmcmc.SymplecticSGHMC", fmt.Sprintf("Mass of site %q", site), c.Mass[site], 0, true); err != nil {
			return nil, err
		}
		lightest = min(lightest, c.Mass[site])
	}
	if len(c.Mass) == 0 {
		lightest = 1
	}
	if c.Momentum != nil {
		t.unit = c.LR(0)
	}
	if _, _, err := t.paceAt(0, lightest); err != nil {
		return nil, err
	}
	return t, nil
}

// checkMomentum checks a μ.
func checkMomentum(field string, mu float64) error {
	if mu >= 0 && mu < 1 {
		return nil
	}
	return &infer.FieldError{Type: "sgmcmc.SymplecticSGHMC", Field: field, Value: mu, Allowed: "it must be at least 0 and less than 1"}
}

type symplectic struct {
	SymplecticSGHMC
	gradient infer.Gradient
	unit     float64 // the momenta have law N(0, TM/unit): ℓ₀ with Momentum, otherwise 1
}

// pace are the numbers of one update, in the units of the momenta.
type pace struct {
	h          float64 // time step
	damp, keep float64 // hγ and 1 − hγ
	temp       float64 // T
	lr         float64 // C·LR, or C²·LR with Momentum
}

// paceAt checks and evaluates the schedules, and gives the standard deviation of the noise for the least mass.
func (t *symplectic) paceAt(step int64, lightest float64) (pace, float64, error) {
	lr, temp, err := rates("sgmcmc.SymplecticSGHMC", step, t.LR, t.Temperature)
	if err != nil {
		return pace{}, 0, err
	}
	cycle := t.Cycle(step)
	if err := method.CheckValue("sgmcmc.SymplecticSGHMC", fmt.Sprintf("Cycle at update %d", step), cycle, 0, false); err != nil {
		return pace{}, 0, err
	}
	p := pace{temp: temp}
	if t.Momentum != nil {
		mu := t.Momentum(step)
		if err := checkMomentum(fmt.Sprintf("Momentum at update %d", step), mu); err != nil {
			return pace{}, 0, err
		}
		// These are exactly 1, 1 − μ and μ while the step is that of SGD.
		p.h = cycle * math.Sqrt(lr/t.unit)
		p.damp = p.h * (1 - mu)
		p.keep = mu + (1-p.h)*(1-mu)
		p.lr = cycle * cycle * lr
	} else {
		gamma := t.Gamma(step)
		if err := method.CheckValue("sgmcmc.SymplecticSGHMC", fmt.Sprintf("Gamma at update %d", step), gamma, 0, false); err != nil {
			return pace{}, 0, err
		}
		p.h = cycle * lr
		p.damp = p.h * gamma
		p.keep = 1 - p.damp
		p.lr = p.h
	}
	mass := lightest / t.unit
	variance := p.temp * (2*p.damp*mass - p.temp*p.h*p.h*t.Beta)
	if !(variance >= 0) {
		return pace{}, 0, fmt.Errorf("sgmcmc.SymplecticSGHMC: the noise variance T(2hγM − Th²β) is %g at update %d, with T = %g, "+
			"h = %g, hγ = %g, M = %g, β (Beta) = %g: Beta must be at most 2hγM/(Th²) = %g, or LR smaller: %w", variance, step,
			temp, p.h, p.damp, mass, t.Beta, 2*p.damp*mass/(temp*p.h*p.h), infer.ErrConfig)
	}
	return p, math.Sqrt(variance), nil
}

func (t *symplectic) Init(p infer.Params) (infer.State, error) {
	return t.InitStreams(p, torch.NewStreams(0, p.Chains()))
}

func (t *symplectic) InitStreams(p infer.Params, streams torch.Streams) (infer.State, error) {
	if err := checkStreams("sgmcmc.SymplecticSGHMC", p, streams); err != nil {
		return nil, err
	}
	mass, err := t.massesOf(p)
	if err != nil {
		return nil, err
	}
	var root *ts.Tensor
	if mass != nil {
		root = mass.root
	}
	s := SymplecticSGHMCState{Params: p, Streams: streams, mass: mass}
	s.Params.Flat, s.Momenta, err = startWithMomenta("sgmcmc.SymplecticSGHMC", p, t.Momenta, math.Sqrt(t.Temperature(0)/t.unit), root, &s.Streams)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (t *symplectic) Update(state infer.State, b infer.Batch) (infer.State, infer.Info, error) {
	s, err := method.StateAs[SymplecticSGHMCState](state, "sgmcmc.SymplecticSGHMC")
	if err != nil {
		return nil, infer.Info{}, err
	}
	if s.mass == nil {
		if s.mass, err = t.massesOf(s.Params); err != nil {
			return nil, infer.Info{}, err
		}
	}
	if err := checkPrepared("sgmcmc.SymplecticSGHMC", t.EstimateBeta, s.Variance); err != nil {
		return nil, infer.Info{}, err
	}
	p, scale, err := t.paceAt(s.Step, s.mass.least())
	if err != nil {
		return nil, infer.Info{}, err
	}
	next := SymplecticSGHMCState{Params: s.Params, Step: s.Step + 1, Streams: s.Streams, Variance: s.Variance, mass: s.mass}
	var info infer.Info
	err = torch.Do(func(scope *torch.Scope) error {
		theta, m := s.Params.Flat, s.Momenta
		e, err := t.gradient.ValueAndGrad(s.Params, b, 0)
		if err != nil {
			return err
		}
		info = method.NewInfo(e, p.lr, p.temp)
		info.TimeStep = p.h * math.Sqrt(t.unit)

		terms := []torch.Term{{Coeff: p.keep, Tensor: m}, {Coeff: p.h, Tensor: e.Grad}}
		switch {
		case t.EstimateBeta != nil:
			var mass *ts.Tensor
			if s.mass != nil {
				mass = s.mass.mass
			}
			terms, info.Stats, err = withEstimatedNoise(terms, 2*p.temp*p.damp/t.unit, mass, p.h*p.h, s.Variance, m, &next.Streams)
		case s.mass == nil:
			terms, err = withNoise(terms, scale, m, &next.Streams)
		default:
			terms, err = t.withMassiveNoise(terms, p, s.mass, m, &next.Streams)
		}
		if err != nil {
			return err
		}
		if next.Momenta, err = torch.Combine(terms...); err != nil {
			return err
		}
		velocity := next.Momenta
		if s.mass != nil {
			if velocity, err = velocity.Mul(s.mass.inverse, false); err != nil {
				return err
			}
		}
		next.Params.Flat, err = torch.Combine(torch.Term{Coeff: 1, Tensor: theta}, torch.Term{Coeff: p.h * t.unit, Tensor: velocity})
		if err != nil {
			return err
		}

		next.Params.Flat, next.Momenta, err = heldPair(theta, m, next.Params.Flat, next.Momenta, info.Diverged)
		scope.Keep(next.Params.Flat, next.Momenta)
		method.KeepAux(scope, info.Aux)
		return err
	})
	if err != nil {
		return nil, infer.Info{}, fmt.Errorf("sgmcmc.SymplecticSGHMC: %w", err)
	}
	return next, info, nil
}

// Due says whether β or the masses are estimated before the next update.
func (t *symplectic) Due(state infer.State, epoch bool) bool {
	s, ok := state.(SymplecticSGHMCState)
	return ok && (t.EstimateMass.due(s.Step, epoch, s.mass == nil) || t.EstimateBeta.due(s.Step, epoch, s.Variance == nil))
}

// Prepare estimates what is due.
func (t *symplectic) Prepare(state infer.State, epoch bool, next func() (infer.Batch, error)) (infer.State, error) {
	s, err := method.StateAs[SymplecticSGHMCState](state, "sgmcmc.SymplecticSGHMC")
	if err != nil {
		return nil, err
	}
	if t.EstimateMass.due(s.Step, epoch, s.mass == nil) {
		mass, err := estimateMasses(t.gradient, s.Params, s.mass, next, t.EstimateMass.Batches)
		if err != nil {
			return nil, fmt.Errorf("sgmcmc.SymplecticSGHMC: estimating masses: %w", err)
		}
		if s.Momenta, err = transported(s.Momenta, s.mass, mass); err != nil {
			return nil, fmt.Errorf("sgmcmc.SymplecticSGHMC: %w", err)
		}
		s.mass = mass
	}
	if t.EstimateBeta.due(s.Step, epoch, s.Variance == nil) {
		if s.Variance, err = t.EstimateBeta.variance("sgmcmc.SymplecticSGHMC", t.gradient, s.Params, s.Variance, next); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// KineticTemperatures is m·M⁻¹m/d of each site, for [infer.Thermal]; with Momentum times ℓ₀, the unit of the momenta.
func (t *symplectic) KineticTemperatures(state infer.State) ([][]float64, error) {
	s, err := method.StateAs[SymplecticSGHMCState](state, "sgmcmc.SymplecticSGHMC")
	if err != nil {
		return nil, err
	}
	if s.mass == nil {
		if s.mass, err = t.massesOf(s.Params); err != nil {
			return nil, err
		}
	}
	var inverse *ts.Tensor
	if s.mass != nil {
		inverse = s.mass.inverse
	}
	return kineticTemperatures(s.Params, s.Momenta, inverse, t.unit)
}

func (t *symplectic) Restore(layout *infer.Layout, saved infer.Saved) (infer.State, error) {
	flat, err := saved.Tensor("params")
	if err != nil {
		return nil, err
	}
	m, err := saved.Tensor("momenta")
	if err != nil {
		return nil, err
	}
	s := SymplecticSGHMCState{Params: infer.Params{Layout: layout, Flat: flat}, Momenta: m, Step: saved.Steps, Streams: saved.Streams}
	s.Variance = saved.Tensors[varianceName]
	if s.mass, err = t.massesOf(s.Params); err != nil {
		return nil, err
	}
	if mass := saved.Tensors[massName]; mass != nil && t.EstimateMass != nil {
		values, err := torch.ToSlice[float64](mass)
		if err != nil {
			return nil, err
		}
		s.mass, err = newMasses(s.Params, values)
		return s, err
	}
	return s, nil
}

// Position is θ.
func (s SymplecticSGHMCState) Position() infer.Params { return s.Params }

// Steps is the number of updates so far.
func (s SymplecticSGHMCState) Steps() int64 { return s.Step }

// Save names the parts of the state.
func (s SymplecticSGHMCState) Save() infer.Saved {
	return infer.Saved{Steps: s.Step, Streams: s.Streams, Tensors: infer.Tensors{"params": s.Params.Flat, "momenta": s.Momenta},
		Shared: shared(s.Variance, s.mass)}
}

// Tensors are what the state owns, and what it shares with others.
func (s SymplecticSGHMCState) Tensors() (owned, shared infer.Tensors) {
	saved := s.Save()
	return saved.Tensors, saved.Shared
}
