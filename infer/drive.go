package infer

import (
	"context"
	"time"

	"github.com/kelvin-ppl/kelvin/torch"
)

// drive runs a group of chains of a method that drives itself.
func (g *group) drive(driver Driver) (err error) {
	names := driver.Stats()
	if err := g.rows.begin(names); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(g.ctx)
	defer cancel()
	o := g.o
	r := &driven{group: g, cancel: cancel, total: g.size * (o.Warmup + o.Draws),
		sampling: make([]bool, g.size), saved: time.Now()}
	job := Job{Layout: g.layout, Batch: g.all, Start: g.start, Seed: o.Seed, FirstChain: g.first(),
		Chains: g.size,
		Warmup: o.Warmup, Draws: o.Draws, Thin: o.Thin, Record: r.record, Every: g.every(100),
		compilation: g.compilation}
	if g.checkpoint != nil {
		if g.file, err = openCheckpoint(g, g.start.Flat); err != nil {
			return g.inFolder(err)
		}
		defer g.file.close()
		if job.Resume, err = g.file.resumeDriven(r); err != nil {
			return g.inFolder(err)
		}
	}
	if job.Every > 0 {
		job.Snapshot, job.Due = r.snapshot, r.due
	}
	if r.ended && o.Until != nil {
		return nil
	}
	detail, err := driver.Drive(ctx, job)
	g.session.details = append(g.session.details, detail)
	g.session.updates += r.done
	torch.Free(g.start.Flat)
	if r.ended && g.ctx.Err() == nil {
		err = nil // Until has ended it
	}
	return err
}

// driven is what is known of a run that drives itself.
type driven struct {
	*group
	cancel    context.CancelFunc
	done      int // transitions of the warm-up and draws kept, of all chains
	total     int
	divergent int
	ended     bool
	sampling  []bool    // of each chain: it has drawn
	drawing   int       // how many have
	saved     time.Time // the last snapshot, or the beginning
}

// draws says that a chain is past its warm-up.
func (r *driven) draws(chain int) {
	if !r.sampling[chain] {
		r.sampling[chain] = true
		r.drawing++
	}
}

// record keeps a draw, and shows the run to the observer. It is called after every transition, which may take a
// microsecond.
func (r *driven) record(t Transition) error {
	r.done++
	r.session.gradients += t.Gradients
	if r.compilation.spots.after(t.Gradients) {
		r.compilation.spots.driven(t.X)
	}
	if !t.Warmup {
		if err := r.rows.add(r.from+t.Chain, t.X, t.Stats); err != nil {
			return err
		}
		if r.file != nil {
			r.file.pending(t.Chain, t.X, t.Stats)
		}
		if t.Divergent {
			r.divergent++
		}
		r.draws(t.Chain)
	}
	due := func() bool { return watches(r.observer) }
	watched, until := calling("function Due of the observer", due), r.o.Until != nil && !r.ended
	if !watched && !until {
		return nil
	}
	p := r.progress()
	p.Step, p.Steps, p.Divergent, p.StepSize = r.done, r.total, r.divergent, t.StepSize
	p.Warming = r.drawing < r.size
	if watched {
		if err := guard("observer", func() error { r.observer.Observe(p); return nil }); err != nil {
			return err
		}
	}
	if !until {
		return nil
	}
	return guard("function Until", func() error {
		if r.o.Until(p) {
			r.ended = true
			r.cancel()
		}
		return nil
	})
}

// restEvery is the least time before a snapshot where nobody has said after how many transitions they are due.
// Writing one takes milliseconds, in which a small model makes thousands of transitions.
const restEvery = time.Second

// due says whether a snapshot is worth its time.
func (r *driven) due() bool {
	said := r.checkpoint == nil || r.checkpoint.Every > 0
	return said || time.Since(r.saved) >= restEvery
}

// snapshot hands out the new draws, and then writes the checkpoint that covers them.
func (r *driven) snapshot(state []byte) error {
	defer func() { r.saved = time.Now() }()
	if err := r.rows.save(); err != nil {
		return err
	}
	if r.file == nil {
		return nil
	}
	return r.file.saveDriven(r, state)
}
