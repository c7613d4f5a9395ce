package infer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"
	"time"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/torch"
)

// RunConfig says how [Run] drives a transform.
type RunConfig struct {
	Steps  int64  // updates; required
	BurnIn int64  // updates before the first draw; default 0
	Thin   int64  // updates for each draw; default 1
	Chains int    // chains; default the chains of the params. A single point is repeated.
	Seed   uint64 // of the random streams: chain k gets (Seed, FirstChain + k)
	// FirstChain is the number of the first chain, where this run is a part of a larger one; see [RunEnsemble].
	FirstChain uint64
	// Cycles takes the draws at the ends of cycles: the last sample of every Thin-th cycle that ends after BurnIn; nil for
	// a draw every Thin updates.
	Cycles *Cycles
	// Average also averages over all updates after BurnIn, weighted by their step sizes: Result.Average.
	Average bool
	// Until ends the run after the update for which it returns true; nil for a run of Steps updates. A checkpoint remembers that
	// it did: with an Until a run that is resumed then has ended, without one it goes on.
	Until func(Progress) bool

	lastOnly bool // one draw, after the last update
	// NoDraws leaves the draws out, for large networks; observers see the states.
	NoDraws bool
	// Observer sees every update; nil for none.
	Observer Observer
	// Checkpoint saves the run as it goes; nil for none.
	Checkpoint *Checkpoint
}

// Result is what a run has when it ends, or when it was stopped.
type Result struct {
	// Draws holds one draw of each chain for every Thin updates after burn-in, or at the ends of cycles, with the statistics of
	// the update that led to it: "lp" (the log posterior where its gradient was taken), "grad_norm" and "diverging" (1 when the chain was held).
	Draws *draws.Draws
	// State is the last state. It is the caller's.
	State State
	// Average is the time average of each chain, when RunConfig.Average asks for it and there were updates after burn-in.
	Average *Average
	// Steps is the number of updates done, Diverged how many of single chains were held.
	Steps, Diverged int64
}

// Run makes the state at p and updates it with one batch after another. When ctx is cancelled, or an update fails, it
// returns what it has together with the error. A log posterior that is not finite at the first update is an error;
// later on it is counted.
func Run(ctx context.Context, t Transform, p Params, batches Batches, c RunConfig) (*Result, error) {
	r, err := newRun(t, p, batches, c)
	if err != nil {
		return nil, fmt.Errorf("infer.Run: %w", err)
	}
	err = r.loop(ctx)
	if err != nil {
		err = fmt.Errorf("infer.Run: after %d of %d updates: %w", r.steps, c.Steps, err)
	}
	result, resultErr := r.result()
	return result, errors.Join(err, resultErr)
}

// run is a run under way.
type run struct {
	t        Transform
	batches  Batches
	c        RunConfig
	chains   int
	layout   *Layout
	state    State
	draws    *draws.Draws
	extra    []string // names of the statistics of the method's own, sorted
	steps    int64
	resumed  int64
	diverged int64
	average  *averager // nil unless asked for
	ended    bool      // by Until
	started  time.Time
	file     *checkpointer
}

func newRun(t Transform, p Params, batches Batches, c RunConfig) (*run, error) {
	if t == nil || batches == nil {
		return nil, fmt.Errorf("the transform or the batches are nil: %w", ErrConfig)
	}
	for _, f := range []struct {
		name  string
		value int64
		least int64
	}{{"Steps", c.Steps, 1}, {"BurnIn", c.BurnIn, 0}, {"Thin", c.Thin, 0}, {"Chains", int64(c.Chains), 0}} {
		if f.value < f.least {
			return nil, &FieldError{Type: "infer.RunConfig", Field: f.name, Value: f.value, Allowed: fmt.Sprintf("it must be at least %d", f.least)}
		}
	}
	if c.BurnIn >= c.Steps && !c.NoDraws && !c.lastOnly {
		return nil, &FieldError{Type: "infer.RunConfig", Field: "BurnIn", Value: c.BurnIn,
			Allowed: fmt.Sprintf("it must be less than the %d Steps, or there are no draws (NoDraws asks for none)", c.Steps)}
	}
	c.Thin = max(c.Thin, 1)
	if err := c.checkCycles(); err != nil {
		return nil, err
	}
	if c.Checkpoint != nil && c.Checkpoint.Every < 0 {
		return nil, &FieldError{Type: "infer.Checkpoint", Field: "Every", Value: c.Checkpoint.Every, Allowed: "it must be at least 0"}
	}
	if err := p.Check(); err != nil {
		return nil, err
	}
	if err := p.Layout.check(); err != nil {
		return nil, err
	}
	// The state is made at a copy, which the run may free whether or not the transform keeps it as it is.
	own := p.copy
	if c.Chains > 0 && c.Chains != p.Chains() {
		own = func() (Params, error) { return p.Repeat(c.Chains) }
	}
	start, err := own()
	if err != nil {
		return nil, fmt.Errorf("Chains is %d and the params have %d: %w", c.Chains, p.Chains(), err)
	}
	r := &run{t: t, batches: batches, c: c, chains: start.Chains(), layout: p.Layout, started: time.Now()}
	if r.state, err = initFrom(t, start, c.Seed, c.FirstChain); err != nil {
		return nil, err
	}
	if c.Average {
		r.average = &averager{}
	}
	if r.state.Position().Flat != start.Flat {
		torch.Free(start.Flat)
	}
	if c.Checkpoint != nil {
		if r.file, err = openCheckpoint(r); err != nil {
			return nil, fmt.Errorf("checkpoint in %s: %w", c.Checkpoint.Dir, err)
		}
	}
	return r, nil
}

