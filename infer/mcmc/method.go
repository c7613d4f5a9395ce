package mcmc

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/torch"
)

var (
	defaults = infer.Options{Chains: 4, Warmup: 1000, Draws: 1000, Thin: 1}
	thinned  = infer.Options{Chains: 4, Warmup: 1000, Draws: 1000, Thin: 10} // of updates that move a little
)

// warmup is how many updates adapt in loops of one's own. In [infer.Sample] the Warmup of the options counts.
const warmup = 1000

// algorithm is a sampler by its equation.
type algorithm struct {
	name        string
	check       *method.Checks
	temperature infer.Schedule
	scheduled   bool                              // it may change from update to update
	graded      bool                              // it needs gradients
	moves       bool                              // it refuses nothing, and tells no acceptance
	step        func(m *move)                     // one update of one chain
	learn       func(c *chain, read, forget bool) // after an update of the warm-up; nil for none
	fewest      func(d int) (n int, text string)  // chains of an ensemble; nil for chains alone
	spans       bool                              // the ensemble moves within the plane that it spans
	divides     bool                              // the density of the prior is in the target, and comes out
	prior       func(at infer.Params, b infer.Batch, temperature float64) (*gaussian, error)
}

func newAlgorithm(name string, temperature infer.Schedule) *algorithm {
	a := &algorithm{name: name, check: &method.Checks{Name: name}, temperature: temperature,
		scheduled: temperature != nil}
	a.check.Schedule("Temperature", &a.temperature, 1, true)
	return a
}

// value checks a number above 0, where 0 is the default.
func (a *algorithm) value(field string, v *float64, def float64) { a.check.Value(field, v, def, true) }

func (a *algorithm) count(field string, v *int, def int) {
	if *v == 0 {
		*v = def
	}
	a.check.Require(*v >= 1, field, *v, "it must be at least 1, or 0 for the default")
}

func (a *algorithm) fraction(field string, v float64) {
	a.check.Require(v >= 0 && v < 1, field, v, "it must be above 0 and below 1, or 0 for the default")
}

// build binds the algorithm to a target.
func (a *algorithm) build(target infer.Target) (infer.Transform, error) {
	if err := a.check.Err(); err != nil {
		return nil, err
	}
	at, err := infer.NewEvaluator(target, a.graded)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.name, err)
	}
	return &transform{algorithm: a, at: at, data: target.N()}, nil
}

// transform is an algorithm bound to a target.
type transform struct {
	*algorithm
	at   *infer.Evaluator
	data float64
}

var _ interface {
	infer.Transform
	infer.Driver
	infer.Seeded
	infer.Restorer
	infer.Noter
	infer.Named
} = (*transform)(nil)

// Detail is what a run tells besides its draws: the Detail of an [infer.Result].
type Detail struct {
	Evaluations int       // of the log density, by this process
	Undefined   int       // of them that gave NaN or +Inf
	Where       []float64 // the first such point, on unconstrained space; nil for none
}

func (d *Detail) add(m *move) {
	d.Evaluations += m.evaluations
	if d.Undefined += m.undefined; d.Where == nil {
		d.Where = m.first
	}
}

// Name is the method's.
func (t *transform) Name() string { return t.name }

// Stats are the names of the statistics of a draw: of the updates since the last one, the mean acceptance and the
// number of evaluations. "lp" is N·LogPosterior + T·LogJacobian.
func (t *transform) Stats() []string {
	if t.moves {
		return []string{draws.StatLP, "evaluations"}
	}
	return []string{draws.StatLP, "evaluations", draws.StatAccept}
}

// saved is all that a run needs to go on.
type saved struct {
	Step   int
	Chains []*chain
}

func (s saved) encode() ([]byte, error) {
	var b bytes.Buffer
	err := gob.NewEncoder(&b).Encode(s)
	return b.Bytes(), err
}

