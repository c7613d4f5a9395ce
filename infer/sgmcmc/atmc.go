package sgmcmc

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// ATMC is the adaptive thermostat of Heek and Kalchbrenner (2019), with Gaussian or relativistic momenta. Each element has a
// thermostat ξ that learns how much noise its gradients carry. It first takes the place of injected noise, and only when
// there is more gradient noise than the friction D makes up for does friction grow:
//
//	α  = max(D − ξ, 0)                       injected noise
//	β  = max(D, ξ)                           friction, never below D
//	p' = e⁻ᵇʰ p + (1 − e⁻ᵇʰ)/b·g(θ) + √(Tmα(1 − e⁻²ᵇʰ)/b) z
//	θ' = θ + h p'/M(p')
//	ξ' = ξ + h(p'²m/M(p')² − T(m/M(p'))³)
//	M(p) = m√(1 + p²/(m²c²)),  b = βm/M(p)
//
// for each element; without a limit c on the speed M(p) = m and b = β, so that ξ' = ξ + h(p'²/m − T). The update of p is the
// exact solution with θ and ξ (and M) at rest, that of θ and ξ the exact one with p at rest, in the corrected form: as
// printed, the paper's has a growing factor.
//
// The joint target is exp((logPosterior − Σ mc²(√(1 + p²/(m²c²)) − 1) − ½Σ(ξ − ξ*)²)/T), with |p|²/(2m) for the kinetic energy
// without c. Gradient noise of variance V is absorbed by ξ* = hV/(2mT): no estimate of V is needed. The bias in h is of second
// order with Gaussian momenta, and in general of first with relativistic ones, whose M is at rest while p moves.
//
// At T = 0 it is gradient ascent with momentum whose friction starts at D. Nothing lowers ξ there, so that friction only
// grows, with exact gradients by no more in sum than about the energy lost on the way over D: the chain comes to rest at a mode.
type ATMC struct {
	LR          infer.Schedule // time step h; required
	Friction    infer.Schedule // D, greater than 0; nil means 1
	Mass        float64        // m; 0 means 1
	Speed       float64        // c, the largest change of an element of θ in unit time; 0 means no limit: Gaussian momenta
	Temperature infer.Schedule // T; 1/N with a mean log posterior, nil means 1
	Xi          float64        // ξ at the start; default 0
	// Momenta are the momenta to start with, of the shape of the params, or [d] for all of K chains alike; nil draws them
	// from N(0, Tm), the stationary law of Gaussian momenta, and at T = 0 means 0.
	Momenta *ts.Tensor
}

// ATMCAt is the configuration of the paper for a time step: momenta lose at least a tenth in an update, and an element of θ
// moves by about 3e-4 on average and at most by 1e-3. For the sum over data (n = 1) that is D = −log(0.9)/h, m = (h/3e-4)²
// and c = 1e-3/h, at T = 1. With n > 1 it is that sampler for the mean log posterior of n data: the time step becomes h√n,
// D and c become smaller by √n, and the temperature is 1/n. Its LR is constant; a cyclical one is [infer.Cycles] with the
// same peak.
func ATMCAt(step float64, n int) (ATMC, error) {
	if err := method.CheckValue("sgmcmc.ATMCAt", "step", step, 0, true); err != nil {
		return ATMC{}, err
	}
	if err := checkData("sgmcmc.ATMCAt", n); err != nil {
		return ATMC{}, err
	}
	root := math.Sqrt(float64(n))
	return ATMC{
		LR:          infer.Constant(step * root),
		Friction:    infer.Constant(-math.Log(0.9) / step / root),
		Mass:        math.Pow(step/3e-4, 2),
		Speed:       1e-3 / step / root,
		Temperature: infer.Constant(1 / float64(n)),
	}, nil
}

// ATMCState is the state of [ATMC].
type ATMCState struct {
	Params  infer.Params  // θ, of shape [d] or [K, d]
	Momenta *ts.Tensor    // p, of the same shape
	Xi      *ts.Tensor    // ξ, of the same shape
	Step    int64         // updates so far
	Streams torch.Streams // of the K chains
}

// Build checks the configuration and binds it to a log posterior.
func (c ATMC) Build(target infer.Target) (infer.Transform, error) {
	gradient, err := infer.NewGradient(target)
	if err != nil {
		return nil, fmt.Errorf("sgmcmc.ATMC: %w", err)
	}
	if c.LR, err = method.CheckSchedule("sgmcmc.ATMC", "LR", c.LR, nil, 0, true); err != nil {
		return nil, err
	}
	if c.Friction, err = method.CheckSchedule("sgmcmc.ATMC", "Friction", c.Friction, infer.Constant(1), 0, true); err != nil {
		return nil, err
	}
	if c.Temperature, err = method.CheckSchedule("sgmcmc.ATMC", "Temperature", c.Temperature, infer.Constant(1), 0, false); err != nil {
		return nil, err
	}
	if c.Mass == 0 {
		c.Mass = 1
	}
	if err := method.CheckValue("sgmcmc.ATMC", "Mass", c.Mass, 0, true); err != nil {
		return nil, err
	}
	if err := method.CheckValue("sgmcmc.ATMC", "Speed", c.Speed, 0, false); err != nil {
		return nil, err
	}
	if err := method.CheckValue("sgmcmc.ATMC", "Xi", c.Xi, math.Inf(-1), false); err != nil {
		return nil, &infer.FieldError{Type: "sgmcmc.ATMC", Field: "Xi", Value: c.Xi, Allowed: "it must be finite"}
	}
	return &atmc{ATMC: c, gradient: gradient}, nil
}

