package optim

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// Adam is adaptive moment estimation (Kingma and Ba 2015), with weight decay as part of the gradient:
//
//	u  = g(θ) − λθ
//	m' = β₁m + (1 − β₁)u
//	v' = β₂v + (1 − β₂)u²
//	θ' = θ + ℓ m'/(1 − β₁ᵗ) / (√(v'/(1 − β₂ᵗ)) + ε)
type Adam struct {
	LR           infer.Schedule // learning rate ℓ; required
	Beta1, Beta2 float64        // decay of the moments, in (0, 1); 0 means 0.9 and 0.999
	Eps          float64        // ε; 0 means 1e-8
	WeightDecay  float64        // λ; default 0
}

// AdamW is Adam with decoupled weight decay (Loshchilov and Hutter 2019): u = g(θ), and θ is multiplied by 1 − ℓλ before
// it moves.
type AdamW struct {
	LR           infer.Schedule // learning rate ℓ; required
	Beta1, Beta2 float64        // decay of the moments, in (0, 1); 0 means 0.9 and 0.999
	Eps          float64        // ε; 0 means 1e-8
	WeightDecay  *float64       // λ; nil means 0.01
}

// AdamState is the state of [Adam] and of [AdamW].
type AdamState struct {
	Params infer.Params // θ, of shape [d] or [K, d]
	First  *ts.Tensor   // m, of the same shape
	Second *ts.Tensor   // v, of the same shape
	Step   int64        // updates so far
}

// Build checks the configuration and binds it to a log posterior.
func (c Adam) Build(target infer.Target) (infer.Transform, error) {
	gradient, err := infer.NewGradient(target)
	if err != nil {
		return nil, fmt.Errorf("optim.Adam: %w", err)
	}
	return c.BuildGradient(gradient)
}

// BuildGradient checks the configuration and binds it to a gradient.
func (c Adam) BuildGradient(gradient infer.Gradient) (infer.Transform, error) {
	return buildAdam("optim.Adam", c, false, gradient)
}

// Build checks the configuration and binds it to a log posterior.
func (c AdamW) Build(target infer.Target) (infer.Transform, error) {
	gradient, err := infer.NewGradient(target)
	if err != nil {
		return nil, fmt.Errorf("optim.AdamW: %w", err)
	}
	return c.BuildGradient(gradient)
}

// BuildGradient checks the configuration and binds it to a gradient.
func (c AdamW) BuildGradient(gradient infer.Gradient) (infer.Transform, error) {
	decay := 0.01
	if c.WeightDecay != nil {
		decay = *c.WeightDecay
	}
	return buildAdam("optim.AdamW", Adam{LR: c.LR, Beta1: c.Beta1, Beta2: c.Beta2, Eps: c.Eps, WeightDecay: decay}, true, gradient)
}

func buildAdam(name string, c Adam, decoupled bool, gradient infer.Gradient) (infer.Transform, error) {
	err := checkGradient(name, gradient)
	if err != nil {
		return nil, err
	}
	if c.LR, err = method.CheckSchedule(name, "LR", c.LR, nil, 0, true); err != nil {
		return nil, err
	}
	if c.Beta1 == 0 {
		c.Beta1 = 0.9
	}
	if c.Beta2 == 0 {
		c.Beta2 = 0.999
	}
	if c.Eps == 0 {
		c.Eps = 1e-8
	}
	if err := checkFraction(name, "Beta1", c.Beta1); err != nil {
		return nil, err
	}
	if err := checkFraction(name, "Beta2", c.Beta2); err != nil {
		return nil, err
	}
	if err := method.CheckValue(name, "Eps", c.Eps, 0, true); err != nil {
		return nil, err
	}
	if err := method.CheckValue(name, "WeightDecay", c.WeightDecay, 0, false); err != nil {
		return nil, err
	}
	return &adam{Adam: c, name: name, decoupled: decoupled, gradient: gradient}, nil
}

type adam struct {
	Adam
	name      string
	decoupled bool
	gradient  infer.Gradient
}

// Name tells the checkpoints of Adam and AdamW apart.
func (t *adam) Name() string { return t.name }

