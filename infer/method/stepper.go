package method

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/internal/fuse"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Algorithm is a method of one gradient for each update, given by its equation; [Build] makes a transform of it. Its
// functions run inside [torch.Do] and panic with errors, as [torch.Must] does. S is the struct of its states, which
// embeds [State].
type Algorithm[S infer.State] struct {
	Name        string         // for errors and checkpoints, for example "sgmcmc.SGHMC"
	LR          infer.Schedule // step size
	Temperature infer.Schedule // T; nil for an optimiser, which has T = 0 and no random numbers

	// Momenta are the first part of a state besides θ, for a method whose momenta have the law N(0, τσ²) and the kinetic
	// energy |m|²/(2σ²): the field of the state, those to start with, see [Move.Momenta], and σ. Nil for none.
	Momenta func(s *S) (own *torch.Tensor, given torch.Tensor, sigma float64)
	Parts   func(s *S) []Part // the other tensors of a state; nil for none
	// Check is what can be checked at the first update, without a gradient; nil leaves it to Program.
	Check func(m *Move)
	Start func(s *S, m *Move) // makes the other tensors of the first state, where θ is there; nil for nothing
	// Program writes the update as operations on elements; it is the equation of most methods of Kelvin. The parts of a
	// state are its registers in their order. Calls of many updates, of small states, have only parts of the shape of θ,
	// and nil for those that are shared.
	Program      func(s *S, p *fuse.Program, m *Move)
	ReportsStats bool // Program tells statistics, or moves numbers of chains: calls of many updates cannot
	// Step makes the update of a method without Program, with tensors. next begins as a copy of s, one update further.
	// Chains that diverged are held afterwards.
	Step func(s, next *S, m *Move)

	// NeedsAllData says that each update needs all of the data, and finds its step itself: a run refuses minibatches, and
	// no advice is to set LR.
	NeedsAllData bool

	// Kinetic tells momenta m, 1/M of each element (nil for 1) and a scale: scale·m·M⁻¹m/d is T/N on
	// average. Nil is that of Momenta, or none.
	Kinetic func(s *S) (m, inverse torch.Tensor, scale float64)
	// Inflation is the factor by which the step of an update inflates the variance of a Gaussian target of precision λ,
	// +Inf where it is unstable; nil where that is not known. m is the update that led to s, without its gradient.
	Inflation func(s *S, m *Move, lambda float64) float64
}

// Move is one update, or the start, of an [Algorithm].
type Move struct {
	Name        string  // of the method
	Index       int     // updates made before
	LR          float64 // step size ε
	Temperature float64 // T
	Tau         float64 // T/N, the temperature of the mean log posterior
	Grad        torch.Tensor
	Batch       infer.Batch // of the update
	Info        infer.Info  // what the update tells; a method may add to it

	state    *State // the one that is made
	evaluate func(p infer.Params) (infer.Evaluation, error)
}

// Evaluate is the log density and its gradient at another point, on the batch of the update.
func (m *Move) Evaluate(p infer.Params) infer.Evaluation { return torch.Must(m.evaluate(p)) }

// Rate is the value of a schedule at the update, checked: at least 0, with strict greater than 0.
func (m *Move) Rate(field string, s infer.Schedule, strict bool) float64 {
	v := s(m.Index)
	return torch.Must(v, m.check(field, v, strict))
}

// check is the check of a number at the update. Its name is made only for an error: most updates have none.
func (m *Move) check(field string, v float64, strict bool) error {
	if (v > 0 || v == 0 && !strict) && v <= math.MaxFloat64 {
		return nil
	}
	return CheckValue(m.Name, fmt.Sprintf("%s at update %d", field, m.Index), v, 0, strict)
}

// Normal is standard normal noise in the form of x, from the streams of the chains.
func (m *Move) Normal(x torch.Tensor) torch.Tensor { return torch.Must(m.state.Streams.NormalLike(x)) }

// Uniform is noise between 0 and 1 in the form of x, from the streams of the chains.
func (m *Move) Uniform(x torch.Tensor) torch.Tensor {
	shape := x.Shape()
	u := torch.Must(m.state.Streams.Uniform(shape[len(shape)-1:], x.T().DType(), torch.Must(torch.DeviceOf(x))))
	return torch.Of(torch.Must(u.T().Reshape(torch.Int64s(shape), false)))
}

// Require panics with the error of a field unless ok.
func (m *Move) Require(ok bool, field string, value any, allowed string) {
	if !ok {
		torch.Must(0, error(&infer.FieldError{Type: m.Name, Field: field, Value: value, Allowed: allowed}))
	}
}

// Term is c·x, a summand of [Combine].
func Term(c float64, x torch.Tensor) torch.Term { return torch.Term{Coeff: c, Tensor: x} }

