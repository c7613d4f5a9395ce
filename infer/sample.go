package infer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// Program is what is sampled: a compiled model (*ppl.Program), or a target of your own ([Handwritten]).
type Program interface {
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

// Result is what a run leaves when it ends, or when it was stopped.
type Result struct {
	Draws         *draws.Draws // named values; nil while there are none
	Unconstrained *draws.Draws // the same draws on unconstrained space
	Transform     Transform    // what the method built
	// the last state, the caller's; nil for methods that drive themselves, and with several groups
	State     State
	Last      Params   // the last point of each chain, of shape [Chains, d]
	Average   *Average // with Options.Average, if there were updates after the warm-up
	Updates   int64    // of each chain, or transitions of all chains of a method that drives itself
	Held      int64    // updates of single chains that were held, because something was not finite
	Gradients int64    // evaluated by this process, one for each chain
	Detail    any      // what a method that drives itself tells besides, such as *hmc.Detail
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
			err = &PanicError{In: in, Value: v, Stack: string(debug.Stack())}
		}
	}()
	return f()
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
	from      Position // where the batches stand at the start of every group
	data      float64  // N
	rows      *rows
	observer  Observer
	began     time.Time

	state     State
	last      []*ts.Tensor
	averages  []*Average
	updates   int64
	held      int64
	gradients int64
	details   []any

	compilation *compilation
}

func run(name string, ctx context.Context, program Program, method Method, o Options) (*Result, error) {
	s := &session{ctx: ctx, program: program, began: time.Now()}
	if err := guard("model", func() error { return s.prepare(method, o) }); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	defer func() {
		if l, ok := s.observer.(*progressLine); ok {
			l.end()
		}
	}()
	err := guard("model", func() error { return s.run(method) })
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
	target.compilation = s.compilation
	var err error
	if s.transform, err = method.Build(target); err != nil {
		return err
	}
	s.name = nameOf(s.transform)
	if s.o, err = o.resolved(method, s.transform); err != nil {
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
		s.batches = Full(s.program.Batch())
		// A program can tell whether its batch is all of the data: with a part of them the posterior would be another.
		if p, ok := s.program.(interface{ CheckFull(Batch) error }); ok {
			if err := p.CheckFull(s.program.Batch()); err != nil {
				return fmt.Errorf("%s sees the same batch in every update: give all of the data, or Batches: %w", s.name, err)
			}
		}
	}
	s.from = s.batches.Position()
	if _, whole := s.batches.(*full); !whole {
		if _, ok := s.transform.(Driver); ok {
			return &FieldError{Type: optionsName, Field: "Batches", Value: "given",
				Allowed: s.name + " needs all of the data in every update: leave it nil"}
		}
	}
	s.rows = &rows{session: s}
	if s.observer = o.Observer; s.observer == nil {
		s.observer = newProgressLine()
	}
	return nil
}