func (t *adam) Init(p infer.Params) (infer.State, error) {
	start, zeros, err := begin(t.name, p, 2)
	if err != nil {
		return nil, err
	}
	return AdamState{Params: start, First: zeros[0], Second: zeros[1]}, nil
}

func (t *adam) Update(state infer.State, b infer.Batch) (infer.State, infer.Info, error) {
	s, err := method.StateAs[AdamState](state, t.name)
	if err != nil {
		return nil, infer.Info{}, err
	}
	lr := t.LR(s.Step)
	if err := method.CheckValue(t.name, fmt.Sprintf("LR at update %d", s.Step), lr, 0, false); err != nil {
		return nil, infer.Info{}, err
	}
	next := AdamState{Params: s.Params, Step: s.Step + 1}
	var info infer.Info
	err = torch.Do(func(scope *torch.Scope) error {
		e, err := t.gradient.ValueAndGrad(s.Params, b, 0)
		if err != nil {
			return err
		}
		info = method.NewInfo(e, lr, 0)
		if err := t.move(s, &next, e.Grad, lr); err != nil {
			return err
		}
		for _, pair := range []struct {
			old *ts.Tensor
			new **ts.Tensor
		}{{s.Params.Flat, &next.Params.Flat}, {s.First, &next.First}, {s.Second, &next.Second}} {
			if *pair.new, err = method.Hold(pair.old, *pair.new, info.Diverged); err != nil {
				return err
			}
			scope.Keep(*pair.new)
		}
		method.KeepAux(scope, info.Aux)
		return nil
	})
	if err != nil {
		return nil, infer.Info{}, fmt.Errorf("%s: %w", t.name, err)
	}
	return next, info, nil
}

// move writes the new point and moments into next.
func (t *adam) move(s AdamState, next *AdamState, g *ts.Tensor, lr float64) error {
	theta, keep, u := s.Params.Flat, 1.0, g
	var err error
	if t.decoupled {
		keep = 1 - lr*t.WeightDecay
	} else if u, err = decayed(g, theta, t.WeightDecay); err != nil {
		return err
	}
	if next.First, err = torch.Combine(torch.Term{Coeff: t.Beta1, Tensor: s.First}, torch.Term{Coeff: 1 - t.Beta1, Tensor: u}); err != nil {
		return err
	}
	square, err := u.Square(false)
	if err != nil {
		return err
	}
	if next.Second, err = torch.Combine(torch.Term{Coeff: t.Beta2, Tensor: s.Second}, torch.Term{Coeff: 1 - t.Beta2, Tensor: square}); err != nil {
		return err
	}
	n := float64(next.Step)
	root, err := next.Second.Sqrt(false)
	if err != nil {
		return err
	}
	if root, err = torch.Combine(torch.Term{Coeff: 1 / math.Sqrt(1-math.Pow(t.Beta2, n)), Tensor: root}); err != nil {
		return err
	}
	if root, err = root.AddScalar(ts.FloatScalar(t.Eps), false); err != nil {
		return err
	}
	step, err := next.First.Div(root, false)
	if err != nil {
		return err
	}
	next.Params.Flat, err = torch.Combine(torch.Term{Coeff: keep, Tensor: theta}, torch.Term{Coeff: lr / (1 - math.Pow(t.Beta1, n)), Tensor: step})
	return err
}

func (t *adam) Restore(layout *infer.Layout, saved infer.Saved) (infer.State, error) {
	s := AdamState{Params: infer.Params{Layout: layout}, Step: saved.Steps}
	for name, to := range map[string]**ts.Tensor{"params": &s.Params.Flat, "first": &s.First, "second": &s.Second} {
		var err error
		if *to, err = saved.Tensor(name); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Position is θ.
func (s AdamState) Position() infer.Params { return s.Params }

// Steps is the number of updates so far.
func (s AdamState) Steps() int64 { return s.Step }

// Save names the parts of the state.
func (s AdamState) Save() infer.Saved {
	return infer.Saved{Steps: s.Step, Tensors: infer.Tensors{"params": s.Params.Flat, "first": s.First, "second": s.Second}}
}

// Tensors are what the state owns, and what it shares with others.
func (s AdamState) Tensors() (owned, shared infer.Tensors) {
	saved := s.Save()
	return saved.Tensors, saved.Shared
}
