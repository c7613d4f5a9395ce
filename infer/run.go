package infer

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/torch"
)

// updater runs a group of chains one update after another.
type updater struct {
	*group
	state   State
	extra   []string // names of the statistics of the method's own, sorted
	steps   int
	total   int
	held    int
	average *averager // nil unless asked for
	ended   bool      // by Until, or by the end of the last pass
	passes  bool      // the run is a number of passes, total is 0
	pending *pending  // a draw whose log density is not known yet
	stuck   []bool    // chains that the last update held; nil for none
	fused   *fused    // makes updates without tensors; nil where method or model need them
}

// pending is a draw of each chain that waits for the next evaluation, which is at its point.
type pending struct{ values, stats []float64 }

// update makes the updates of a group.
func (g *group) update() (err error) {
	r := &updater{group: g, total: g.o.updates()}
	if _, ok := g.transform.(Sampler); ok {
		r.total = g.o.Warmup
	}
	if _, ok := g.transform.(Passer); ok {
		r.total, r.passes = 0, true
	}
	if r.state, err = begin(g.transform, g.start, g.o.Seed, g.first()); err != nil {
		return err
	}
	if g.o.Average {
		r.average = &averager{}
	}
	if r.state.Position().Flat != g.start.Flat {
		torch.Free(g.start.Flat)
	}
	r.fused = newFused(r)
	if g.checkpoint != nil {
		if g.file, err = openCheckpoint(g, r.state.Position().Flat); err != nil {
			return g.inFolder(err)
		}
		defer g.file.close()
		if err := g.file.resumeUpdates(r); err != nil {
			return g.inFolder(err)
		}
	}
	err = guard("model", r.loop)
	if err == nil {
		err = r.fitted()
	}
	if err != nil {
		total := fmt.Sprint(r.total)
		if r.passes {
			total = "one pass of"
		}
		err = fmt.Errorf("after %d of %s updates: %w", r.steps, total, err)
	}
	return errors.Join(err, r.end(err != nil))
}

// begin makes the state of a transform at p with the streams of the chains first, first+1, ...
func begin(t Transform, p Params, seed, first uint64) (State, error) {
	if t == nil {
		return nil, fmt.Errorf("the transform is nil: %w", ErrConfig)
	}
	seeded, ok := t.(Seeded)
	if !ok {
		return t.Init(p)
	}
	streams := torch.NewStreams(seed, p.Chains())
	for k := range streams.Chains {
		streams.Chains[k] += first
	}
	return seeded.InitStreams(p, streams)
}

// more says whether there are updates to make.
func (r *updater) more() bool {
	if r.ended && (r.o.Until != nil || r.passes) {
		return false
	}
	return r.passes || r.steps < r.total
}

