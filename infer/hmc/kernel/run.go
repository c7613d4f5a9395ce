package kernel

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"sync"
)

// Run samples exp(logp/T) with several chains, from their start or on from Options.Resume, and hands each draw to
// Options.Record. The same options and density give the same draws, bit for bit, whatever the timing and the number of
// threads, as long as the density does.
//
// With a Ladder it is replica exchange (parallel tempering; Swendsen and Wang 1986; Geyer 1991; the ladder and HMC
// between swaps as in Baldock and Marzari 2019). Chain l·n+i is at temperature i of ladder l, n the length of the
// ladder. All run in one batch. After every SwapEvery transitions neighbours swap their points with probability
//
//	min(1, exp(f_i(x_j)/T_i + f_j(x_i)/T_j - f_i(x_i)/T_i - f_j(x_j)/T_j))
//
// where f_i is the log density at temperature T_i, over the pairs (0,1), (2,3), ... in one round and (1,2), (3,4), ...
// in the next: a replica that was swapped goes on in its direction, so that it travels faster than with pairs at random
// (non-reversible parallel tempering; Okabe et al. 2001; Syed, Bouchard-Côté, Deligiannidis and Doucet 2022). Where the
// density does not depend on the temperature the exponent is (1/T_i - 1/T_j)(U_i - U_j), U = -logp. Each temperature
// keeps its own step size, metric and random numbers, and adapts them in the warm-up. Draws are those of the
// temperatures, not of the replicas.
//
// With Adapt the ladder moves at the ends of rounds of 8, 16, 32, ... swaps in the first half of the warm-up (Syed et
// al. 2022, section 5). r_i, the mean probability that the swap of pair i is refused, adds up to the barrier
//
//	Λ(t_i) = r_0 + ... + r_(i-1)
//
// which a monotone cubic (Fritsch and Carlson 1980) in log T, or in β of a Path, continues between the rungs. The new
// rungs are where Λ is i/(n-1) of its total, so that all pairs refuse equally often. A rung that moved finds its step
// size anew. The ladder is fixed from then on.
//
// With Minimise a chain descends from its start by so many steps of the rule RMIN (Baldock and Marzari 2019, algorithm
// 3), on U = -logp with unit masses: a leapfrog step of length ε; if U is lower ε grows by 0.05, else the step is
// undone, the momentum is 0 and ε is 0.95 times itself. ε is 0.05 at first.
//
// With Trials step sizes are found by trials (Baldock and Marzari 2019): so many transitions from the chain's point,
// which are forgotten; where their mean acceptance is above TargetAccept + 0.05 (default 0.65) ε is divided by 0.9,
// below TargetAccept - 0.05 it is multiplied by 0.9, until it is between or one trial was above and the next below:
// then the ε that is nearer. In a box ε is at most the median of its half-widths.
//
// When the context ends or something fails, Run returns the error together with what it has; the result is nil only if
// the options are wrong. Errors: a [FieldError]; one that names the chain, with ErrNonFinite if every start of it is
// not finite; an error or panic ([PanicError]) of the density, of Record or of Checkpoint; the context's.
func Run(ctx context.Context, density Density, options Options) (*Result, error) {
	if ctx == nil {
		return nil, fmt.Errorf("kernel.Run: the context is nil: %w", errConfig)
	}
	r, err := newRunner(density, options)
	if err != nil {
		return nil, err
	}
	if options.Resume != nil {
		if err := r.restore(options.Resume); err != nil {
			return nil, err
		}
	}
	r.batcher = newBatcher(density, len(r.chains))
	if err = r.run(ctx); err != nil {
		err = fmt.Errorf("kernel.Run: %w", err)
	}
	b := r.batcher.counts()
	result := &Result{
		Snapshot: r.snapshot(), Batches: b.Batches, Rows: b.Rows, SamplingBatches: b.SamplingBatches,
		SamplingRows: b.SamplingRows, FullBatches: b.Full,
	}
	for _, c := range r.chains {
		result.Metrics = append(result.Metrics, c.Metric.clone())
		result.StepSizes = append(result.StepSizes, c.StepSize)
		result.Gradients = append(result.Gradients, c.Gradients)
		if c.Lost != nil {
			result.Lost = append(result.Lost, *c.Lost)
		}
	}
	for _, s := range r.swaps {
		result.Swaps = append(result.Swaps, s.clone())
	}
	if hot, failed := r.hot(); failed == nil {
		result.Hot = hot
	} else if err == nil {
		err = fmt.Errorf("kernel.Run: %w", failed)
	}
	return result, err
}