func (t *transform) decode(b []byte, chains, d int) (s saved, err error) {
	if err = gob.NewDecoder(bytes.NewReader(b)).Decode(&s); err == nil && len(s.Chains) != chains {
		err = fmt.Errorf("%d chains, expected %d", len(s.Chains), chains)
	}
	for _, c := range s.Chains {
		if err == nil && (c == nil || len(c.X) != d) {
			err = fmt.Errorf("a chain that has not %d numbers", d)
		}
	}
	if err != nil {
		return s, fmt.Errorf("%s: the chains cannot be read: %v: %w", t.name, err, infer.ErrCheckpoint)
	}
	return s, nil
}

// chainsAt are chains at the points of p.
func chainsAt(p infer.Params) ([]*chain, error) {
	x, err := p.Values()
	if err != nil {
		return nil, err
	}
	var out []*chain
	for row := range slices.Chunk(x, p.Layout.Dim()) {
		out = append(out, &chain{X: slices.Clone(row)})
	}
	return out, nil
}

// made is what is to be recorded of an update.
type made struct {
	infer.Transition
	stats [3]float64
}

// Drive makes a whole run. The detail is a *[Detail].
func (t *transform) Drive(ctx context.Context, job infer.Job) (any, error) {
	at, err := t.at.For(job)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.name, err)
	}
	e := &engine{algorithm: t.algorithm, at: at, like: job.Start, batch: job.Batch, seed: job.Seed,
		warmup: job.Warmup, detail: &Detail{}}
	for k := range job.Chains {
		e.streams = append(e.streams, job.FirstChain+uint64(k))
	}
	s := saved{}
	if job.Resume != nil {
		if s, err = t.decode(job.Resume, job.Chains, job.Layout.Dim()); err != nil {
			return nil, err
		}
	} else if s.Chains, err = chainsAt(job.Start); err != nil {
		return nil, err
	} else if err = e.apart(s.Chains); err != nil {
		return nil, err
	}
	return e.detail, t.drive(ctx, job, e, &s)
}

// drive makes what is left of a run.
func (t *transform) drive(ctx context.Context, job infer.Job, e *engine, s *saved) error {
	warm, thin := job.Warmup, job.Thin
	end := warm + job.Draws*thin
	recorded := func(step int) int { return min(step, warm) + max(step-warm, 0)/thin }
	last := recorded(s.Step)
	snapshot := func(force bool) error {
		now := recorded(s.Step)
		if job.Every <= 0 || job.Snapshot == nil || !force && (now/job.Every == last/job.Every ||
			job.Due != nil && !job.Due()) {
			return nil
		}
		last = now
		b, err := s.encode()
		if err != nil {
			return err
		}
		return job.Snapshot(b)
	}
	for s.Step < end {
		if err := ctx.Err(); err != nil {
			return errors.Join(err, snapshot(true))
		}
		n := min(e.block(job.Every), end-s.Step)
		log := make([][]made, len(s.Chains))
		err := e.run(s.Chains, s.Step, n, func(k int, step int, m *move) {
			if step+1 > warm && (step+1-warm)%thin != 0 {
				return
			}
			log[k] = append(log[k], e.recorded(k, step < warm, m))
		})
		if err != nil {
			return fmt.Errorf("%s: after %d updates: %w", t.name, s.Step, err)
		}
		s.Step += n
		for i := range log[0] {
			for k := range log {
				r := log[k][i]
				r.Stats = r.stats[:len(t.Stats())]
				if err := job.Record(r.Transition); err != nil {
					return err
				}
			}
		}
		if err := snapshot(s.Step == end); err != nil {
			return err
		}
	}
	return nil
}

// recorded is what is to be recorded of an update, and of those since the last that was.
func (e *engine) recorded(k int, warm bool, m *move) made {
	out := made{Transition: infer.Transition{Chain: k, Warmup: warm, X: slices.Clone(m.X), Gradients: m.Evaluations,
		StepSize: m.Scale}, stats: [3]float64{e.logp(m), float64(m.Evaluations), m.Accept / float64(m.Updates)}}
	m.Updates, m.Evaluations, m.Accept = 0, 0, 0
	return out
}

// state is the state of a loop of one's own.
type state struct {
	params  infer.Params
	streams torch.Streams
	saved
}

// Position are the points.
func (s state) Position() infer.Params { return s.params }

// Steps is the number of updates so far.
func (s state) Steps() int { return s.Step }