func (r *run) loop(ctx context.Context) error {
	defer func() {
		if r.file != nil {
			r.file.close()
		}
	}()
	for r.steps < r.c.Steps && !(r.ended && r.c.Until != nil) {
		if err := ctx.Err(); err != nil {
			if r.file != nil {
				if saveErr := r.file.save(r); saveErr != nil {
					return fmt.Errorf("%w; the checkpoint was not saved: %w", err, saveErr)
				}
			}
			return err
		}
		if err := r.step(); err != nil {
			return err
		}
		if r.file != nil && (r.steps%r.c.Checkpoint.every() == 0 || r.steps == r.c.Steps || r.ended) {
			if err := r.file.save(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// step makes one update; what it allocates besides the new state is freed at its end.
func (r *run) step() error {
	return torch.Do(func(*torch.Scope) error {
		if err := r.prepare(); err != nil {
			return err
		}
		batch, err := r.batches.Next()
		if err != nil {
			return err
		}
		next, info, err := r.t.Update(r.state, batch)
		if err != nil {
			return err
		}
		if r.average != nil && r.steps >= r.c.BurnIn {
			if err := r.average.add(r.state.Position().Flat, cmp.Or(info.TimeStep, info.LR)); err != nil {
				return err
			}
		}
		r.replace(next)
		r.steps++
		for k, bad := range info.Diverged {
			if !bad {
				continue
			}
			r.diverged++
			if r.steps == 1 {
				return fmt.Errorf("the log posterior of chain %d is %v and the norm of its gradient %v at the start: %w",
					k, at(info.LogPosterior, k), at(info.GradNorm, k), ErrNonFinite)
			}
		}
		if err := r.record(info); err != nil {
			return err
		}
		p := Progress{Step: r.steps, Steps: r.c.Steps, Diverged: r.diverged, Elapsed: time.Since(r.started), Resumed: r.resumed,
			State: r.state, Info: info, FirstChain: r.c.FirstChain, Transform: r.t}
		if r.draws != nil {
			p.Draws = r.draws.MinLen()
		}
		if r.c.Observer != nil {
			r.c.Observer.Observe(p)
		}
		r.ended = r.c.Until != nil && r.c.Until(p)
		if r.c.lastOnly && (r.ended || r.steps == r.c.Steps) {
			return r.draw(info)
		}
		return nil
	})
}

// prepare lets the transform look at the batches to come, and then goes back to where they begin.
func (r *run) prepare() error {
	t, ok := r.t.(Preparer)
	if !ok {
		return nil
	}
	at := r.batches.Position()
	epoch := at.Index == 0
	if !t.Due(r.state, epoch) {
		return nil
	}
	next, err := t.Prepare(r.state, epoch, r.batches.Next)
	if err != nil {
		return err
	}
	r.replace(next)
	return r.batches.Seek(at)
}

// replace frees the state and puts another in its place. Tensors that both have live on.
func (r *run) replace(next State) {
	owned, shared := next.Tensors()
	tensors := slices.Concat(slices.Collect(maps.Values(owned)), slices.Collect(maps.Values(shared)))
	// Not kept in the caller's scope, where there is one: it would remember every state of the run.
	torch.Detach(tensors...)
	before, _ := r.state.Tensors()
	for _, t := range before {
		if !slices.Contains(tensors, t) {
			torch.Free(t)
		}
	}
	r.state = next
}

// record appends a draw when it is time for one.
func (r *run) record(info Info) error {
	if r.c.NoDraws || r.c.lastOnly || !r.c.draws(r.steps) {
		return nil
	}
	return r.draw(info)
}

// draw appends a draw.
func (r *run) draw(info Info) error {
	if r.draws == nil {
		for name := range info.Stats {
			r.extra = append(r.extra, name)
		}
		sort.Strings(r.extra)
		if err := r.newDraws(); err != nil {
			return err
		}
	}
	values, err := torch.ToSlice[float64](r.state.Position().Flat)
	if err != nil {
		return err
	}
	stats := make([]float64, 0, r.chains*(3+len(r.extra)))
	for k := range r.chains {
		diverging := 0.0
		if k < len(info.Diverged) && info.Diverged[k] {
			diverging = 1
		}
		stats = append(stats, at(info.LogPosterior, k), at(info.GradNorm, k), diverging)
		for _, name := range r.extra {
			stats = append(stats, at(info.Stats[name], k))
		}
	}
	if err := r.draws.Append(values, stats); err != nil {
		return err
	}
	if r.file != nil {
		r.file.pending(values, stats)
	}
	return nil
}

func (r *run) newDraws() (err error) {
	r.draws, err = draws.New(r.layout.Sites, append([]string{"lp", "grad_norm", "diverging"}, r.extra...), r.chains)
	return err
}

func (r *run) result() (*Result, error) {
	if r.draws == nil && !r.c.NoDraws {
		_ = r.newDraws() // empty: the layout was checked when the run began
	}
	result := &Result{Draws: r.draws, State: r.state, Steps: r.steps, Diverged: r.diverged}
	if r.average == nil {
		return result, nil
	}
	var err error
	result.Average, err = r.average.result(r.layout)
	return result, err
}

// at is element k, or NaN for a method that does not tell.
func at(values []float64, k int) float64 {
	if k < len(values) {
		return values[k]
	}
	return nan
}