func (r *updater) loop() error {
	every := r.every(1000)
	for r.more() {
		if err := r.ctx.Err(); err != nil {
			if saveErr := r.checkpointed(); saveErr != nil {
				return fmt.Errorf("%w; the checkpoint was not saved: %w", err, saveErr)
			}
			return err
		}
		most := r.total - r.steps
		if every > 0 {
			most = min(most, every-r.steps%every)
		}
		if made, err := r.fused.advance(most); err != nil {
			return err
		} else if !made {
			if err := r.step(); err != nil {
				return err
			}
		}
		if every > 0 && (r.steps%every == 0 || !r.more()) {
			if err := r.checkpointed(); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkpointed hands out the new draws, and then writes the checkpoint that covers them.
func (r *updater) checkpointed() error {
	if err := r.settle(); err != nil {
		return err
	}
	if err := r.rows.save(); err != nil {
		return err
	}
	if r.file == nil {
		return nil
	}
	if err := r.fused.sync(); err != nil {
		return err
	}
	return r.file.saveUpdates(r)
}

// step makes one update; what it allocates besides the new state is freed at its end.
func (r *updater) step() error {
	return torch.Do(func(*torch.Scope) error {
		if err := r.prepare(); err != nil {
			return err
		}
		batch, err := r.batches.Next()
		if err != nil {
			return err
		}
		if _, passes := r.transform.(Passer); passes {
			batch = batch.Alone() // which it adds up itself
		}
		next, info, err := r.update(batch)
		if err != nil {
			return err
		}
		r.replace(next)
		r.steps++
		if err := r.complete(info); err != nil {
			return err
		}
		r.session.updates = max(r.session.updates, r.steps)
		r.session.gradients += r.size
		r.rows.info, r.stuck = info, info.Diverged
		for k, bad := range info.Diverged {
			if !bad {
				continue
			}
			r.held++
			if r.steps == 1 {
				return r.nowhere(k, at(info.LogPosterior, k), at(info.GradNorm, k))
			}
		}
		if _, ok := r.transform.(Sampler); !ok && r.o.draws(r.steps) {
			values, err := torch.ToSlice[float64](r.state.Position().Flat)
			if err != nil {
				return err
			}
			if err := r.draw(values, info); err != nil {
				return err
			}
		}
		r.tell(info)
		if passer, ok := r.transform.(Passer); ok && r.batches.Position().Epoch-r.session.from.Epoch >= passer.Passes() {
			r.ended = true
		}
		return nil
	})
}

// update makes one update. The state before is freed, or goes into the average.
func (r *updater) update(batch Batch) (next State, info Info, err error) {
	if r.average == nil || r.steps < r.o.Warmup {
		return Advance(r.transform, r.state, batch)
	}
	if next, info, err = r.transform.Update(r.state, batch); err != nil {
		return nil, info, err
	}
	err = r.average.add(r.state.Position().Flat, cmp.Or(info.TimeStep, info.LR))
	return next, info, err
}

// nowhere is the error of a chain that starts where the density is not finite.
func (r *updater) nowhere(k int, value, norm float64) error {
	return r.because(fmt.Errorf("the log posterior of chain %d is %v and the norm of its gradient %v at the start: %w",
		r.from+k, value, norm, ErrNonFinite))
}

// tell shows the observer and Until where the run stands.
func (r *updater) tell(info Info) {
	p := r.progress()
	p.Step, p.Steps, p.Held, p.State, p.Info = r.steps, r.total, r.session.held+r.held, r.state, info
	p.Warming = r.steps <= r.o.Warmup
	r.ended = r.show(p)
}

// prepare lets the transform look at the batches to come, and then goes back to where they begin.
func (r *updater) prepare() error {
	t, ok := r.transform.(Preparer)
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
func (r *updater) replace(next State) {
	// Not kept in the caller's scope, where there is one: it would remember every state of the run.
	torch.Detach(tensorsOf(next)...)
	freeBut(r.state, next)
	r.state = next
}

// The first three statistics of a draw; those of the method's own follow.
var updateStats = []string{draws.StatLP, draws.StatGradNorm, draws.StatHeld}

// draw remembers a draw of each chain. Its log density is that of the evaluation that follows.
func (r *updater) draw(values []float64, info Info) error {
	if err := r.declare(info.Stats); err != nil {
		return err
	}
	p := &pending{values: values}
	for k := range r.size {
		held := 0.0
		if k < len(info.Diverged) && info.Diverged[k] {
			held = 1
		}
		p.stats = append(p.stats, nan, nan, held)
		for _, name := range r.extra {
			p.stats = append(p.stats, at(info.Stats[name], k))
		}
	}
	r.pending = p
	return nil
}

// declare says which statistics draws have.
func (r *updater) declare(own map[string][]float64) error {
	if r.extra == nil {
		r.extra = []string{}
		for name := range own {
			r.extra = append(r.extra, name)
		}
		sort.Strings(r.extra)
	}
	return r.rows.begin(append(slices.Clone(updateStats), r.extra...))
}

// complete gives the pending draw its log density, on the scale of the sum over data.
func (r *updater) complete(info Info) error {
	p := r.pending
	if p == nil {
		return nil
	}
	r.pending = nil
	d, w := r.layout.Dim(), len(updateStats)+len(r.extra)
	for k := range r.size {
		stats := p.stats[k*w : (k+1)*w]
		stats[0], stats[1] = r.data*at(info.LogPosterior, k), at(info.GradNorm, k)
		if err := r.keep(k, p.values[k*d:(k+1)*d], stats); err != nil {
			return err
		}
	}
	return nil
}

// keep adds a draw of a chain of the group.
func (r *updater) keep(k int, values, stats []float64) error {
	if r.file != nil {
		r.file.pending(k, values, stats)
	}
	return r.rows.add(r.from+k, values, stats)
}

// settle gives the pending draw its log density where no update follows at once: it makes the next update and forgets
// it, so that a run that goes on has the same numbers.
func (r *updater) settle() error {
	if r.pending == nil {
		return nil
	}
	if made, err := r.fused.settle(); err != nil || made {
		return err
	}
	return torch.Do(func(*torch.Scope) error {
		at := r.batches.Position()
		state := r.state
		if t, ok := r.transform.(Preparer); ok && t.Due(state, at.Index == 0) {
			var err error
			if state, err = t.Prepare(state, at.Index == 0, r.batches.Next); err != nil {
				return err
			}
			if err := r.batches.Seek(at); err != nil {
				return err
			}
		}
		batch, err := r.batches.Next()
		if err != nil {
			return err
		}
		_, info, err := r.transform.Update(state, batch)
		if err != nil {
			return err
		}
		if err := r.complete(info); err != nil {
			return err
		}
		return r.batches.Seek(at)
	})
}

// fittedBlock is how many points are drawn at once from the distributions of all chains.
const fittedBlock = 4096

// fitted draws from the distribution that the updates have fitted. Point i of a block is of chain i mod K.
func (r *updater) fitted() error {
	sampler, ok := r.transform.(Sampler)
	if !ok || r.o.Draws == 0 {
		return nil
	}
	if err := r.rows.begin(nil); err != nil {
		return err
	}
	// A stream of its own, which no chain of any run has.
	streams := torch.NewStreams(r.o.Seed, 1)
	streams.Chains[0] = 1<<63 + r.first()
	d := r.layout.Dim()
	for done := 0; done < r.o.Draws; {
		n := min(max(fittedBlock/r.size, 1), r.o.Draws-done)
		err := torch.Do(func(*torch.Scope) error {
			p, err := sampler.Sample(r.state, n*r.size, &streams)
			if err != nil {
				return err
			}
			values, err := p.Values()
			if err != nil {
				return err
			}
			for i := range n * r.size {
				if err := r.rows.add(r.from+i%r.size, values[i*d:(i+1)*d], nil); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		done += n
	}
	return nil
}

// end hands what the group leaves to the session.
func (r *updater) end(failed bool) error {
	err := guard("model", r.settle)
	if failed && err != nil {
		err = r.complete(Info{}) // the run has its error; the last draw stays
	}
	err = errors.Join(err, r.fused.sync())
	r.fused.close()
	s := r.session
	s.held += r.held
	if s.o.Group == s.o.Chains {
		s.state = r.state
	}
	last, copyErr := r.state.Position().copy()
	if copyErr == nil {
		s.last = append(s.last, last.Flat)
	}
	if s.o.Group < s.o.Chains {
		defer Free(r.state)
	}
	if r.average == nil || r.average.mean == (torch.Tensor{}) {
		return errors.Join(err, copyErr)
	}
	average, averageErr := r.average.result(r.layout)
	s.averages = append(s.averages, average)
	return errors.Join(err, copyErr, averageErr)
}

// at is element k, or NaN for a method that does not tell.
func at(values []float64, k int) float64 {
	if k < len(values) {
		return values[k]
	}
	return nan
}