type atmc struct {
	ATMC
	gradient infer.Gradient
}

func (t *atmc) Init(p infer.Params) (infer.State, error) {
	return t.InitStreams(p, torch.NewStreams(0, p.Chains()))
}

func (t *atmc) InitStreams(p infer.Params, streams torch.Streams) (infer.State, error) {
	s := ATMCState{Params: p, Streams: streams}
	var err error
	s.Params.Flat, s.Momenta, err = startWithMomenta("sgmcmc.ATMC", p, t.Momenta, math.Sqrt(t.Mass*t.Temperature(0)), nil, &s.Streams)
	if err != nil {
		return nil, err
	}
	if s.Xi, err = s.Params.Flat.FullLike(ts.FloatScalar(t.Xi), false); err != nil {
		return nil, fmt.Errorf("sgmcmc.ATMC: %w", err)
	}
	return s, nil
}

func (t *atmc) Update(state infer.State, b infer.Batch) (infer.State, infer.Info, error) {
	s, err := method.StateAs[ATMCState](state, "sgmcmc.ATMC")
	if err != nil {
		return nil, infer.Info{}, err
	}
	h, temp, err := rates("sgmcmc.ATMC", s.Step, t.LR, t.Temperature)
	if err != nil {
		return nil, infer.Info{}, err
	}
	friction := t.Friction(s.Step)
	if err := method.CheckValue("sgmcmc.ATMC", fmt.Sprintf("Friction at update %d", s.Step), friction, 0, true); err != nil {
		return nil, infer.Info{}, err
	}
	next := ATMCState{Params: s.Params, Step: s.Step + 1, Streams: s.Streams}
	var info infer.Info
	err = torch.Do(func(scope *torch.Scope) error {
		theta := s.Params.Flat
		e, err := t.gradient.ValueAndGrad(s.Params, b, 0)
		if err != nil {
			return err
		}
		info = method.NewInfo(e, h, temp)
		if info.Stats, err = meanOf("xi", s.Xi); err != nil {
			return err
		}
		if next.Momenta, err = t.kick(s, &next.Streams, e.Grad, h, temp, friction); err != nil {
			return err
		}
		if err := t.drift(s, &next, h, temp); err != nil {
			return err
		}

		for _, pair := range []struct {
			old *ts.Tensor
			new **ts.Tensor
		}{{theta, &next.Params.Flat}, {s.Momenta, &next.Momenta}, {s.Xi, &next.Xi}} {
			if *pair.new, err = method.Hold(pair.old, *pair.new, info.Diverged); err != nil {
				return err
			}
			scope.Keep(*pair.new)
		}
		method.KeepAux(scope, info.Aux)
		return nil
	})
	if err != nil {
		return nil, infer.Info{}, fmt.Errorf("sgmcmc.ATMC: %w", err)
	}
	return next, info, nil
}

// kick is p' = e⁻ᵇʰ p + (1 − e⁻ᵇʰ)/b·g + √(Tmα(1 − e⁻²ᵇʰ)/b) z. With u = e⁻ᵇʰ − 1 and k = −u/b it is p + up + kg +
// √(Tmαk(2 + u)) z.
func (t *atmc) kick(s ATMCState, streams *torch.Streams, g *ts.Tensor, h, temp, friction float64) (*ts.Tensor, error) {
	b, err := s.Xi.ClampMin(ts.FloatScalar(friction), false)
	if err != nil {
		return nil, err
	}
	if t.Speed > 0 {
		inverse, _, err := t.relative(s.Momenta)
		if err != nil {
			return nil, err
		}
		if err = b.Mul_(inverse); err != nil {
			return nil, err
		}
	}
	u, err := torch.Combine(torch.Term{Coeff: -h, Tensor: b})
	if err != nil {
		return nil, err
	}
	if err = u.Expm1_(); err != nil {
		return nil, err
	}
	k, err := u.Div(b, false) // −k
	if err != nil {
		return nil, err
	}
	torch.Free(b)
	terms := []torch.Term{{Coeff: 1, Tensor: s.Momenta}, {Coeff: 1, Tensor: u}, {Coeff: -1, Tensor: k}}
	if temp > 0 {
		alpha, err := s.Xi.ClampMax(ts.FloatScalar(friction), false) // min(ξ, D) = D − α
		if err != nil {
			return nil, err
		}
		if err = alpha.SubScalar_(ts.FloatScalar(friction)); err != nil { // −α
			return nil, err
		}
		rest, err := u.AddScalar(ts.FloatScalar(2), false)
		if err != nil {
			return nil, err
		}
		if err = alpha.Mul_(k); err != nil {
			return nil, err
		}
		if err = alpha.Mul_(rest); err != nil {
			return nil, err
		}
		torch.Free(rest)
		if err = alpha.Sqrt_(); err != nil {
			return nil, err
		}
		z, err := streams.NormalLike(s.Momenta)
		if err != nil {
			return nil, err
		}
		if err = z.Mul_(alpha); err != nil {
			return nil, err
		}
		torch.Free(alpha)
		terms = append(terms, torch.Term{Coeff: math.Sqrt(temp * t.Mass), Tensor: z})
	}
	if err := u.Mul_(s.Momenta); err != nil { // damping
		return nil, err
	}
	if err := k.Mul_(g); err != nil { // −kg
		return nil, err
	}
	out, err := torch.Combine(terms...)
	for _, t := range terms[1:] {
		torch.Free(t.Tensor)
	}
	return out, err
}