// runner drives the chains of one run.
type runner struct {
	Options
	density  Density
	d        int
	tempered bool // the density depends on the temperature
	averages dualAveraging
	schedule schedule
	follows  bool // the metric adapts
	raises   bool // a chain in trouble gets a larger target acceptance
	given    bool // an InitialMetric was given
	plan     plan
	chains   []*chain
	swaps    []*Swaps // of each ladder
	rounds   []int    // numbers of swaps after which an adapting ladder moves
	batcher  *batcher
	watch    sync.Mutex // around Record
	steps    bool       // of a Stepper
	until    int        // of a Stepper: transitions after which it stops
}

func newRunner(density Density, options Options) (*runner, error) {
	if density == nil {
		return nil, &FieldError{Type: "kernel.Options", Field: "density", Value: nil, Allowed: "it must not be nil"}
	}
	d := density.Dim()
	o, err := options.check(d)
	if err != nil {
		return nil, err
	}
	r := &runner{Options: o, density: density, d: d, tempered: isTempered(density), given: options.InitialMetric != nil}
	if o.Path != "" && !r.tempered {
		return nil, &FieldError{Type: "kernel.Options", Field: "Path", Value: o.Path,
			Allowed: "the density must have ValueAndGradAt"}
	}
	r.rounds = ladderRounds(o)
	if r.averages, err = o.averages().build(); err != nil {
		return nil, err
	}
	r.raises = options.TargetAccept == 0 && o.plainNUTS()
	r.schedule, r.follows = newSchedule(o.Warmup), o.follows()
	n := o.replicas()
	for k := range o.Chains * n {
		t := o.Temperature
		if o.Ladder != nil {
			t = o.Ladder[k%n]
		}
		c, err := r.newChain(k, t)
		if err != nil {
			return nil, err
		}
		r.chains = append(r.chains, c)
	}
	if o.Ladder != nil {
		for l := range o.Chains {
			r.swaps = append(r.swaps, newSwaps(o.Seed, o.FirstChain+uint64(l), o.Ladder))
		}
	}
	r.plan = r.makePlan()
	return r, nil
}

func (r *runner) transitions() int { return r.Warmup + r.Draws*r.Thin }

// run runs the chains to their end.
func (r *runner) run(ctx context.Context) error {
	b := r.batcher
	alone := len(r.chains) == 1
	batched := !alone && !r.Parallel && !isConcurrent(r.density)
	b.start(ctx, batched)
	var all sync.WaitGroup
	for k, c := range r.chains {
		if c.gradient == nil {
			t := r.coordinate(c)
			if batched {
				c.gradient = c.counted(b.gradient(k, t))
			} else {
				c.gradient = b.direct(t, &c.chainState.Gradients)
			}
		}
		all.Go(func() {
			if alone && !r.steps {
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
			}
			defer b.Leave(k)
			returned := false
			defer func() {
				if v := recover(); v != nil {
					b.Fail(&chainError{k, &PanicError{"chain", v, string(debug.Stack())}})
				} else if !returned {
					b.Fail(&chainError{k, errors.New("the density ended its goroutine")})
				}
			}()
			err := r.loop(ctx, c)
			returned = true
			if err != nil && !errors.Is(err, b.Err()) {
				b.Fail(&chainError{k, err})
			}
		})
	}
	all.Wait()
	b.Close()
	return b.Err()
}

// meets reports whether all chains wait for each other before transition i.
func (r *runner) meets(i int) bool {
	return i > 0 && (r.pools(i) || r.poolsStep(i) || r.Checkpoint != nil && i%r.CheckpointEvery == 0 || r.trades(i))
}

// pools reports whether the window that ended just before transition i makes one metric of all chains.
func (r *runner) pools(i int) bool {
	return r.Pooled && r.follows && r.schedule.End(i-1)
}

// poolsStep reports whether one step size is made of all before transition i.
func (r *runner) poolsStep(i int) bool {
	return r.Pooled && !r.KeepStep && r.Warmup > 0 && i == r.Warmup
}

// trades reports whether neighbours on the ladders try to swap before transition i.
func (r *runner) trades(i int) bool { return r.Ladder != nil && i%r.SwapEvery == 0 }

// meeting is what is done while all chains wait before transition i. It is one act: a run that ends before or after it
// can be resumed, since each chain's state says that it has met.
func (r *runner) meeting(i int) error {
	if r.trades(i) {
		if err := r.swap(); err != nil {
			return err
		}
	}
	if r.pools(i) {
		// In the order of the chains' numbers: sums in another order would differ in the last bits.
		joined := newMass(r.Metric, r.d)
		for _, c := range r.chains {
			joined.Merge(c.Mass)
		}
		f, m := joined.form(r.low())
		for _, c := range r.chains {
			r.remake(c, f, m)
		}
	}
	if r.poolsStep(i) {
		sum := 0.0
		for _, c := range r.chains {
			sum += math.Log(c.StepSize)
		}
		for _, c := range r.chains {
			c.StepSize = math.Exp(sum / float64(len(r.chains)))
		}
	}
	for _, c := range r.chains {
		c.Met = i
	}
	if r.Checkpoint != nil && i%r.CheckpointEvery == 0 {
		return r.Checkpoint(r.snapshot())
	}
	return nil
}

