package method

import (
	"slices"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/internal/fuse"
	"github.com/kelvin-ppl/kelvin/torch"
)

// FusedGradient is what the updates ask for gradients.
func (t *stepper[S, P]) FusedGradient() infer.Gradient { return t.gradient }

// FusedParts are the tensors of a state that an update changes, θ first, and its random streams; nil where the updates
// of the state need tensors.
func (t *stepper[S, P]) FusedParts(state infer.State) ([]torch.Tensor, torch.Streams) {
	s, ok := state.(S)
	if !ok || t.Program == nil || t.ReportsStats {
		return nil, torch.Streams{}
	}
	base := P(&s).base()
	shape, err := torch.Shape(base.Params.Flat)
	if err != nil {
		return nil, torch.Streams{}
	}
	var tensors []torch.Tensor
	for _, part := range t.parts(&s) {
		switch own, err := torch.Shape(*part.Tensor); {
		case part.Shared && *part.Tensor == (torch.Tensor{}) && part.Estimate == nil:
			continue
		case part.Shared || err != nil || !slices.Equal(own, shape) || len(tensors) > fuse.MostParts:
			return nil, torch.Streams{}
		}
		tensors = append(tensors, *part.Tensor)
	}
	streams := base.Streams
	if t.Temperature == nil {
		streams.Chains = make([]uint64, base.Params.Chains())
	}
	return tensors, streams
}

// FusedWriter writes the updates of states that [stepper.FusedParts] gives the tensors of: each call adds the update
// after step others to a program. The Info is the same in every call.
func (t *stepper[S, P]) FusedWriter(p *fuse.Program) (info *infer.Info,
	write func(step int, value, record bool) (tau float64, err error)) {
	m, none := &Move{Name: t.Algorithm.Name}, *new(S)
	return &m.Info, func(step int, value, record bool) (float64, error) {
		m.Index = step
		if err := t.schedules(m); err != nil {
			return 0, err
		}
		m.Info.LR, m.Info.TimeStep, m.Info.Temperature = m.LR, 0, m.Temperature
		p.Begin(m.Tau, value, record)
		t.Algorithm.Program(&none, p, m)
		return m.Tau, nil
	}
}

// FusedState is the state after so many updates with the tensors that they have made, in the order of
// [stepper.FusedParts].
func (t *stepper[S, P]) FusedState(state infer.State, steps int, offset uint64, tensors []torch.Tensor) infer.State {
	s := state.(S)
	base := P(&s).base()
	base.Step, base.Streams.Offset = steps, offset
	parts := t.parts(&s)
	for _, part := range parts {
		if !part.Shared {
			*part.Tensor, tensors = tensors[0], tensors[1:]
		}
	}
	base.remember(parts)
	return s
}
