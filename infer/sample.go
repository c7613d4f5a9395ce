package infer

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/internal/foreign"
	"github.com/kelvin-ppl/kelvin/internal/raw"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Program is what is sampled: a compiled model (*ppl.Program), or a target of your own ([Handwritten]).
type Program interface {
	// Target is the log density, Layout the sites of its points.
	Target() Target
	Layout() *Layout
	// Batch is all of the data.
	Batch() Batch
	// Start is a point of shape [d] or [chains, d] at which density and gradient are finite.
	Start(batch Batch, chains int, seed uint64) (Params, error)
	// Draws maps draws on unconstrained space to named values.
	Draws(unconstrained *draws.Draws, batch Batch) (*draws.Draws, error)
}

// Sample draws from the posterior of a program with any method, and returns named values, chains x draws:
//
//	draws, err := infer.Sample(ctx, program, hmc.NUTS{}, infer.Options{}) // 4 chains of 1000 draws after 1000
//
// A sampler makes Warmup updates and then a draw every Thin updates. A method that fits a distribution (variational,
// Laplace, Kalman) fits it in the warm-up and then draws from it. An optimiser gives the point where each chain ends.
//
// The same program, method and options give the same draws, bit for bit, with one libtorch and one number of
// threads. When the run is cancelled or fails, the draws that there are come back with the error; they are nil only
// if there are none.
func Sample(ctx context.Context, program Program, method Method, o Options) (*draws.Draws, error) {
	r, err := run("infer.Sample", ctx, program, method, o)
	if r == nil {
		return nil, err
	}
	return r.Draws, err
}

// Run is [Sample] with all that a run leaves. The result is nil only if nothing was run.
func Run(ctx context.Context, program Program, method Method, o Options) (*Result, error) {
	return run("infer.Run", ctx, program, method, o)
}

// PanicError is a panic of a function of the user's, a model or an observer, made an error, so that a run does not lose
// its draws to it.
type PanicError struct {
	In    string // which function
	Value any    // what it panicked with
	Stack string // where
}

// Error names the function and the value. The stack is in the field.
func (e *PanicError) Error() string { return fmt.Sprintf("panic in the %s: %v", e.In, e.Value) }

// Unwrap gives the value if it was an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// guard makes a panic of f an error.
func guard(in string, f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = panicIn(in, v)
		}
	}()
	return f()
}

// calling calls a function of the user's within a run, so that its panic names it, and not the model.
func calling[T any](in string, f func() T) T {
	defer func() {
		if v := recover(); v != nil {
			panic(panicIn(in, v))
		}
	}()
	return f()
}

// panicIn is the error of a panic. One that names where it was stays as it is.
func panicIn(in string, v any) *PanicError {
	if p, ok := v.(*PanicError); ok {
		return p
	}
	return &PanicError{In: in, Value: v, Stack: string(debug.Stack())}
}

// session is one call of the door.
type session struct {
	ctx       context.Context
	program   Program
	o         Options
	layout    *Layout
	transform Transform
	name      string
	batches   Batches
	all       Batch    // all of the data, in the types that the program calculates with
	from      Position // where the batches stand at the start of every group
	data      float64  // N
	rows      *rows
	observer  Observer
	began     time.Time

	state     State
	last      []torch.Tensor
	averages  []*Average
	updates   int
	held      int
	gradients int
	details   []any

	compilation *compilation
	tally       foreign.Count // of what runs inside the model
	origin      Params        // where the chains start, of few coordinates
	mode        Params        // where the search for a mode ended
	changed     []draws.Note  // of that search: the model was not what was compiled
	tuned       string        // what the method found open
}