// Combine is the sum of the terms, see [torch.Combine]; it panics with an error.
func Combine(terms ...torch.Term) torch.Tensor { return torch.Must(torch.Combine(terms...)) }

// Build makes the transform of an algorithm for a target, unless a check failed.
func Build[S infer.State, P pointer[S]](c *Checks, target infer.Target, a Algorithm[S]) (infer.Transform, error) {
	gradient, err := infer.NewGradient(target)
	if err != nil {
		return nil, named(c.Name, err)
	}
	return build[S, P](c, gradient, target.N(), a)
}

// BuildGradient is Build of an optimiser for a gradient, see [infer.GradientMethod].
func BuildGradient[S infer.State, P pointer[S]](c *Checks, g infer.Gradient, a Algorithm[S]) (infer.Transform, error) {
	if g == nil {
		return nil, fmt.Errorf("%s: the gradient is nil: %w", c.Name, infer.ErrConfig)
	}
	return build[S, P](c, g, 1, a)
}

func build[S infer.State, P pointer[S]](c *Checks, g infer.Gradient, n float64, a Algorithm[S]) (infer.Transform,
	error) {
	if c.err != nil {
		return nil, c.err
	}
	a.Name = c.Name
	t := &stepper[S, P]{Algorithm: a, gradient: g, n: n}
	if a.Kinetic == nil && a.Momenta != nil {
		t.Kinetic = func(s *S) (m, inverse torch.Tensor, scale float64) {
			own, _, sigma := a.Momenta(s)
			return *own, torch.Tensor{}, 1 / (sigma * sigma)
		}
	}
	if err := torch.Do(t.check); err != nil {
		return nil, named(a.Name, err)
	}
	switch {
	case a.Temperature == nil:
		return t, nil
	case t.Kinetic == nil:
		return &seeded[S, P]{t}, nil
	}
	return &thermal[S, P]{&seeded[S, P]{t}}, nil
}

// check looks at the first update, without a gradient.
func (t *stepper[S, P]) check(*torch.Scope) error {
	m := torch.Must(t.move(&State{}))
	switch {
	case t.Check != nil:
		t.Check(m)
	case t.Program != nil:
		p := &fuse.Program{}
		p.Begin(m.Tau, false, false)
		t.Algorithm.Program(new(S), p, m)
	}
	return nil
}

// pointer is a pointer to a struct that embeds [State].
type pointer[S any] interface {
	*S
	base() *State
}

// What every algorithm is, and what those with random numbers and momenta are too.
var (
	_ interface {
		infer.Named
		infer.Preparer
		infer.Restorer
		infer.Noter
	} = (*stepper[State, *State])(nil)
	_ infer.Seeded  = (*seeded[State, *State])(nil)
	_ infer.Thermal = (*thermal[State, *State])(nil)
)

type stepper[S infer.State, P pointer[S]] struct {
	Algorithm[S]
	gradient infer.Gradient
	n        float64 // data
}

// NeedsWhole says that a run must give all of the data in every update.
func (t *stepper[S, P]) NeedsWhole() bool { return t.NeedsAllData }

// Cold says that the updates from one number of them to another were all at T = 0, where a sampler is an optimiser.
func (t *stepper[S, P]) Cold(from, to int) bool {
	if t.Temperature == nil || from >= to {
		return false
	}
	for i := from; i < to; i++ {
		if t.Temperature(i) != 0 {
			return false
		}
	}
	return true
}

// move evaluates and checks the schedules for the update that leads to the state next.
func (t *stepper[S, P]) move(next *State) (*Move, error) {
	m := &Move{Name: t.Algorithm.Name, Index: max(next.Step-1, 0), state: next}
	return m, t.schedules(m)
}

// schedules evaluates and checks the schedules of a move.
func (t *stepper[S, P]) schedules(m *Move) error {
	m.LR, m.Temperature = t.LR(m.Index), 0
	if err := m.check("LR", m.LR, false); err != nil {
		return err
	}
	if t.Temperature != nil {
		m.Temperature = t.Temperature(m.Index)
		if err := m.check("Temperature", m.Temperature, false); err != nil {
			return err
		}
	}
	m.Tau = m.Temperature / t.n
	return nil
}

// Name is the name of the method in checkpoints and draws.
func (t *stepper[S, P]) Name() string { return t.Algorithm.Name }

// Init makes the state at p.
func (t *stepper[S, P]) Init(p infer.Params) (infer.State, error) { return t.start(p, torch.Streams{}) }

