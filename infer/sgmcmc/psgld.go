package sgmcmc

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// PSGLD is stochastic gradient Langevin dynamics with the diagonal preconditioner of RMSprop (Li et al. 2016): each element
// has a step size of its own, larger where gradients are small.
//
//	v' = av + (1 − a)g(θ)²
//	G  = 1/(λ + √v')
//	θ' = θ + εGg(θ) + √(2TεG) z
//
// all for each element, with v = 0 at the start. The log posterior should be the mean over data, with temperature T/N, so
// that the gradient in v is the mean one, as in the paper; its step size is 2ε/N here.
//
// A preconditioner that depends on θ needs the drift term TεΓ, Γ_i = ∂G_i/∂θ_i, to leave the target alone. It is omitted
// here, as it is in practice: it needs second derivatives. With constant G the law approaches exp(logPosterior/T) as ε goes
// to 0, and is that of SGLD with the step size εG of each element. With changing G there is a bias that no small step
// removes; it is small when λ is large, and when v averages over many more updates, 1/(1 − a), than θ needs to move: on a
// normal target of variance 1 with λ = 0.3 and ε = 0.02 the variance is 1.69 with a = 0.5, 1.19 with 0.99 and 1.03 with
// 0.999. At T = 0 it is gradient ascent with RMSprop.
type PSGLD struct {
	LR          infer.Schedule // step size ε; required
	Temperature infer.Schedule // T; 1/N with a mean log posterior, nil means 1
	Decay       float64        // a in (0, 1), of the average of squared gradients; 0 means 0.99
	Eps         float64        // λ, a limit 1/λ on G; 0 means 1e-5
}

// PSGLDState is the state of [PSGLD].
type PSGLDState struct {
	Params  infer.Params  // θ, of shape [d] or [K, d]
	Square  *ts.Tensor    // v, of the same shape
	Step    int64         // updates so far
	Streams torch.Streams // of the K chains
}

// Build checks the configuration and binds it to a log posterior.
func (c PSGLD) Build(target infer.Target) (infer.Transform, error) {
	gradient, err := infer.NewGradient(target)
	if err != nil {
		return nil, fmt.Errorf("sgmcmc.PSGLD: %w", err)
	}
	if c.LR, err = method.CheckSchedule("sgmcmc.PSGLD", "LR", c.LR, nil, 0, true); err != nil {
		return nil, err
	}
	if c.Temperature, err = method.CheckSchedule("sgmcmc.PSGLD", "Temperature", c.Temperature, infer.Constant(1), 0, false); err != nil {
		return nil, err
	}
	if c.Decay == 0 {
		c.Decay = 0.99
	}
	if !(c.Decay > 0 && c.Decay < 1) {
		return nil, &infer.FieldError{Type: "sgmcmc.PSGLD", Field: "Decay", Value: c.Decay, Allowed: "it must be between 0 and 1"}
	}
	if c.Eps == 0 {
		c.Eps = 1e-5
	}
	if err := method.CheckValue("sgmcmc.PSGLD", "Eps", c.Eps, 0, true); err != nil {
		return nil, err
	}
	return &psgld{PSGLD: c, gradient: gradient}, nil
}

type psgld struct {
	PSGLD
	gradient infer.Gradient
}

func (t *psgld) Init(p infer.Params) (infer.State, error) {
	return t.InitStreams(p, torch.NewStreams(0, p.Chains()))
}

func (t *psgld) InitStreams(p infer.Params, streams torch.Streams) (infer.State, error) {
	if err := checkStreams("sgmcmc.PSGLD", p, streams); err != nil {
		return nil, err
	}
	flat, err := torch.Copy(p.Flat)
	if err != nil {
		return nil, fmt.Errorf("sgmcmc.PSGLD: %w", err)
	}
	square, err := flat.ZerosLike(false)
	if err != nil {
		return nil, fmt.Errorf("sgmcmc.PSGLD: %w", err)
	}
	return PSGLDState{Params: infer.Params{Layout: p.Layout, Flat: flat}, Square: square, Streams: streams}, nil
}

