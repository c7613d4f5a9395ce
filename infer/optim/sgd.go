package optim

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// SGD is stochastic gradient ascent with momentum (Polyak 1964; Sutskever et al. 2013), in PyTorch's conventions:
//
//	u  = g(θ) − λθ
//	b' = μb + (1 − τ)u        (b' = u at the first update)
//	θ' = θ + ℓb'              (Nesterov: θ + ℓ(u + μb'))
//
// Without momentum it is θ' = θ + ℓu.
type SGD struct {
	LR          infer.Schedule // learning rate ℓ; required
	Momentum    float64        // μ in [0, 1); default 0
	Dampening   float64        // τ; default 0
	Nesterov    bool           // needs Momentum > 0 and Dampening 0
	WeightDecay float64        // λ; default 0
}

// SGDState is the state of [SGD].
type SGDState struct {
	Params infer.Params // θ, of shape [d] or [K, d]
	Buffer *ts.Tensor   // b, of the same shape; zero before the first update
	Step   int64        // updates so far
}

// Build checks the configuration and binds it to a log posterior.
func (c SGD) Build(target infer.Target) (infer.Transform, error) {
	gradient, err := infer.NewGradient(target)
	if err != nil {
		return nil, fmt.Errorf("optim.SGD: %w", err)
	}
	return c.BuildGradient(gradient)
}

// BuildGradient checks the configuration and binds it to a gradient.
func (c SGD) BuildGradient(gradient infer.Gradient) (infer.Transform, error) {
	err := checkGradient("optim.SGD", gradient)
	if err != nil {
		return nil, err
	}
	if c.LR, err = method.CheckSchedule("optim.SGD", "LR", c.LR, nil, 0, true); err != nil {
		return nil, err
	}
	if err := checkFraction("optim.SGD", "Momentum", c.Momentum); err != nil {
		return nil, err
	}
	if err := method.CheckValue("optim.SGD", "WeightDecay", c.WeightDecay, 0, false); err != nil {
		return nil, err
	}
	if !(c.Dampening >= 0 && c.Dampening <= 1) {
		return nil, &infer.FieldError{Type: "optim.SGD", Field: "Dampening", Value: c.Dampening, Allowed: "it must be from 0 to 1"}
	}
	if c.Nesterov && (c.Momentum == 0 || c.Dampening != 0) {
		return nil, &infer.FieldError{Type: "optim.SGD", Field: "Nesterov", Value: true, Allowed: "it needs Momentum above 0 and Dampening 0"}
	}
	return &sgd{SGD: c, gradient: gradient}, nil
}

type sgd struct {
	SGD
	gradient infer.Gradient
}

func (t *sgd) Init(p infer.Params) (infer.State, error) {
	start, zeros, err := begin("optim.SGD", p, 1)
	if err != nil {
		return nil, err
	}
	return SGDState{Params: start, Buffer: zeros[0]}, nil
}

func (t *sgd) Update(state infer.State, b infer.Batch) (infer.State, infer.Info, error) {
	s, err := method.StateAs[SGDState](state, "optim.SGD")
	if err != nil {
		return nil, infer.Info{}, err
	}
	lr := t.LR(s.Step)
	if err := method.CheckValue("optim.SGD", fmt.Sprintf("LR at update %d", s.Step), lr, 0, false); err != nil {
		return nil, infer.Info{}, err
	}
	next := SGDState{Params: s.Params, Step: s.Step + 1}
	var info infer.Info
	err = torch.Do(func(scope *torch.Scope) error {
		theta := s.Params.Flat
		e, err := t.gradient.ValueAndGrad(s.Params, b, 0)
		if err != nil {
			return err
		}
		info = method.NewInfo(e, lr, 0)
		u, err := decayed(e.Grad, theta, t.WeightDecay)
		if err != nil {
			return err
		}

		if s.Step == 0 || t.Momentum == 0 {
			next.Buffer, err = torch.Combine(torch.Term{Coeff: 1, Tensor: u})
		} else {
			next.Buffer, err = torch.Combine(torch.Term{Coeff: t.Momentum, Tensor: s.Buffer}, torch.Term{Coeff: 1 - t.Dampening, Tensor: u})
		}
		if err != nil {
			return err
		}
		terms := []torch.Term{{Coeff: 1, Tensor: theta}, {Coeff: lr, Tensor: next.Buffer}}
		if t.Nesterov {
			terms = []torch.Term{{Coeff: 1, Tensor: theta}, {Coeff: lr, Tensor: u}, {Coeff: lr * t.Momentum, Tensor: next.Buffer}}
		}
		if next.Params.Flat, err = torch.Combine(terms...); err != nil {
			return err
		}

		if next.Params.Flat, err = method.Hold(theta, next.Params.Flat, info.Diverged); err != nil {
			return err
		}
		next.Buffer, err = method.Hold(s.Buffer, next.Buffer, info.Diverged)
		scope.Keep(next.Params.Flat, next.Buffer)
		method.KeepAux(scope, info.Aux)
		return err
	})
	if err != nil {
		return nil, infer.Info{}, fmt.Errorf("optim.SGD: %w", err)
	}
	return next, info, nil
}

func (t *sgd) Restore(layout *infer.Layout, saved infer.Saved) (infer.State, error) {
	flat, err := saved.Tensor("params")
	if err != nil {
		return nil, err
	}
	buffer, err := saved.Tensor("buffer")
	return SGDState{Params: infer.Params{Layout: layout, Flat: flat}, Buffer: buffer, Step: saved.Steps}, err
}

// Position is θ.
func (s SGDState) Position() infer.Params { return s.Params }

// Steps is the number of updates so far.
func (s SGDState) Steps() int64 { return s.Step }

// Save names the parts of the state.
func (s SGDState) Save() infer.Saved {
	return infer.Saved{Steps: s.Step, Tensors: infer.Tensors{"params": s.Params.Flat, "buffer": s.Buffer}}
}

// Tensors are what the state owns, and what it shares with others.
func (s SGDState) Tensors() (owned, shared infer.Tensors) {
	saved := s.Save()
	return saved.Tensors, saved.Shared
}