// Tensors are what the state owns.
func (s state) Tensors() (owned, shared infer.Tensors) {
	return infer.Tensors{"params": s.params.Flat}, nil
}

// Save names the points, and what the chains need besides as bytes.
func (s state) Save() infer.Saved {
	extra, err := s.encode()
	if err != nil {
		panic(fmt.Sprintf("mcmc: chains that gob cannot hold: %v", err)) // they are plain numbers
	}
	return infer.Saved{Steps: s.Step, Streams: s.streams, Tensors: infer.Tensors{"params": s.params.Flat}, Extra: extra}
}

// Init starts with seed 0.
func (t *transform) Init(p infer.Params) (infer.State, error) {
	return t.InitStreams(p, torch.NewStreams(0, p.Chains()))
}

// InitStreams starts with the seed and the chains of the streams.
func (t *transform) InitStreams(p infer.Params, streams torch.Streams) (infer.State, error) {
	if err := method.CheckStreams(t.name, p, streams); err != nil {
		return nil, err
	}
	s := state{params: infer.Params{Layout: p.Layout}, streams: streams}
	var err error
	if s.Chains, err = chainsAt(p); err == nil {
		s.params.Flat, err = torch.Copy(p.Flat)
	}
	if err == nil {
		err = (&engine{algorithm: t.algorithm}).apart(s.Chains)
	}
	return s, err
}

// Restore makes a state of what was saved.
func (t *transform) Restore(layout *infer.Layout, saved infer.Saved) (infer.State, error) {
	flat, err := saved.Tensor("params")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.name, err)
	}
	s := state{params: infer.Params{Layout: layout, Flat: flat}, streams: saved.Streams}
	s.saved, err = t.decode(saved.Extra, s.params.Chains(), layout.Dim())
	return s, err
}

// Update makes one update of each chain. The points are evaluated on the batch first; a batch on which one is not
// finite moves no chain.
func (t *transform) Update(old infer.State, b infer.Batch) (infer.State, infer.Info, error) {
	s, err := method.StateAs[state](old, t.name)
	if err != nil {
		return nil, infer.Info{}, err
	}
	fail := func(err error) (infer.State, infer.Info, error) {
		return nil, infer.Info{}, fmt.Errorf("%s: %w", t.name, err)
	}
	next := state{params: s.params, streams: s.streams, saved: s.copied()}
	e := &engine{algorithm: t.algorithm, like: s.params, batch: b, seed: s.streams.Seed, streams: s.streams.Chains,
		warmup: warmup, detail: &Detail{}}
	if e.at, err = t.at.On(s.params, b); err != nil {
		return fail(err)
	}
	k := len(next.Chains)
	unknown := slices.Repeat([]float64{math.NaN()}, k)
	info := infer.Info{Temperature: t.temperature(s.Step), LogPosterior: unknown, GradNorm: slices.Clone(unknown),
		Stats: map[string][]float64{"evaluations": make([]float64, k)}}
	if !t.moves {
		info.Stats[draws.StatAccept] = make([]float64, k)
	}
	for _, c := range next.Chains {
		c.At = 0 // the batch may be another
	}
	err = e.run(next.Chains, s.Step, 1, func(k int, _ int, m *move) {
		info.LogPosterior[k] = m.before / t.data
		if t.graded {
			info.GradNorm[k] = m.norm * m.temperature / t.data
		}
		info.Stats["evaluations"][k] = float64(m.evaluations)
		if !t.moves {
			info.Stats[draws.StatAccept][k] = m.accept
		}
		m.Updates, m.Evaluations, m.Accept = 0, 0, 0
	})
	for k, failed := range e.errs {
		if errors.Is(failed, infer.ErrNonFinite) {
			if info.Diverged == nil {
				info.Diverged = make([]bool, len(next.Chains))
			}
			info.Diverged[k] = true
		}
	}
	if info.Diverged != nil {
		next.Chains, err = s.Chains, nil
	}
	if err != nil {
		return fail(err)
	}
	next.Step++
	next.params.Flat, err = points(s.params, next.Chains)
	return next, info, err
}
