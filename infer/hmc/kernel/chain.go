package kernel

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
)

// ChainState is all that a chain needs to go on: plain numbers, which JSON and gob carry bit for bit.
type ChainState struct {
	Number      int
	Temperature float64
	Done        int                // transitions made, with warm-up
	Met         int                // the last transition before which the chains waited for each other
	Gradients   int64              // evaluated
	Point       State              // where it is; empty before the first transition
	Stream      Stream             // its random numbers
	StepSize    float64            // ε
	NeedStep    bool               // the step size is to be found anew before the next transition
	Averaging   DualAveragingState // of log ε
	Metric      MetricState        // in use
	Mass        Mass               // of the window that is open
}

func (s ChainState) clone() ChainState {
	s.Point = s.Point.clone()
	s.Metric = s.Metric.clone()
	s.Mass = s.Mass.clone()
	return s
}

func (m MetricState) clone() MetricState {
	m.Diag = append([]float64(nil), m.Diag...)
	m.Dense = append([]float64(nil), m.Dense...)
	m.Vectors = append([]float64(nil), m.Vectors...)
	m.Values = append([]float64(nil), m.Values...)
	return m
}

func (m Mass) clone() Mass {
	for _, s := range []*Moments{&m.X, &m.Grad} {
		s.Mean = append([]float64(nil), s.Mean...)
		s.M2 = append([]float64(nil), s.M2...)
	}
	m.Draws = append([]float64(nil), m.Draws...)
	m.Grads = append([]float64(nil), m.Grads...)
	return m
}

// Snapshot is a whole run between transitions, as plain numbers. It does not hold the draws that were made.
type Snapshot struct {
	Plan   Plan // what was asked for, to compare
	Chains []ChainState
	Swaps  *SwapStats `json:",omitempty"` // of Exchange
}

// Plan are the options that must not change between a snapshot and its resumption, in short form. More draws may be asked
// for than before.
type Plan struct {
	Dim, Chains, Warmup, Thin int
	Seed, FirstChain          uint64
	Kernel                    string // type and fields
	Adapt                     string
	Metric                    MetricKind
	Every                     int // transitions between checkpoints, or 0
	Swap                      int // transitions between swaps, or 0
}

func (r *runner) plan() Plan {
	p := Plan{
		Dim: r.d, Chains: r.Chains, Warmup: r.Warmup, Thin: r.Thin, Seed: r.Seed, FirstChain: r.FirstChain, Metric: r.Metric,
		Kernel: fmt.Sprintf("%T", r.Kernel), Adapt: fmt.Sprintf("%+v", r.Adapt),
	}
	if fields, err := json.Marshal(r.Kernel); err == nil {
		p.Kernel += string(fields)
	} else { // JSON has no infinite bounds of a box
		p.Kernel += fmt.Sprintf("%+v", r.Kernel)
	}
	if r.Checkpoint != nil {
		p.Every = r.CheckpointEvery
	}
	if r.swaps != nil {
		p.Swap = r.swaps.every
	}
	return p
}

// Resume goes on from a snapshot to the end of the options' draws; the result holds the draws made since (see
// [Chain.First]). Resumed draws are those of the uninterrupted run, bit for bit: always from a snapshot that
// [Options.Checkpoint] was given, for which all chains stand at the same transition; from [Result.Snapshot] of a run that
// was cancelled, where they do not, if the density computes each row without regard to the others, as one in plain Go does.
//
// The options must be those of the run, except that Draws may grow. Where they differ it is an ErrSnapshot.
func Resume(ctx context.Context, density Density, options Options, snapshot *Snapshot) (*Result, error) {
	r, err := newRunner("kernel.Options", density, options, nil)
	if err != nil {
		return nil, err
	}
	if err := r.restore(snapshot); err != nil {
		return nil, err
	}
	return r.run(ctx)
}

func (r *runner) snapshot() *Snapshot {
	s := &Snapshot{Plan: r.plan()}
	for _, c := range r.chains {
		s.Chains = append(s.Chains, c.ChainState.clone())
	}
	if r.swaps != nil {
		stats := r.swaps.stats.clone()
		s.Swaps = &stats
	}
	return s
}

func (r *runner) restore(s *Snapshot) error {
	if s == nil {
		return fmt.Errorf("%w: it is nil", ErrSnapshot)
	}
	if p := r.plan(); p != s.Plan {
		return fmt.Errorf("%w: it was made with %+v, and the options are %+v", ErrSnapshot, s.Plan, p)
	}
	if len(s.Chains) != r.Chains || (s.Swaps == nil) != (r.swaps == nil) {
		return fmt.Errorf("%w: it has %d chains of %d", ErrSnapshot, len(s.Chains), r.Chains)
	}
	for k, c := range r.chains {
		saved := s.Chains[k].clone()
		n := len(saved.Point.X)
		switch {
		case saved.Number != k || saved.Temperature != c.Temperature:
			return fmt.Errorf("%w: chain %d is number %d at temperature %v, not %v", ErrSnapshot, k, saved.Number, saved.Temperature, c.Temperature)
		case n != 0 && n != r.d || len(saved.Point.Grad) != n || n == 0 && saved.Done != 0:
			return fmt.Errorf("%w: chain %d has a point of %d numbers, not %d", ErrSnapshot, k, n, r.d)
		case saved.Done < 0 || saved.Done > r.transitions():
			return fmt.Errorf("%w: chain %d has made %d transitions, and the options ask for %d", ErrSnapshot, k, saved.Done, r.transitions())
		case saved.Mass.Kind != c.Mass.Kind || len(saved.Mass.X.M2) != len(c.Mass.X.M2) || len(saved.Mass.X.Mean) != len(c.Mass.X.Mean) || len(saved.Mass.Grad.M2) != len(c.Mass.Grad.M2) || saved.Metric.Dim != r.d:
			return fmt.Errorf("%w: chain %d has the wrong metric", ErrSnapshot, k)
		}
		c.ChainState = saved
		if err := c.setMetric(saved.Metric); err != nil {
			return fmt.Errorf("%w: chain %d: %w", ErrSnapshot, k, err)
		}
		c.out.First = max(0, saved.Done-r.Warmup) / r.Thin
	}
	if r.swaps != nil {
		return r.swaps.restore(*s.Swaps)
	}
	return nil
}

