package kernel

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"reflect"
	"slices"
	"strings"
)

// chainState is all that a chain needs to go on: plain numbers, which JSON and gob carry bit for bit.
type chainState struct {
	Number      int
	Temperature float64            // T; 1 on a path
	Beta        float64            // where it is on a path
	Done        int                // transitions made, with warm-up
	Met         int                // the last transition before which the chains waited for each other
	Gradients   int                // evaluated
	Shown       int                // of them, up to the last transition that was recorded
	Point       position           // where it is; empty before the first transition
	Stream      stream             // its random numbers
	StepSize    float64            // ε
	NeedStep    bool               // the step size is to be found anew before the next transition
	Averaging   dualAveragingState // of log ε
	Metric      Metric             // in use
	Mass        mass               // draws of the window that is open and of the one before, for the metric
	Next        mass               // of the open one alone
	Height      height             // log densities of the open window
	Before      height             // of the one before
	Form        form               // of the metric in use
	Candidates  []Metric           // of each form, of the draws before the open window, which its draws will judge
	Estimated   bool               // draws have made a metric
	Off         int                // transitions in a row whose step size is far from the best
	Raised      bool               // the target acceptance is the raised one
	Climb       bool               // it climbs before the next transition
	Restart     bool               // it tries another start before the next transition, since it is lost
	Restarts    int                // how often it has
	Lost        *Lost              `json:",omitempty"` // where it had not arrived at the end of the warm-up
	Tuned       int                // the transition after the last before which Trials were made
	Kept        []float64          `json:",omitempty"` // [draws, d], with KeepHot
	Track       []float64          `json:",omitempty"` // some coordinates of warm-up draws, for the length
}

func (s chainState) clone() chainState {
	s.Point = s.Point.clone()
	s.Metric = s.Metric.clone()
	s.Mass, s.Next = s.Mass.clone(), s.Next.clone()
	s.Candidates = slices.Clone(s.Candidates) // which do not change
	s.Kept = append([]float64(nil), s.Kept...)
	s.Track = append([]float64(nil), s.Track...)
	return s
}

func (m Metric) clone() Metric {
	m.Diag = append([]float64(nil), m.Diag...)
	m.Dense = append([]float64(nil), m.Dense...)
	m.Vectors = append([]float64(nil), m.Vectors...)
	m.Values = append([]float64(nil), m.Values...)
	return m
}

func (m Metric) equal(o Metric) bool {
	return m.Kind == o.Kind && m.Dim == o.Dim && slices.Equal(m.Diag, o.Diag) && slices.Equal(m.Dense, o.Dense) &&
		slices.Equal(m.Vectors, o.Vectors) && slices.Equal(m.Values, o.Values)
}

func (m mass) clone() mass {
	for _, s := range []*moments{&m.X, &m.Grad} {
		s.Mean = append([]float64(nil), s.Mean...)
		s.M2 = append([]float64(nil), s.M2...)
	}
	m.Draws = append([]float64(nil), m.Draws...)
	m.Grads = append([]float64(nil), m.Grads...)
	return m
}

// Snapshot is a whole run between transitions, as plain numbers, which JSON and gob carry bit for bit. It does not
// hold the draws that were made.
type Snapshot struct {
	Plan   plan // what was asked for, to compare
	Chains []chainState
	Swaps  []Swaps `json:",omitempty"` // of each ladder
}

// plan are the options that must not change between a snapshot and its resumption, in short form. More draws may be
// asked for than before.
type plan struct {
	Dim, Chains, Replicas, Warmup, Thin int
	Seed, FirstChain                    uint64
	Kernel                              string // type and fields
	Adapt                               string
	Metric                              MetricKind
	Every                               int    // transitions between checkpoints, or 0
	Exchange                            string // ladder and swaps
	Start                               string // descent and trials
}

// mostShown is how much of a kernel's configuration a plan has in words.
const mostShown = 300

func (r *runner) makePlan() plan {
	p := plan{
		Dim: r.d, Chains: r.Chains, Replicas: r.replicas(), Warmup: r.Warmup, Thin: r.Thin, Seed: r.Seed,
		FirstChain: r.FirstChain, Metric: r.Metric, Kernel: fmt.Sprintf("%T", r.Kernel),
		Adapt: fmt.Sprint(r.averages, r.low(), r.KeepMetric, r.KeepStep, r.Pooled, r.raises),
	}
	if fields, err := json.Marshal(r.Kernel); err == nil {
		p.Kernel += string(fields)
	} else { // JSON has no infinite bounds of a box
		p.Kernel += fmt.Sprintf("%+v", r.Kernel)
	}
	if len(p.Kernel) > mostShown { // a box of many dimensions, which errors would print
		h := fnv.New64a()
		fmt.Fprint(h, p.Kernel)
		p.Kernel = fmt.Sprintf("%s... %x", p.Kernel[:mostShown], h.Sum64())
	}
	if r.Checkpoint != nil {
		p.Every = r.CheckpointEvery
	}
	if r.Ladder != nil {
		p.Exchange = fmt.Sprint(r.Ladder, r.SwapEvery, r.Path, r.Adapt, r.RandomPairs, r.KeepHot)
	}
	if r.Minimise > 0 || r.Trials > 0 {
		p.Start = fmt.Sprint(r.Minimise, r.Trials, r.TrialEvery)
	}
	return p
}

// differences says what another plan has else.
func (p plan) differences(other plan) string {
	var all []string
	old, own := reflect.ValueOf(p), reflect.ValueOf(other)
	for i := range old.NumField() {
		if a, b := old.Field(i), own.Field(i); !a.Equal(b) {
			all = append(all, fmt.Sprintf("%s was %v and is %v", old.Type().Field(i).Name, a, b))
		}
	}
	return strings.Join(all, ", ")
}