func (t *psgld) Update(state infer.State, b infer.Batch) (infer.State, infer.Info, error) {
	s, err := method.StateAs[PSGLDState](state, "sgmcmc.PSGLD")
	if err != nil {
		return nil, infer.Info{}, err
	}
	eps, temp, err := rates("sgmcmc.PSGLD", s.Step, t.LR, t.Temperature)
	if err != nil {
		return nil, infer.Info{}, err
	}
	next := PSGLDState{Params: s.Params, Step: s.Step + 1, Streams: s.Streams}
	var info infer.Info
	err = torch.Do(func(scope *torch.Scope) error {
		theta := s.Params.Flat
		e, err := t.gradient.ValueAndGrad(s.Params, b, 0)
		if err != nil {
			return err
		}
		info = method.NewInfo(e, eps, temp)
		if err := t.move(s, &next, e.Grad, eps, math.Sqrt(2*temp*eps)); err != nil {
			return err
		}

		if next.Params.Flat, err = method.Hold(theta, next.Params.Flat, info.Diverged); err != nil {
			return err
		}
		next.Square, err = method.Hold(s.Square, next.Square, info.Diverged)
		scope.Keep(next.Params.Flat, next.Square)
		method.KeepAux(scope, info.Aux)
		return err
	})
	if err != nil {
		return nil, infer.Info{}, fmt.Errorf("sgmcmc.PSGLD: %w", err)
	}
	return next, info, nil
}

// move writes the new v and θ into next; scale is √(2Tε).
func (t *psgld) move(s PSGLDState, next *PSGLDState, g *ts.Tensor, eps, scale float64) error {
	square, err := g.Square(false)
	if err != nil {
		return err
	}
	next.Square, err = torch.Combine(torch.Term{Coeff: t.Decay, Tensor: s.Square}, torch.Term{Coeff: 1 - t.Decay, Tensor: square})
	if err != nil {
		return err
	}
	root, err := next.Square.Sqrt(false)
	if err != nil {
		return err
	}
	if err = root.AddScalar_(ts.FloatScalar(t.Eps)); err != nil { // 1/G
		return err
	}
	drift, err := g.Div(root, false)
	if err != nil {
		return err
	}
	terms := []torch.Term{{Coeff: 1, Tensor: s.Params.Flat}, {Coeff: eps, Tensor: drift}}
	if scale > 0 {
		z, err := next.Streams.NormalLike(s.Params.Flat)
		if err != nil {
			return err
		}
		if err = root.Rsqrt_(); err != nil { // √G
			return err
		}
		if err = z.Mul_(root); err != nil {
			return err
		}
		terms = append(terms, torch.Term{Coeff: scale, Tensor: z})
	}
	next.Params.Flat, err = torch.Combine(terms...)
	return err
}

func (t *psgld) Restore(layout *infer.Layout, saved infer.Saved) (infer.State, error) {
	flat, err := saved.Tensor("params")
	if err != nil {
		return nil, err
	}
	square, err := saved.Tensor("square")
	return PSGLDState{Params: infer.Params{Layout: layout, Flat: flat}, Square: square, Step: saved.Steps, Streams: saved.Streams}, err
}

// Position is θ.
func (s PSGLDState) Position() infer.Params { return s.Params }

// Steps is the number of updates so far.
func (s PSGLDState) Steps() int64 { return s.Step }

// Save names the parts of the state.
func (s PSGLDState) Save() infer.Saved {
	return infer.Saved{Steps: s.Step, Streams: s.Streams, Tensors: infer.Tensors{"params": s.Params.Flat, "square": s.Square}}
}

// Tensors are what the state owns, and what it shares with others.
func (s PSGLDState) Tensors() (owned, shared infer.Tensors) {
	saved := s.Save()
	return saved.Tensors, saved.Shared
}