// loop is the whole life of a chain. Its state is whole at each return: a transition that fails changes nothing.
func (r *runner) loop(ctx context.Context, c *chain) (err error) {
	spent := c.chainState.Gradients // for the state that is whole
	defer func() {
		if err != nil {
			c.chainState.Gradients = spent
		}
	}()
	if len(c.Point.X) == 0 {
		if err := r.begin(c); err != nil {
			return err
		}
	}
	sampling := false
	for c.Done < r.transitions() && (!r.steps || c.Done < r.until) {
		spent = c.chainState.Gradients
		if err := ctx.Err(); err != nil { // the batcher will hear of it too, but a lone chain may be quicker
			r.batcher.Fail(err)
		}
		if r.batcher.stopped.Load() {
			return r.batcher.Err()
		}
		if c.Done >= r.Warmup && !sampling {
			r.batcher.Sampling(c.Number)
			sampling = true
		}
		if r.meets(c.Done) && c.Met < c.Done {
			if err := r.batcher.Meet(c.Number, func() error { return r.meeting(c.Done) }); err != nil {
				return err
			}
			spent = c.chainState.Gradients
		}
		if c.Restart {
			if err := r.restart(c); err != nil {
				return err
			}
			spent = c.chainState.Gradients
		}
		if c.Climb {
			s, err := r.climb(c, c.Point)
			if err != nil {
				return err
			}
			c.Point, c.Climb = s, false
			spent = c.chainState.Gradients
		}
		if err := r.obey(c); err != nil {
			return err
		}
		if c.NeedStep {
			if err := r.findStep(c); err != nil {
				return err
			}
		}
		spent = c.chainState.Gradients
		if err := r.tune(c); err != nil {
			return err
		}
		spent = c.chainState.Gradients
		r.approach(c)
		info, err := c.transition.Step(&c.Point, c.StepSize, c.Temperature, c.metric, c.gradient, &c.Stream)
		if err != nil {
			return err
		}
		i := c.Done
		if info.Warmup = i < r.Warmup; info.Warmup {
			r.adapt(c, i, info)
		}
		c.Done++
		spent = c.chainState.Gradients
		if err := r.record(c, i, info); err != nil {
			return err
		}
	}
	return nil
}

// scheduled are step size and temperature of transition i; zeros where the schedule, if any, leaves them.
func (r *runner) scheduled(i int) (eps, t float64, err error) {
	if r.Schedule == nil {
		return 0, 0, nil
	}
	eps, t = r.Schedule(i)
	for _, v := range []struct {
		field string
		value float64
	}{{"StepSize", eps}, {"Temperature", t}} {
		if v.value != 0 && (!(v.value > 0) || !finite(v.value)) {
			return 0, 0, &FieldError{"kernel.Options", fmt.Sprintf("%s at transition %d", v.field, i), v.value,
				"it must be a positive number"}
		}
	}
	return eps, t, nil
}

// obey takes step size and temperature of the schedule for the next transition.
func (r *runner) obey(c *chain) error {
	eps, t, err := r.scheduled(c.Done)
	if err != nil {
		return err
	}
	if t != 0 && t != c.Temperature {
		old := c.Temperature
		c.Temperature = t
		if r.tempered {
			p := position{X: c.Point.X, Grad: make([]float64, r.d), Momentum: c.Point.Momentum, Length: c.Point.Length}
			if p.LogP, err = point(c.gradient, p.X, p.Grad); err == nil && math.IsNaN(p.LogP) {
				err = fmt.Errorf("log density or gradient at temperature %g: %w", t, ErrNonFinite)
			}
			if err != nil {
				c.Temperature = old
				return err
			}
			c.Point = p
		}
	}
	if eps != 0 {
		c.StepSize, c.NeedStep = eps, false
	}
	return nil
}

// record shows a transition of the warm-up, or a draw.
func (r *runner) record(c *chain, i int, info Info) (err error) {
	draw := i
	if !info.Warmup {
		i -= r.Warmup
		if (i+1)%r.Thin != 0 {
			return nil
		}
		draw = i / r.Thin
	}
	info.Gradients = c.chainState.Gradients - c.Shown
	c.Shown = c.chainState.Gradients
	if r.Ladder != nil {
		n := len(r.Ladder)
		s, rung := r.swaps[c.Number/n], c.Number%n // which change only while all chains wait
		info.Replica, info.RoundTrips = s.Replica[rung], s.Trips()
		if r.KeepHot && rung > 0 && !info.Warmup && !r.steps {
			c.Kept = append(c.Kept, c.Point.X...)
		}
	}
	if r.Record == nil {
		return nil
	}
	r.watch.Lock()
	defer r.watch.Unlock()
	defer caught("recorder", &err)
	return r.Record(c.Number, draw, c.Point.X, info)
}
