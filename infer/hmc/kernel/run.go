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

// Run samples exp(logp/T) with several chains. The same options and density give the same draws, bit for bit, whatever the
// timing and the number of threads, as long as the density does.
//
// When the context ends or something fails, Run returns the error together with what it has; the result is nil only if the
// options are wrong. Errors: a [FieldError]; a [ChainError] with ErrNonFinite if every start of a chain is not finite, or
// with ErrStepSize; an error or panic ([PanicError]) of the density, the observer or the checkpoint hook; the context's.
func Run(ctx context.Context, density Density, options Options) (*Result, error) {
	r, err := newRunner("kernel.Options", density, options, nil)
	if err != nil {
		return nil, err
	}
	return r.run(ctx)
}

// runner drives the chains of one run.
type runner struct {
	Options
	density  Density
	d        int
	schedule Schedule
	chains   []*chain
	swaps    *swapper // of Exchange; else nil
	batcher  *Batcher
	watch    sync.Mutex // around the observer
	until    int        // of Advance: the transition before which it stops; else 0
}

func newRunner(typ string, density Density, options Options, ladder []float64) (*runner, error) {
	if density == nil {
		return nil, &FieldError{typ, "density", nil, "it must not be nil"}
	}
	d := density.Dim()
	o, err := options.check(typ, d)
	if err != nil {
		return nil, err
	}
	r := &runner{Options: o, density: density, d: d}
	r.schedule = Windows(o.Warmup, o.Adapt.InitBuffer, o.Adapt.TermBuffer, o.Adapt.BaseWindow)
	for k := range o.Chains {
		t := o.Temperature
		if ladder != nil {
			t = ladder[k]
		}
		c, err := r.newChain(k, t)
		if err != nil {
			return nil, err
		}
		r.chains = append(r.chains, c)
	}
	return r, nil
}

func (r *runner) transitions() int { return r.Warmup + r.Draws*r.Thin }

// run runs the chains to their end.
func (r *runner) run(ctx context.Context) (*Result, error) {
	b := NewBatcher(ctx, r.density, r.Chains)
	r.batcher = b
	alone := r.Chains == 1
	var all sync.WaitGroup
	for k, c := range r.chains {
		if alone || r.Parallel {
			c.gradient = b.Direct()
		} else {
			c.gradient = b.Gradient(k)
		}
		c.gradient = c.counted(c.gradient)
		all.Go(func() {
			if alone {
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
			}
			defer b.Leave(k)
			returned := false
			defer func() {
				if v := recover(); v != nil {
					b.Fail(&ChainError{k, &PanicError{"chain", v, string(debug.Stack())}})
				} else if !returned {
					b.Fail(&ChainError{k, errors.New("the density ended its goroutine")})
				}
			}()
			err := r.loop(ctx, c)
			returned = true
			if err != nil && !errors.Is(err, b.Err()) {
				b.Fail(&ChainError{k, err})
			}
		})
	}
	all.Wait()
	b.Close()
	result := &Result{Dim: r.d, Batches: b.Stats(), Snapshot: r.snapshot()}
	for _, c := range r.chains {
		c.out.Temperature, c.out.Gradients, c.out.Metric = c.Temperature, c.ChainState.Gradients, c.ChainState.Metric
		result.Chains = append(result.Chains, c.out)
	}
	if err := b.Err(); err != nil {
		name := "kernel.Run"
		if r.swaps != nil {
			name = "kernel.Exchange"
		}
		return result, fmt.Errorf("%s: %w", name, err)
	}
	return result, nil
}

// meets reports whether all chains wait for each other before transition i.
func (r *runner) meets(i int) bool {
	return i > 0 && (r.pools(i) || r.poolsStep(i) || r.Checkpoint != nil && i%r.CheckpointEvery == 0 || r.swaps != nil && i%r.swaps.every == 0)
}

// pools reports whether the window that ended just before transition i makes one metric of all chains.
func (r *runner) pools(i int) bool {
	return r.Adapt.Pooled && !r.Adapt.KeepMetric && r.Metric != Unit && r.schedule.End(i-1)
}

// poolsStep reports whether one step size is made of all before transition i.
func (r *runner) poolsStep(i int) bool {
	return r.Adapt.Pooled && !r.Adapt.KeepStep && r.Warmup > 0 && i == r.Warmup
}

// meeting is what is done while all chains wait before transition i. It is one act: a run that ends before or after it can
// be resumed, since each chain's state says that it has met.
func (r *runner) meeting(i int) error {
	if r.pools(i) {
		var pool Pool
		for _, c := range r.chains {
			pool.Add(c.Mass)
		}
		m, ok := pool.Estimate(r.Adapt.LowRank)
		for _, c := range r.chains {
			r.closeWindow(c, m, ok)
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
	if r.swaps != nil && i%r.swaps.every == 0 {
		r.swaps.swap(r.chains)
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
	spent := c.ChainState.Gradients // for the state that is whole
	defer func() {
		if err != nil {
			c.ChainState.Gradients = spent
		}
	}()
	if len(c.Point.X) == 0 {
		if err := r.start(c); err != nil {
			return err
		}
	}
	sampling := false
	for c.Done < r.transitions() && (r.until == 0 || c.Done < r.until) {
		spent = c.ChainState.Gradients
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
		}
		if c.NeedStep {
			if err := r.findStep(c); err != nil {
				return err
			}
			spent = c.ChainState.Gradients
		}
		info, err := c.transition.Step(&c.Point, c.StepSize, c.Temperature, c.metric, c.gradient, &c.Stream)
		if err != nil {
			return err
		}
		i := c.Done
		if info.Warmup = i < r.Warmup; info.Warmup {
			r.adapt(c, i, info.Accept)
		}
		c.Done++
		spent = c.ChainState.Gradients
		if err := r.record(c, i, info); err != nil {
			return err
		}
	}
	return nil
}

// record keeps a draw and shows it to the observer.
func (r *runner) record(c *chain, i int, info Info) (err error) {
	draw := i
	if !info.Warmup {
		i -= r.Warmup
		if (i+1)%r.Thin != 0 {
			return nil
		}
		draw = i / r.Thin
		c.keep(info)
	}
	if r.Observer == nil {
		return nil
	}
	r.watch.Lock()
	defer r.watch.Unlock()
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{"observer", v, string(debug.Stack())}
		}
	}()
	r.Observer(c.Number, draw, c.Point.X, info)
	return nil
}

func (c *chain) keep(info Info) {
	o := &c.out
	o.Draws = append(o.Draws, c.Point.X...)
	o.LogP = append(o.LogP, info.LogP)
	o.Accept = append(o.Accept, info.Accept)
	o.StepSize = append(o.StepSize, info.StepSize)
	o.Energy = append(o.Energy, info.Energy)
	o.Depth = append(o.Depth, info.Depth)
	o.Leapfrogs = append(o.Leapfrogs, info.Leapfrogs)
	o.Divergent = append(o.Divergent, info.Divergent)
	o.MaxDepth = append(o.MaxDepth, info.MaxDepth)
}