func (t *stepper[S, P]) start(p infer.Params, streams torch.Streams) (infer.State, error) {
	if err := p.Check(); err != nil {
		return nil, named(t.Algorithm.Name, err)
	}
	var s S
	base := P(&s).base()
	base.Params, base.Streams = infer.Params{Layout: p.Layout}, streams
	err := torch.Do(func(scope *torch.Scope) error {
		base.Params.Flat = torch.Must(torch.Copy(p.Flat))
		m := torch.Must(t.move(base))
		if t.Momenta != nil {
			own, given, sigma := t.Momenta(&s)
			*own = m.Momenta(given, sigma*math.Sqrt(m.Tau), torch.Tensor{})
		}
		if t.Start != nil {
			t.Algorithm.Start(&s, m)
		}
		own := t.parts(&s)
		return t.finish(scope, &s, own, own, nil)
	})
	if err != nil {
		return nil, named(t.Algorithm.Name, err)
	}
	return s, nil
}

// Update makes one update.
func (t *stepper[S, P]) Update(state infer.State, b infer.Batch) (infer.State, infer.Info, error) {
	return t.update(state, b, false)
}

// Advance makes one update in the memory of a state that nobody needs any more, see [infer.Advance].
func (t *stepper[S, P]) Advance(state infer.State, b infer.Batch) (infer.State, infer.Info, error) {
	return t.update(state, b, true)
}

func (t *stepper[S, P]) update(state infer.State, b infer.Batch, advance bool) (infer.State, infer.Info, error) {
	s, err := StateAs[S](state, t.Algorithm.Name)
	if err != nil {
		return nil, infer.Info{}, err
	}
	next := s
	P(&next).base().Step++
	m, err := t.move(P(&next).base())
	if err != nil {
		return nil, infer.Info{}, err
	}
	var before, after []Part
	m.Batch = b
	m.evaluate = func(p infer.Params) (infer.Evaluation, error) { return t.gradient.ValueAndGrad(p, b, m.Tau) }
	err = torch.Do(func(scope *torch.Scope) error {
		e := m.Evaluate(P(&s).base().Params)
		m.Grad, m.Info = e.Grad, NewInfo(e, m.LR, m.Temperature)
		KeepAux(scope, m.Info.Aux)
		before, after = t.parts(&s), t.parts(&next)
		if err := complete(before); err != nil {
			return err
		}
		held := m.Info.Diverged
		if t.Program != nil {
			held = t.perform(&s, &next, before, after, m, advance)
		} else {
			t.Step(&s, &next, m)
		}
		return t.finish(scope, &next, before, after, held)
	})
	if err != nil {
		return nil, infer.Info{}, named(t.Algorithm.Name, err)
	}
	for i, part := range before {
		if advance && !part.Shared && *part.Tensor != *after[i].Tensor {
			torch.Free(*part.Tensor)
		}
	}
	return next, m.Info, nil
}

// complete says what a state lacks for an update.
func complete(parts []Part) error {
	for _, part := range parts {
		switch {
		case *part.Tensor != (torch.Tensor{}):
		case !part.Shared:
			return fmt.Errorf("the state has no %s: Init makes states: %w", part.Name, infer.ErrConfig)
		case part.Estimate != nil && part.Required != "":
			return fmt.Errorf("%s is given and nothing was estimated yet: call Prepare before Update, as infer.Run "+
				"does: %w", part.Required, infer.ErrConfig)
		}
	}
	return nil
}

// finish holds the chains of next that diverged, and makes its tensors outlive the scope. before and after are the
// parts of the state before and of next.
func (t *stepper[S, P]) finish(scope *torch.Scope, next *S, before, after []Part, diverged []bool) error {
	for i, part := range after {
		if part.Shared {
			continue
		}
		held, err := Hold(*before[i].Tensor, *part.Tensor, diverged)
		if err != nil {
			return err
		}
		*part.Tensor = held
		scope.Keep(held)
	}
	P(next).base().remember(after)
	return nil
}

// parts are the tensors of a state, θ first.
func (t *stepper[S, P]) parts(s *S) []Part {
	parts := append(make([]Part, 0, 4), Part{Name: "params", Tensor: &P(s).base().Params.Flat})
	if t.Momenta != nil {
		own, _, _ := t.Momenta(s)
		parts = append(parts, Part{Name: "momenta", Tensor: own})
	}
	if t.Parts != nil {
		parts = append(parts, t.Parts(s)...)
	}
	return parts
}

