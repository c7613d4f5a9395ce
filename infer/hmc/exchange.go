package hmc

import (
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"sync"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc/kernel"
	"github.com/kelvin-ppl/kelvin/infer/path"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Exchange is replica exchange, also called parallel tempering (Swendsen and Wang 1986; Geyer 1991): for posteriors
// with several modes. For each chain it runs a replica at each rung of a ladder, all of them in one batch. Neighbours
// swap their points now and then, with a probability that leaves the law at each rung as it is. Even and odd pairs take
// turns, so that a replica keeps its direction (Syed, Bouchard-Côté, Deligiannidis and Doucet 2022).
//
// Draws are those at the rung of interest. Detail.Swaps has, for each chain, the ladder in use, the rejections of its
// pairs, the barrier, round trips, and the mean log likelihood of each rung. The statistics "replica" and "round_trips"
// of a draw say which replica it is of, and how many trips its ladder has made so far. Where replicas do not travel,
// the draws have the note "replicas_do_not_travel", with advice. [kernel.Run] has the equations.
type Exchange struct {
	// Ladder are temperatures, rising, the one of interest first, usually 1; [GeometricLadder] makes one. With a Path
	// they are its inverse temperatures β, rising from the start of the path, often 0, to the one of interest, usually 1;
	// path.Power makes one. At least two.
	Ladder []float64
	// Path says which targets the rungs have; nil tempers prior and likelihood together, as the Temperature of a method
	// does. &path.Path{} tempers the likelihood alone: β = 0 is the prior, from which the replica at β = 0 starts. Walls
	// of a Reference need a Kernel of HMC, whose box they become.
	Path *path.Path
	// Adapt moves the rungs in the first half of the warm-up, until all pairs refuse their swaps equally often. The ends
	// of the ladder and the number of rungs stay.
	Adapt bool
	Every int // transitions between swaps; default 10, and 1 with Adapt
	// RandomPairs tries pairs at random, one less than there are rungs, in the place of all even or all odd pairs
	// (Baldock and Marzari 2019, algorithm 2).
	RandomPairs bool
	// Minimise is the number of steps by which each replica descends from its start to a mode, by the rule RMIN of
	// Baldock and Marzari (2019, algorithm 3); default none.
	Minimise int
	// Trials adapts the step sizes by trajectories of their own in the place of dual averaging, so many for each size
	// that is tried, until from 0.6 to 0.7 of them are accepted (Baldock and Marzari 2019, who have 10); 0 is dual
	// averaging. They are repeated after TrialEvery transitions of the warm-up; default 25 times Every.
	Trials, TrialEvery int
	// KeepHot keeps the draws of the other rungs in Detail.Hot. They are on unconstrained space: the Draws method of the
	// program names them. Checkpoints grow by them.
	KeepHot bool
	// Kernel moves the replicas: NUTS, the default, or HMC, with their fields except Temperature and Pooled. Each replica
	// has a step size and a metric of its own.
	Kernel infer.Method
}

// GeometricLadder are n temperatures from low to high with a constant ratio, T_i = low (high/low)^(i/(n-1)), which
// makes the swap rates of a Gaussian equal: they depend on the ratio and the dimension only. n below 1, or above 2^16,
// gives none, which [Exchange] refuses.
func GeometricLadder(low, high float64, n int) []float64 {
	if n < 1 || n > 1<<16 {
		return nil
	}
	t := make([]float64, n)
	for i := range t {
		t[i] = low * math.Pow(high/low, float64(i)/float64(n-1))
	}
	if n > 1 {
		t[n-1] = high
	}
	return t
}

// Build checks the configuration and binds it to a target.
func (c Exchange) Build(target infer.Target) (infer.Transform, error) {
	const name = "hmc.Exchange"
	fail := func(field string, value any, allowed string) (infer.Transform, error) {
		return nil, &infer.FieldError{Type: name, Field: field, Value: value, Allowed: allowed}
	}
	if c.Kernel == nil {
		c.Kernel = NUTS{}
	}
	k, ok := c.Kernel.(interface{ config() config })
	if !ok {
		return fail("Kernel", fmt.Sprintf("a %T", c.Kernel), "it must be hmc.NUTS or hmc.HMC")
	}
	cfg := k.config()
	if cfg.temperature != nil {
		return fail("Kernel.Temperature", "set", "the temperatures are those of the Ladder")
	}
	cfg.name = name
	o := &cfg.options
	o.Ladder, o.SwapEvery, o.Adapt, o.RandomPairs = slices.Clone(c.Ladder), c.Every, c.Adapt, c.RandomPairs
	o.Minimise, o.Trials, o.TrialEvery, o.KeepHot = c.Minimise, c.Trials, c.TrialEvery, c.KeepHot
	if c.Ladder == nil {
		o.Ladder = []float64{}
	}
	if c.Path == nil {
		return cfg.build(target)
	}
	if err := c.Path.Check(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if err := path.CheckLadder(name, c.Ladder); err != nil {
		return nil, err
	}
	slices.Reverse(o.Ladder)
	cfg.path, o.Path = c.Path, kind(c.Path)
	if h := c.Path.Reference; h != nil && (h.Lower != nil || h.Upper != nil) {
		box, ok := o.Kernel.(kernel.HMC)
		if !ok {
			return fail("Kernel", fmt.Sprintf("a %T", c.Kernel), "the Reference has walls, so it must be hmc.HMC")
		}
		if box.Lower == nil && box.Upper == nil {
			box.Lower, box.Upper = h.Lower, h.Upper
			o.Kernel = box
		}
	}
	return cfg.build(target)
}

// Defaults are 4 chains, each with a ladder of its own, of 1000 draws after 1000 transitions.
func (Exchange) Defaults() infer.Options { return defaults }

// kind names a path in checkpoints. Normalizers all look alike.
func kind(p *path.Path) string {
	switch {
	case p.Full:
		return "full"
	case p.Normalizer != nil:
		return "observation"
	case p.Reference != nil:
		h := fnv.New64a()
		fmt.Fprint(h, *p.Reference)
		return fmt.Sprintf("reference %x", h.Sum64())
	}
	return "likelihood"
}

// along is a path as a kernel.Density, where β takes the place of the temperature.
type along struct {
	*path.Evaluator
	points *sync.Pool
}

func newAlong(e *path.Evaluator) along {
	return along{e, &sync.Pool{New: func() any { return new(path.Points) }}}
}

// Concurrent says that calls may come from several goroutines at once, which pays where native code evaluates.
func (a along) Concurrent() bool { return a.Compiled() }

func (a along) ValueAndGrad(x, logp, grad []float64) error {
	one := make([]float64, len(logp))
	for i := range one {
		one[i] = 1
	}
	return a.ValueAndGradAt(x, one, logp, grad)
}

func (a along) ValueAndGradAt(x, beta, logp, grad []float64) error {
	p := a.points.Get().(*path.Points)
	defer a.points.Put(p)
	if err := a.Eval(x, beta, p); err != nil {
		return err
	}
	copy(logp, p.LogP)
	copy(grad, p.Grad)
	return nil
}

// startStreams is the number of the first stream of the draws from the start of a path. No chain has it.
const startStreams = 1 << 62

// startTries is how many draws from the start of a path are made until the density is finite at one.
const startTries = 16

// spread are the starts of all replicas: those of the chains, and on a path from β = 0 a draw from there for the last
// replica of each ladder. The error of a start that cannot be drawn from says why.
func (t *transform) spread(e *path.Evaluator, seed, first uint64, chains [][]float64) ([][]float64, error) {
	n := len(t.options.Ladder)
	if t.options.Ladder[n-1] != 0 {
		return chains, nil
	}
	d := e.Dim()
	var out [][]float64
	for l, x := range chains {
		made, err := e.Start(startTries, seed, startStreams+startTries*(first+uint64(l)))
		if err != nil {
			return nil, fmt.Errorf("Ladder[0] is 0, and the start of the path cannot be sampled: %w", err)
		}
		var p path.Points
		if err := e.Eval(made, []float64{0}, &p); err != nil {
			return nil, err
		}
		hot := x
		for i, v := range p.LogP {
			norm := 0.0
			for _, g := range p.Grad[i*d : (i+1)*d] {
				norm = math.Hypot(norm, g)
			}
			if at := made[i*d : (i+1)*d]; !math.IsNaN(v+norm) && !math.IsInf(v+norm, 0) {
				hot = at
				break
			}
		}
		for range n - 1 {
			out = append(out, x)
		}
		out = append(out, hot)
	}
	return out, nil
}

// walk is the path on the batch of an update. The first update makes sure that its start can be sampled.
func (t *transform) walk(s State, b infer.Batch) (kernel.Density, error) {
	on, err := t.bound(infer.Job{Layout: s.Params.Layout, Start: s.Params, Batch: b})
	if err == nil && len(s.chains.Chains) == 0 {
		_, err = t.spread(on.Evaluator, 0, 0, make([][]float64, 1))
	}
	return on, err
}

// bound is the path of the target on a batch, as a density. Evaluation is that of the job's run; outside of one it is
// eager.
func (t *transform) bound(job infer.Job) (along, error) {
	if job.Start.Layout == nil {
		return along{}, fmt.Errorf("the layout is nil: %w", infer.ErrConfig)
	}
	if job.Start.Batched() { // the path is bound at one point
		flat, err := job.Start.Flat.T().Select(0, 0, false)
		if err != nil {
			return along{}, err
		}
		defer torch.Free(torch.Of(flat))
		job.Start.Flat = torch.Of(flat)
	}
	e, err := t.path.OnJob(t.base, job)
	if err != nil {
		return along{}, err
	}
	return newAlong(e), nil
}