// relative is m/M(p) and its square.
func (t *atmc) relative(p *ts.Tensor) (inverse, square *ts.Tensor, err error) {
	mc := t.Mass * t.Speed
	if square, err = p.Square(false); err != nil {
		return nil, nil, err
	}
	if err = square.MulScalar_(ts.FloatScalar(1 / (mc * mc))); err != nil {
		return nil, nil, err
	}
	if err = square.AddScalar_(ts.FloatScalar(1)); err != nil {
		return nil, nil, err
	}
	if err = square.Reciprocal_(); err != nil {
		return nil, nil, err
	}
	inverse, err = square.Sqrt(false)
	return inverse, square, err
}

// drift writes θ' = θ + h p'/M(p') and ξ' = ξ + h(p'²m/M(p')² − T(m/M(p'))³) into next, whose momenta are p'.
func (t *atmc) drift(s ATMCState, next *ATMCState, h, temp float64) error {
	velocity := next.Momenta // of unit mass, p'm/M
	var one *ts.Tensor
	var err error
	if t.Speed > 0 {
		inverse, square, err := t.relative(velocity)
		if err != nil {
			return err
		}
		if velocity, err = velocity.Mul(inverse, false); err != nil {
			return err
		}
		one = square
		if err = one.Mul_(inverse); err != nil {
			return err
		}
		torch.Free(inverse)
	}
	next.Params.Flat, err = torch.Combine(torch.Term{Coeff: 1, Tensor: s.Params.Flat}, torch.Term{Coeff: h / t.Mass, Tensor: velocity})
	if err != nil {
		return err
	}
	kinetic, err := velocity.Square(false)
	if err != nil {
		return err
	}
	terms := []torch.Term{{Coeff: 1, Tensor: s.Xi}, {Coeff: h / t.Mass, Tensor: kinetic}}
	if one != nil {
		terms = append(terms, torch.Term{Coeff: -h * temp, Tensor: one})
	}
	if next.Xi, err = torch.Combine(terms...); err != nil || one != nil {
		return err
	}
	return next.Xi.AddScalar_(ts.FloatScalar(-h * temp))
}

// KineticTemperatures is p·∇K(p)/d of each site, for [infer.Thermal]: |p|²/(dm), or the mean of p²/M(p) for relativistic momenta,
// which is T on average by equipartition but has no χ² law.
func (t *atmc) KineticTemperatures(state infer.State) ([][]float64, error) {
	s, err := method.StateAs[ATMCState](state, "sgmcmc.ATMC")
	if err != nil {
		return nil, err
	}
	var out [][]float64
	err = torch.Do(func(*torch.Scope) (err error) {
		var inverse *ts.Tensor
		if t.Speed > 0 {
			if inverse, _, err = t.relative(s.Momenta); err != nil {
				return fmt.Errorf("sgmcmc.ATMC: %w", err)
			}
		}
		out, err = kineticTemperatures(s.Params, s.Momenta, inverse, 1/t.Mass)
		return err
	})
	return out, err
}

func (t *atmc) Restore(layout *infer.Layout, saved infer.Saved) (infer.State, error) {
	s := ATMCState{Params: infer.Params{Layout: layout}, Step: saved.Steps, Streams: saved.Streams}
	for _, part := range []struct {
		name string
		to   **ts.Tensor
	}{{"params", &s.Params.Flat}, {"momenta", &s.Momenta}, {"xi", &s.Xi}} {
		var err error
		if *part.to, err = saved.Tensor(part.name); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Position is θ.
func (s ATMCState) Position() infer.Params { return s.Params }

// Steps is the number of updates so far.
func (s ATMCState) Steps() int64 { return s.Step }

// Save names the parts of the state.
func (s ATMCState) Save() infer.Saved {
	return infer.Saved{Steps: s.Step, Streams: s.Streams, Tensors: infer.Tensors{"params": s.Params.Flat, "momenta": s.Momenta, "xi": s.Xi}}
}

// Tensors are what the state owns, and what it shares with others.
func (s ATMCState) Tensors() (owned, shared infer.Tensors) {
	saved := s.Save()
	return saved.Tensors, saved.Shared
}