func (r *runner) snapshot() *Snapshot {
	s := &Snapshot{Plan: r.plan, Chains: make([]chainState, len(r.chains))}
	for k, c := range r.chains {
		s.Chains[k] = c.chainState.clone()
	}
	for _, swaps := range r.swaps {
		s.Swaps = append(s.Swaps, swaps.clone())
	}
	return s
}

func (r *runner) restore(s *Snapshot) error {
	if r.plan != s.Plan {
		return misfit("it was made with other options: %s", s.Plan.differences(r.plan))
	}
	if len(s.Chains) != len(r.chains) || len(s.Swaps) != len(r.swaps) {
		return misfit("it has %d chains and %d ladders, and there are %d and %d", len(s.Chains), len(s.Swaps),
			len(r.chains), len(r.swaps))
	}
	for k, c := range r.chains {
		old := &s.Chains[k]
		n := len(old.Point.X)
		switch {
		case old.Number != k:
			return misfit("chain %d is number %d", k, old.Number)
		case old.Temperature != c.Temperature && r.Schedule == nil && !r.steps && !r.Adapt:
			return misfit("chain %d has the temperature %v, not %v", k, old.Temperature, c.Temperature)
		case n != 0 && n != r.d || len(old.Point.Grad) != n || n == 0 && old.Done != 0:
			return misfit("chain %d has a point of %d numbers, not %d", k, n, r.d)
		case old.Done < 0 || old.Done > r.transitions():
			return misfit("chain %d has made %d transitions, and the options ask for %d", k, old.Done, r.transitions())
		case len(old.Kept)%r.d != 0:
			return misfit("chain %d has kept %d numbers of %d dimensions", k, len(old.Kept), r.d)
		case !old.Mass.like(c.Mass) || !old.Next.like(c.Next) || old.Metric.Dim != r.d:
			return misfit("chain %d has the wrong metric", k)
		}
		have := c.Metric
		c.chainState = old.clone()
		if have.equal(c.Metric) { // it is built already
			continue
		}
		if err := c.setMetric(c.Metric); err != nil {
			return misfit("chain %d: %v", k, err)
		}
	}
	for l, swaps := range r.swaps {
		if err := swaps.restore(s.Swaps[l]); err != nil {
			return err
		}
		for i, rung := range swaps.Ladder {
			if have := *r.coordinate(r.chains[l*len(r.Ladder)+i]); have != rung {
				return misfit("rung %d of ladder %d is at %v, and its chain at %v", i, l, rung, have)
			}
		}
	}
	return nil
}

// chain is a chain at work: its state, and what is built of it.
type chain struct {
	chainState
	transition transition
	metric     massMatrix
	gradient   gradient
	scaled     []float64 // scratch: the gradient over T
}

func (r *runner) newChain(k int, temperature float64) (*chain, error) {
	t, err := r.Kernel.build(r.d)
	if err != nil {
		return nil, err
	}
	c := &chain{transition: t, scaled: make([]float64, r.d)}
	step, t0, err := r.scheduled(0)
	if err != nil {
		return nil, err
	}
	if step == 0 {
		step = r.StepSize
	}
	if t0 != 0 {
		temperature = t0
	}
	beta := 0.0
	if r.Path != "" {
		temperature, beta = 1, temperature
	}
	c.chainState = chainState{
		Number: k, Temperature: temperature, Beta: beta, Stream: newStream(r.Seed, r.FirstChain+uint64(k)),
		StepSize: step, NeedStep: step == 0 || !r.KeepStep && r.Warmup > 0,
	}
	if r.follows {
		c.Mass, c.Next = newMass(r.Metric, r.d), newMass(r.Metric, r.d)
	}
	c.Climb = r.climbsFirst(c)
	return c, c.setMetric(*r.InitialMetric)
}

func (c *chain) setMetric(m Metric) error {
	metric, err := m.build()
	if err != nil {
		return err
	}
	c.metric, c.chainState.Metric = metric, metric.State()
	return nil
}

// counted counts the gradients of the chain.
func (c *chain) counted(g gradient) gradient {
	return func(x, grad []float64) (float64, error) {
		logp, err := g(x, grad)
		if err == nil {
			c.chainState.Gradients++
		}
		return logp, err
	}
}

// box are the bounds of the kernel, where all dimensions have two.
func (c *chain) box() (lower, upper []float64, ok bool) {
	h, is := c.transition.(*hmc)
	if !is || h.Lower == nil || h.Upper == nil {
		return nil, nil, false
	}
	return h.Lower, h.Upper, true
}

// tempered is the gradient at the chain's point over T.
func (c *chain) tempered() []float64 {
	if c.Temperature == 1 {
		return c.Point.Grad
	}
	for j, g := range c.Point.Grad {
		c.scaled[j] = g / c.Temperature
	}
	return c.scaled
}

// adapt takes warm-up transition i, for the step size and the metric.
func (r *runner) adapt(c *chain, i int, info Info) {
	if r.averaged() {
		accept := info.Accept
		if i >= r.schedule.Final {
			accept = info.symmetric
		}
		c.Averaging, c.StepSize = r.averagesOf(c, i, info).Update(c.Averaging, accept)
	}
	r.follow(c, i, info)
	r.lengthen(c, i)
	if i == r.Warmup-1 && r.averaged() {
		c.StepSize = c.Averaging.Final()
	}
}