// Restore is the state of a checkpoint.
func (t *stepper[S, P]) Restore(layout *infer.Layout, saved infer.Saved) (infer.State, error) {
	var s S
	base := P(&s).base()
	base.Params, base.Step, base.Streams = infer.Params{Layout: layout}, saved.Steps, saved.Streams
	err := torch.Do(func(*torch.Scope) error {
		for _, part := range t.parts(&s) {
			var err error
			if part.Shared {
				*part.Tensor = saved.Tensors[part.Name]
			} else if *part.Tensor, err = saved.Tensor(part.Name); err != nil {
				return err
			}
		}
		base.remember(t.parts(&s))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Due says whether Prepare comes before the next update.
func (t *stepper[S, P]) Due(state infer.State, epoch bool) bool {
	s, ok := state.(S)
	return ok && slices.ContainsFunc(t.parts(&s), func(p Part) bool { return p.due(P(&s).base().Step, epoch) })
}

// due says whether an estimate of the part comes before an update.
func (p Part) due(step int, epoch bool) bool {
	return p.Estimate.Due(step, epoch, *p.Tensor == (torch.Tensor{}))
}

// Prepare makes the estimates that are due, from several batches each.
func (t *stepper[S, P]) Prepare(state infer.State, epoch bool, next func() (infer.Batch, error)) (infer.State, error) {
	s, err := StateAs[S](state, t.Algorithm.Name)
	if err != nil {
		return nil, err
	}
	err = torch.Do(func(scope *torch.Scope) error {
		base := P(&s).base()
		for _, part := range t.parts(&s) {
			if part.due(base.Step, epoch) {
				*part.Tensor = part.Make(t.gradient, base.Params, *part.Tensor, next)
			}
		}
		own := t.parts(&s)
		return t.finish(scope, &s, own, own, nil)
	})
	if err != nil {
		return nil, named(t.Algorithm.Name, err)
	}
	return s, nil
}

// seeded is a method with random numbers.
type seeded[S infer.State, P pointer[S]] struct{ *stepper[S, P] }

func (t *seeded[S, P]) Init(p infer.Params) (infer.State, error) {
	return t.InitStreams(p, torch.NewStreams(0, p.Chains()))
}

func (t *seeded[S, P]) InitStreams(p infer.Params, streams torch.Streams) (infer.State, error) {
	if err := CheckStreams(t.Algorithm.Name, p, streams); err != nil {
		return nil, err
	}
	return t.start(p, streams)
}

// thermal is a method with momenta.
type thermal[S infer.State, P pointer[S]] struct{ *seeded[S, P] }

// KineticTemperatures is N·scale·m·M⁻¹m/d of each site, for [infer.Thermal].
func (t *thermal[S, P]) KineticTemperatures(state infer.State) ([][]float64, error) {
	s, err := StateAs[S](state, t.Algorithm.Name)
	if err != nil {
		return nil, err
	}
	var values []float64
	err = torch.Do(func(*torch.Scope) error {
		m, inverse, scale := t.Kinetic(&s)
		square := torch.Must(m.T().Square(false))
		if inverse != (torch.Tensor{}) {
			square = torch.Must(square.Mul(inverse.T(), false))
		}
		values = torch.Must(torch.ToSlice[float64](torch.Of(square)))
		for i := range values {
			values[i] *= scale * t.n
		}
		return nil
	})
	if err != nil {
		return nil, named(t.Algorithm.Name, err)
	}
	return P(&s).base().Params.Layout.SiteMeans(values), nil
}

// named puts the name of a method before an error, unless it is that of a field, which has it.
func named(name string, err error) error {
	if f := (*infer.FieldError)(nil); errors.As(err, &f) && f.Type == name {
		return err
	}
	return fmt.Errorf("%s: %w", name, err)
}

// Momenta are the first momenta of a method: a copy of the field Momenta, or, when that is nil, momenta of law
// N(0, scale²·root²), with root of shape [d], or 1 when nil. Given momenta have the shape of θ, or [d] for all chains.
func (m *Move) Momenta(given torch.Tensor, scale float64, root torch.Tensor) torch.Tensor {
	theta := m.state.Params.Flat
	if given != (torch.Tensor{}) {
		return m.given(theta, given)
	}
	z := m.Normal(theta)
	if root != (torch.Tensor{}) {
		z = torch.Of(torch.Must(z.T().Mul(root.T(), false)))
	}
	return Combine(Term(scale, z))
}

// given are given momenta in the form of θ; one vector becomes a row for each chain.
func (m *Move) given(theta, given torch.Tensor) torch.Tensor {
	shape, want := given.Shape(), theta.Shape()
	row := want[len(want)-1:]
	allowed := fmt.Sprintf("it must be of the params' shape, %v", want)
	if len(want) > 1 {
		allowed += fmt.Sprintf(", or of shape %v for all chains alike", row)
	}
	m.Require(slices.Equal(shape, want) || slices.Equal(shape, row), "Momenta", fmt.Sprintf("of shape %v", shape),
		allowed)
	if err := (infer.Params{Layout: m.state.Params.Layout, Flat: given}).Check(); err != nil {
		torch.Must(0, fmt.Errorf("Momenta: %w", err))
	}
	own := torch.Must(torch.To(given, torch.Must(torch.DeviceOf(theta)), torch.Must(torch.DTypeOfTensor(theta))))
	return Combine(Term(0, theta), Term(1, torch.Of(torch.Must(own.T().Detach(false)))))
}