// start is where the chains start, of shape [Chains, d], or [d] for a single chain given so.
func (s *session) start() (Params, error) {
	p, err := s.o.Start, error(nil)
	if p.Flat == nil {
		if p, err = s.program.Start(s.program.Batch(), s.o.Chains, s.o.Seed); err != nil {
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

// run runs the groups one after the other, after the search for a mode where the method needs one.
func (s *session) run(method Method) error {
	start, err := s.start()
	if err != nil {
		return err
	}
	if finder, ok := s.transform.(ModeFinder); ok {
		if start, err = s.climb(finder, start); err != nil {
			return fmt.Errorf("looking for the mode: %w", err)
		}
	}
	for from := 0; from < s.o.Chains; from += s.o.Group {
		g := group{session: s, from: from, size: min(s.o.Group, s.o.Chains-from)}
		if g.start, err = part(start, from, g.size); err != nil {
			return err
		}
		if s.o.Checkpoint != nil {
			own := *s.o.Checkpoint
			if g.checkpoint = &own; s.o.Group < s.o.Chains {
				own.Dir = filepath.Join(own.Dir, fmt.Sprintf("chains-%06d", from))
			}
		}
		if err := s.batches.Seek(s.from); err != nil {
			return err
		}
		if driver, ok := s.transform.(Driver); ok {
			err = g.drive(driver)
		} else {
			err = g.update()
		}
		if err != nil {
			if s.o.Group < s.o.Chains {
				err = fmt.Errorf("chains %d to %d: %w", from, from+g.size-1, err)
			}
			return err
		}
	}
	return s.tooManyHeld()
}

// climb runs the method that finds the mode.
func (s *session) climb(finder ModeFinder, start Params) (Params, error) {
	method, target := finder.FindMode()
	if s.o.Warmup == 0 {
		return start, nil
	}
	o := Options{Chains: s.o.Chains, Warmup: s.o.Warmup, Draws: None, Seed: s.o.Seed, FirstChain: s.o.FirstChain,
		Start: start, Batches: s.o.Batches, Group: s.o.Group, Native: s.o.Native,
		Until: s.o.Until, Observer: s.observer}
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
	if !start.Batched() { // the mode of a single point is one
		return r.Last.with(r.Last.Flat.Reshape([]int64{-1}, false))
	}
	return r.Last, nil
}

// climbing is a program with another target.
type climbing struct {
	Program
	target Target
}

func (c climbing) Target() Target { return c.target }

// part is some of the chains of a point.
func part(p Params, from, size int) (Params, error) {
	if !p.Batched() || size == p.Chains() {
		return p.copy()
	}
	view, err := p.with(p.Flat.Narrow(0, int64(from), int64(size), false))
	if err != nil {
		return p, err
	}
	return view.copy()
}

// tooManyHeld is the error of a run that mostly stood still.
func (s *session) tooManyHeld() error {
	if all := s.updates * int64(s.o.Chains); s.held*2 > all {
		return fmt.Errorf("%.3g %% of the updates were held because the log posterior or its gradient was not finite: "+
			"lower the step size of %s, or start elsewhere: %w", 100*float64(s.held)/float64(all), s.name, ErrNonFinite)
	}
	return nil
}

// finish makes the result.
func (s *session) finish(r *Result) error {
	r.Transform, r.Updates, r.Held, r.Gradients = s.transform, s.updates, s.held, s.gradients
	r.State = s.state
	if len(s.details) == 1 {
		r.Detail = s.details[0]
	} else if len(s.details) > 1 {
		r.Detail = s.details
	}
	d := s.layout.Dim()
	var err error
	if len(s.last) > 0 {
		r.Last.Layout = s.layout
		if r.Last.Flat, err = stacked(s.last, d); err != nil {
			return err
		}
	}
	if len(s.averages) > 0 {
		if r.Average, err = averaged(s.averages, s.layout); err != nil {
			return err
		}
	}
	if r.Unconstrained, err = s.rows.container(); err != nil {
		return err
	}
	if r.Unconstrained == nil || r.Unconstrained.Total() == 0 {
		return s.rows.save()
	}
	if r.Last.Flat == nil { // a method that drives itself ends at its last draws
		if r.Last, err = lastRows(r.Unconstrained, s.layout); err != nil {
			return err
		}
	}
	s.describe(r)
	if err := s.rows.save(); err != nil {
		return err
	}
	if r.Draws, err = s.program.Draws(r.Unconstrained, s.program.Batch()); err != nil {
		return err
	}
	if r.Draws != r.Unconstrained {
		for key, value := range r.Unconstrained.Attrs() {
			r.Draws.SetAttr(key, value)
		}
		for _, n := range r.Unconstrained.Notes() {
			r.Draws.AddNote(n)
		}
	}
	return nil
}

// lastRows are the last draws of all chains; the zero value while one has none.
func lastRows(d *draws.Draws, l *Layout) (Params, error) {
	var flat []float64
	for c := range d.Chains() {
		if d.Len(c) == 0 {
			return Params{}, nil
		}
		flat = append(flat, d.Row(c, d.Len(c)-1)...)
	}
	t, err := torch.FromSlice(flat, int64(d.Chains()), int64(l.Dim()))
	return Params{Layout: l, Flat: t}, err
}

// describe says in the draws how they came about, and what the method has to say about its run.
func (s *session) describe(r *Result) {
	d := r.Unconstrained
	d.SetAttr(draws.AttrMethod, s.name)
	d.SetAttr("gradient", s.compilation.String())
	d.SetAttr("seed", strconv.FormatUint(s.o.Seed, 10))
	d.SetAttr("warmup", strconv.Itoa(s.o.Warmup))
	d.SetAttr("thin", strconv.Itoa(s.o.Thin))
	d.SetAttr("data", strconv.FormatFloat(s.data, 'g', -1, 64))
	if noter, ok := s.transform.(Noter); ok {
		summary := RunSummary{Updates: s.updates, Held: s.held, Info: s.rows.info, Layout: s.layout, Batch: s.program.Batch(),
			Draws: d}
		for _, n := range noter.Notes(s.state, summary) {
			d.AddNote(n)
		}
	}
}

// averaged puts the averages of groups below each other.
func averaged(groups []*Average, l *Layout) (*Average, error) {
	if len(groups) == 1 {
		return groups[0], nil
	}
	a := &Average{Mean: Params{Layout: l}, Variance: Params{Layout: l}, Weight: groups[0].Weight}
	var means, variances []*ts.Tensor
	for _, g := range groups {
		means, variances = append(means, g.Mean.Flat), append(variances, g.Variance.Flat)
	}
	var err error
	if a.Mean.Flat, err = stacked(means, l.Dim()); err != nil {
		return nil, err
	}
	a.Variance.Flat, err = stacked(variances, l.Dim())
	return a, err
}

// stacked puts points of shape [d] or [K, d] below each other.
func stacked(points []*ts.Tensor, d int) (out *ts.Tensor, err error) {
	err = torch.Do(func(s *torch.Scope) error {
		rows := make([]*ts.Tensor, len(points))
		for i, p := range points {
			if rows[i], err = p.Reshape([]int64{-1, int64(d)}, false); err != nil {
				return err
			}
		}
		out, err = ts.Cat(rows, 0)
		s.Keep(out)
		return err
	})
	return out, err
}

// nameOf is the stable name of a transform.
func nameOf(t Transform) string {
	if named, ok := t.(Named); ok {
		return named.Name()
	}
	return fmt.Sprintf("%T", t)
}

// group are the chains that run at once.
type group struct {
	*session
	from, size int // chains from, from+1, ...
	start      Params
	checkpoint *Checkpoint
	file       *checkpointer
	resumed    int64
}

// progress is what all observers are told.
func (g *group) progress() Progress {
	return Progress{Method: g.name, Chains: g.size, FirstChain: g.first(), Transform: g.transform,
		Elapsed: time.Since(g.began),
		Resumed: g.resumed, Draws: g.rows.least(g.from, g.size), Gradients: g.gradients}
}

// first is the number of the group's first chain among all streams.
func (g *group) first() uint64 { return g.o.FirstChain + uint64(g.from) }

// every is after how many updates, or transitions of each chain, a checkpoint or a block of draws is due.
func (g *group) every(def int64) int64 {
	switch {
	case g.checkpoint != nil:
		return cmp.Or(g.checkpoint.Every, def)
	case g.o.Save != nil:
		return int64(g.o.SaveEvery)
	}
	return 0
}