func run(name string, ctx context.Context, program Program, method Method, o Options) (*Result, error) {
	s := &session{ctx: ctx, program: program, began: time.Now(), tally: foreign.BeginCount()}
	if t, ok := method.(Tuner); ok && ctx != nil && program != nil {
		err := guard("model", func() (err error) {
			method, o.Start, s.tuned, err = t.Tune(ctx, program, o)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	if _, climbs := program.(climbing); !climbs { // whose batches are those of the run around it
		release, err := hold(o.Batches)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		defer release()
	}
	if err := guard("model", func() error { return s.prepare(method, o) }); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	defer func() {
		if l, ok := s.observer.(interface{ end() }); ok {
			l.end()
		}
	}()
	err := guard("model", func() error {
		err := s.run(method)
		at, where := s.mode, "ended"
		if at.Flat == (torch.Tensor{}) && errors.Is(err, ErrNonFinite) && s.updates > 0 {
			at, where = s.origin, "began"
		}
		if err != nil && at.Flat != (torch.Tensor{}) && s.ctx.Err() == nil { // a fit about a mode that does not exist
			for _, n := range s.endless(at, where, false) {
				err = fmt.Errorf("%w. %s %s", err, n.Text, n.Advice)
			}
		}
		return err
	})
	if err != nil && s.updates == 0 && s.rows.least(0, 1) == 0 && s.state == nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	result := &Result{}
	after := guard("model", func() error { return s.finish(result) })
	if err = errors.Join(err, after); err != nil {
		return result, fmt.Errorf("%s: %w", name, err)
	}
	return result, nil
}

// prepare builds the transform, fills in the options, and finds where the chains start.
func (s *session) prepare(method Method, o Options) error {
	for what, missing := range map[string]bool{"context": s.ctx == nil, "program": s.program == nil,
		"method": method == nil} {
		if missing {
			return fmt.Errorf("the %s is nil: %w", what, ErrConfig)
		}
	}
	target := s.program.Target()
	s.compilation = &compilation{options: native.Options{Tier: o.Native}}
	s.compilation.spots.aside = s.tally.Aside
	target.compilation = s.compilation
	var err error
	if s.transform, err = method.Build(target); err != nil {
		return err
	}
	s.name = nameOf(s.transform)
	if s.o, err = o.resolved(method, s.transform); err != nil {
		return err
	}
	if err := s.warm(target); err != nil {
		return err
	}
	if s.layout = s.program.Layout(); s.layout == nil {
		return fmt.Errorf("the program has no layout: %w", ErrConfig)
	}
	if err := s.layout.check(); err != nil {
		return err
	}
	s.data = target.N()
	if s.batches = o.Batches; s.batches == nil {
		all := s.program.Batch()
		// A driver needs the sum over all data alone: a program may have these as sufficient statistics too.
		if p, ok := s.program.(interface{ MergedBatch() Batch }); ok {
			if _, drives := s.transform.(Driver); drives {
				all = p.MergedBatch()
			}
		}
		s.batches = Full(all)
		// A program can tell whether its batch is all of the data: with a part of them the posterior would be another.
		if p, ok := s.program.(fuller); ok {
			if err := p.CheckFull(s.program.Batch()); err != nil {
				return fmt.Errorf("%s sees the same batch in every update: give all of the data, or Batches: %w", s.name, err)
			}
		}
		if b, ok := s.transform.(Batcher); ok {
			if own, err := b.Batches(s.program.Batch(), s.o.Seed); err == nil {
				s.batches = own
			}
		}
	}
	switch b := s.batches.(type) {
	case *full:
		own := new(atomic.Int64) // so that the passes of runs that share the data are counted apart
		own.Store(b.given.Load())
		s.batches = &full{batch: b.batch, given: own}
	case *minibatches:
	default:
		s.batches = ofUser{s.batches}
	}
	s.from = s.batches.Position()
	if _, whole := s.batches.(*full); !whole {
		if _, ok := s.transform.(Driver); ok {
			return &FieldError{Type: optionsName, Field: "Batches", Value: "given",
				Allowed: s.name + " needs all of the data in every update: leave it nil, or give infer.Full"}
		}
	}
	if err := s.checkWhole(); err != nil {
		return err
	}
	if o.Batches != nil {
		if err := s.checkFull(target.Data); err != nil {
			return err
		}
	}
	if err := s.checkTotal(target.Data); err != nil {
		return err
	}
	if t, ok := s.transform.(interface{ CheckRows(Batch) error }); ok {
		if f, ok := s.batches.(*full); ok {
			if err := t.CheckRows(f.batch); err != nil {
				return err
			}
		}
	}
	s.rows = &rows{session: s}
	if s.observer = o.Observer; s.observer == nil {
		s.observer = newProgressLine(o.Logger)
	}
	return nil
}

// start is where the chains start, of shape [Chains, d], or [d] for a single chain given so.
func (s *session) start() (Params, error) {
	p := s.o.Start
	if p.Flat == (torch.Tensor{}) {
		data, err := s.whole()
		if err != nil {
			return p, err
		}
		if p, err = s.program.Start(data, s.o.Chains, s.o.Seed); err != nil {
			return p, err
		}
	} else if !p.Layout.Equal(s.layout) {
		return p, &FieldError{Type: optionsName, Field: "Start", Value: p.Layout,
			Allowed: fmt.Sprintf("its layout must be the program's, %v", s.layout)}
	}
	if err := p.Check(); err != nil {
		return p, err
	}
	switch k := p.Chains(); {
	case k == s.o.Chains:
		return p.copy()
	case k == 1 && !p.Batched():
		return p.Repeat(s.o.Chains)
	}
	return p, &FieldError{Type: optionsName, Field: "Start", Value: fmt.Sprintf("of %d chains", p.Chains()),
		Allowed: fmt.Sprintf("it must be one point, or one for each of %d chains", s.o.Chains)}
}

// climb runs the method that finds the mode.
func (s *session) climb(finder ModeFinder, start Params) (Params, error) {
	method, target := finder.FindMode()
	if s.o.Warmup == 0 {
		return start, nil
	}
	o := Options{Chains: s.o.Chains, Warmup: s.o.Warmup, Draws: None, Seed: s.o.Seed, FirstChain: s.o.FirstChain,
		Start: start, Group: s.o.Group, Native: s.o.Native,
		Until: s.o.Until, Observer: s.observer}
	if s.o.Batches != nil {
		o.Batches = s.batches // converted
	}
	if c := s.o.Checkpoint; c != nil {
		own := *c
		own.Dir = filepath.Join(c.Dir, "mode")
		o.Checkpoint = &own
	}
	r, err := run("mode", s.ctx, climbing{s.program, target}, method, o)
	if err != nil {
		return start, err
	}
	s.gradients += r.Gradients
	s.mode, s.changed = r.Last, r.changed
	if !start.Batched() { // the mode of a single point is one
		return r.Last.with(raw.Of(r.Last.Flat.T().Reshape([]int64{-1}, false)))
	}
	return r.Last, nil
}

// climbing is a program with another target.
type climbing struct {
	Program
	target Target
}

func (c climbing) Target() Target { return c.target }
