package method

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/internal/raw"
	"github.com/kelvin-ppl/kelvin/torch"
)

// State is what the states of an [Algorithm] have in common. The struct of a method's states embeds it.
type State struct {
	Params  infer.Params  // θ, of shape [d] or [K, d]
	Step    int           // updates so far
	Streams torch.Streams // random numbers of the K chains

	parts []part
}

// Part is a tensor of a state besides θ. A shared one belongs to several states, is not held, and may be nil.
type Part struct {
	Name   string        // in checkpoints
	Tensor *torch.Tensor // the field of the state
	Shared bool
	// Estimate says when Make makes a shared tensor anew, from the gradients of several minibatches; nil for never.
	Estimate *Estimate
	// Required is the field of the configuration that asks for the estimate, where no update is possible before it is
	// made; "" where one is.
	Required string
	Make     func(g infer.Gradient, p infer.Params, old torch.Tensor, next func() (infer.Batch, error)) torch.Tensor
}

// part is what a Part points to.
type part struct {
	name   string
	tensor torch.Tensor
	shared bool
}

func (s *State) base() *State { return s }

// remember makes the parts those of the state.
func (s *State) remember(parts []Part) {
	s.parts = make([]part, len(parts))
	for i, p := range parts {
		s.parts[i] = part{p.Name, *p.Tensor, p.Shared}
	}
}

// Position is θ.
func (s State) Position() infer.Params { return s.Params }

// Steps is the number of updates so far.
func (s State) Steps() int { return s.Step }

// Tensors are what the state owns, and what it shares with others.
func (s State) Tensors() (owned, shared infer.Tensors) {
	owned = make(infer.Tensors, len(s.parts))
	for _, p := range s.parts {
		switch {
		case !p.shared:
			owned[p.name] = p.tensor
		case p.tensor != (torch.Tensor{}):
			if shared == nil {
				shared = infer.Tensors{}
			}
			shared[p.name] = p.tensor
		}
	}
	return owned, shared
}

// Save names the parts of the state.
func (s State) Save() infer.Saved {
	owned, shared := s.Tensors()
	return infer.Saved{Steps: s.Step, Streams: s.Streams, Tensors: owned, Shared: shared}
}

// StateAs is the state as the type that a transform made; another type is an error that names both.
func StateAs[S infer.State](s infer.State, method string) (S, error) {
	state, ok := s.(S)
	if !ok {
		return state, fmt.Errorf("%s: the state is a %T, expected %T: it was made by another method", method, s, state)
	}
	return state, nil
}

// NewInfo is the Info of an evaluation.
func NewInfo(e infer.Evaluation, lr, temperature float64) infer.Info {
	return infer.Info{LogPosterior: e.Values, GradNorm: e.Norms, Diverged: e.Diverged(), LR: lr,
		Temperature: temperature,
		Aux:         e.Aux}
}

// Keep makes a state outlive a scope.
func Keep(scope *torch.Scope, s infer.State) {
	if s == nil {
		return
	}
	owned, shared := s.Tensors()
	for _, tensors := range []infer.Tensors{owned, shared} {
		for _, t := range tensors {
			scope.Keep(t)
		}
	}
}

// KeepAux makes what a log posterior returned outlive a scope.
func KeepAux(scope *torch.Scope, aux infer.Aux) {
	for _, t := range aux {
		scope.Keep(t)
	}
}

// Hold returns next with the rows of the diverged chains taken from old: a chain whose density or gradient is not
// finite stays where it is. With diverged nil it returns next; else it has an element for each row.
func Hold(old, next torch.Tensor, diverged []bool) (torch.Tensor, error) {
	if diverged == nil {
		return next, nil
	}
	shape, err := torch.Shape(old)
	if err != nil {
		return torch.Tensor{}, err
	}
	if rows := max(1, len(diverged)); len(shape) == 0 || rows > 1 && shape[0] != rows {
		return torch.Tensor{}, fmt.Errorf("method.Hold: %d chains of a tensor of shape %v: %w", len(diverged), shape,
			infer.ErrConfig)
	}
	mask := []int{len(diverged)}
	for range shape[1:] {
		mask = append(mask, 1)
	}
	if len(shape) == 1 && len(diverged) == 1 {
		mask = []int{1}
	}
	device, err := torch.DeviceOf(old)
	if err != nil {
		return torch.Tensor{}, err
	}
	m, err := torch.FromSliceOn(device, torch.DTypeOf[bool](), diverged, mask...)
	if err != nil {
		return torch.Tensor{}, err
	}
	return raw.Of(old.T().WhereSelf(m.T(), next.T(), false))
}