// chain is a chain at work: its state, and what is built of it.
type chain struct {
	ChainState
	transition Transition
	metric     Metric
	gradient   Gradient
	out        Chain
}

func (r *runner) newChain(k int, temperature float64) (*chain, error) {
	t, err := r.Kernel.Build(r.d)
	if err != nil {
		return nil, err
	}
	mass, err := NewMass(r.Metric, r.Adapt.From, r.d)
	if err != nil {
		return nil, err
	}
	c := &chain{transition: t}
	c.ChainState = ChainState{
		Number: k, Temperature: temperature, Stream: NewStream(r.Seed, r.FirstChain+uint64(k)), Mass: mass,
		StepSize: r.StepSize, NeedStep: r.StepSize == 0 || !r.Adapt.KeepStep && r.Warmup > 0,
	}
	return c, c.setMetric(*r.InitialMetric)
}

func (c *chain) setMetric(m MetricState) error {
	metric, err := m.Metric()
	if err != nil {
		return err
	}
	c.metric, c.ChainState.Metric = metric, metric.State()
	return nil
}

// counted counts the gradients of the chain.
func (c *chain) counted(g Gradient) Gradient {
	return func(x, grad []float64) (float64, error) {
		logp, err := g(x, grad)
		if err == nil {
			c.ChainState.Gradients++
		}
		return logp, err
	}
}

// start finds the first point: finite, and in the kernel's box if it has one.
func (r *runner) start(c *chain) error {
	tries := 100
	if r.Init != nil {
		tries = 1
	}
	box, boxed := c.transition.(interface{ inside(x []float64) bool })
	stream := c.Stream
	x := make([]float64, r.d)
	for range tries {
		if r.Init != nil {
			copy(x, r.Init[c.Number])
		} else {
			for i := range x {
				x[i] = 4*stream.Float64() - 2
			}
		}
		if boxed && !box.inside(x) {
			if r.Init != nil {
				return &FieldError{"kernel.Options", fmt.Sprintf("Init[%d]", c.Number), x, "it must be inside the kernel's box"}
			}
			continue
		}
		s := State{X: x, Grad: make([]float64, r.d)}
		var err error
		if s.LogP, err = point(c.gradient, s.X, s.Grad); err != nil {
			return err
		}
		if !math.IsNaN(s.LogP) && allFinite(x) {
			c.Point, c.Stream = s, stream
			return nil
		}
	}
	if r.Init != nil {
		return fmt.Errorf("log density or gradient at the given start: %w", ErrNonFinite)
	}
	return fmt.Errorf("log density or gradient at each of %d starts in (-2, 2)^%d (or these are outside the kernel's box): %w", tries, r.d, ErrNonFinite)
}

// findStep finds a step size to start from, and starts its adaptation.
func (r *runner) findStep(c *chain) error {
	guess := c.StepSize
	if guess == 0 {
		guess = 1
	}
	stream := c.Stream
	eps, err := InitialStepSize(&c.Point, guess, c.Temperature, c.metric, c.gradient, &stream)
	if err != nil {
		return err
	}
	c.Stream, c.StepSize, c.NeedStep = stream, eps, false
	c.Averaging = r.Adapt.Step.Init(eps)
	return nil
}

// adapt takes warm-up transition i, as Stan does: the step size at each, the metric at the end of each window.
func (r *runner) adapt(c *chain, i int, accept float64) {
	if !r.Adapt.KeepStep {
		c.Averaging, c.StepSize = r.Adapt.Step.Update(c.Averaging, accept)
	}
	if !r.Adapt.KeepMetric && r.Metric != Unit && r.schedule.In(i) {
		grad := c.Point.Grad
		if c.Temperature != 1 {
			grad = append([]float64(nil), grad...)
			for j := range grad {
				grad[j] /= c.Temperature
			}
		}
		c.Mass.Add(c.Point.X, grad)
		if r.schedule.End(i) && !r.Adapt.Pooled {
			m, ok := c.Mass.Estimate(r.Adapt.LowRank)
			r.closeWindow(c, m, ok)
		}
	}
	if i == r.Warmup-1 && !r.Adapt.KeepStep {
		c.StepSize = c.Averaging.Final()
	}
}

// closeWindow takes a window's metric, if there is one, and opens the next window.
func (r *runner) closeWindow(c *chain, m MetricState, ok bool) {
	c.Mass.Reset()
	if ok && c.setMetric(m) == nil {
		c.Point.Momentum = nil // it had the law of the old metric
		c.NeedStep = !r.Adapt.KeepStep
	}
}
