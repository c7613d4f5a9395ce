package kernel

import "fmt"

// Options configure [Run], [Resume] and [Exchange]. The zero value of a field is its default.
type Options struct {
	Chains int // default 4
	Warmup int // transitions of each chain that adapt and are thrown away; default 1000; None for none
	Draws  int // draws kept of each chain; default 1000
	Thin   int // transitions for each draw kept; default 1
	Seed   uint64
	// FirstChain is the number of the first chain, where a run is a part of a larger one: chain k reads the stream (Seed, FirstChain + k).
	FirstChain uint64
	Kernel     Kernel // default NUTS{}
	// Metric is the form of the mass matrix; default Diagonal. InitialMetric is what it starts from (nil: the identity),
	// and stays if nothing is adapted; its kind may be another.
	Metric        MetricKind
	InitialMetric *MetricState
	StepSize      float64 // to start from; 0 finds one ([InitialStepSize])
	Adapt         Adapt
	Temperature   float64 // T; default 1. Exchange has a ladder instead
	// Init are the starts, one for each chain. Without them a chain draws from the uniform law on (-2, 2)^d, as Stan does,
	// up to 100 times until density and gradient are finite and the kernel's box, if any, holds the point.
	Init [][]float64
	// Parallel lets each chain call the density by itself, from its own goroutine, instead of in batches. It is for
	// densities in plain Go that are safe for concurrent use.
	Parallel bool
	// Observer, if any, sees each warm-up transition (info.Warmup; draw counts from 0) and each kept draw (draw counts from
	// 0 again). Its calls come one at a time, those of one chain in order, those of several in any order. x is on loan.
	Observer func(chain, draw int, x []float64, info Info)
	// Checkpoint, if any, gets a snapshot every CheckpointEvery transitions of each chain (default 100), for which the
	// chains wait for each other. The snapshot is its own copy. An error ends the run.
	Checkpoint      func(*Snapshot) error
	CheckpointEvery int
}

// Adapt configures the warm-up. The zero value is Stan's.
type Adapt struct {
	From       Estimator     // of the metric; default Variance, for LowRank Fisher
	LowRank    LowRankFisher // of metric LowRank
	Step       DualAveraging // its Target, when zero, is the kernel's: 0.8, or 0.574 for MALA
	KeepMetric bool          // do not adapt the metric
	KeepStep   bool          // do not adapt the step size
	// Pooled makes one metric of the draws of all chains at each window's end, and one step size of all at the end of the
	// warm-up (their geometric mean). The chains then wait for each other there. It is the choice for many chains: with one
	// step size their trees cost the same on average, so that they end together and batches are full to the end.
	Pooled     bool
	InitBuffer int // see [Windows]; default 75; None for none
	TermBuffer int // default 50; None for none
	BaseWindow int // default 25
}

// Result is what a run made: all of it, or what there was when it ended early.
type Result struct {
	Dim      int
	Chains   []Chain
	Batches  BatchStats // of the batcher; zero where it was not needed
	Snapshot *Snapshot  // where the run ended; see [Resume]
}

// Chain are the draws of one chain and their statistics, one number for each draw.
type Chain struct {
	First       int       // number of the first draw here; more than 0 after Resume
	Temperature float64   // T
	Draws       []float64 // [draws, Dim]
	LogP        []float64 // log density, not divided by T
	Accept      []float64
	StepSize    []float64
	Energy      []float64
	Depth       []int
	Leapfrogs   []int
	Divergent   []bool
	MaxDepth    []bool
	Gradients   int64       // evaluated in all, with warm-up, also before a Resume
	Metric      MetricState // at the end
}

// Len is the number of draws.
func (c *Chain) Len() int { return len(c.LogP) }

// Draw is draw i, not a copy.
func (c *Chain) Draw(i int) []float64 {
	d := len(c.Draws) / len(c.LogP)
	return c.Draws[i*d : (i+1)*d : (i+1)*d]
}

// maxTransitions is how many transitions a run can have: their numbers are counted exactly, also as floating-point numbers.
const maxTransitions = 1 << 53

// check fills in the defaults.
func (o Options) check(typ string, d int) (Options, error) {
	fail := func(field string, value any, allowed string) (Options, error) {
		return o, &FieldError{typ, field, value, allowed}
	}
	if d < 1 {
		return fail("density.Dim()", d, "it must be at least 1")
	}
	for _, f := range []struct {
		name     string
		v        *int
		def, low int
	}{{"Chains", &o.Chains, 4, 1}, {"Draws", &o.Draws, 1000, 1}, {"Thin", &o.Thin, 1, 1}, {"CheckpointEvery", &o.CheckpointEvery, 100, 1}, {"Adapt.BaseWindow", &o.Adapt.BaseWindow, 25, 1}} {
		if err := atLeast(typ, f.name, f.v, f.def, f.low); err != nil {
			return o, err
		}
	}
	for _, f := range []struct {
		name string
		v    *int
		def  int
	}{{"Warmup", &o.Warmup, 1000}, {"Adapt.InitBuffer", &o.Adapt.InitBuffer, 75}, {"Adapt.TermBuffer", &o.Adapt.TermBuffer, 50}} {
		if err := optional(typ, f.name, f.v, f.def); err != nil {
			return o, err
		}
	}
	if most := maxTransitions / o.Chains; o.Warmup > most || o.Draws > (most-o.Warmup)/o.Thin {
		return fail("Draws", o.Draws, fmt.Sprintf("with %d chains, a warm-up of %d and every %d-th kept it must make at most %d transitions in all", o.Chains, o.Warmup, o.Thin, maxTransitions))
	}
	if err := positive(typ, "Temperature", &o.Temperature, 1); err != nil {
		return o, err
	}
	if !(o.StepSize >= 0) || !finite(o.StepSize) {
		return fail("StepSize", o.StepSize, "it must be a positive number, or 0 to find one")
	}
	if o.Kernel == nil {
		o.Kernel = NUTS{}
	}
	t, err := o.Kernel.Build(d)
	if err != nil {
		return o, err
	}
	if o.Adapt.Step.Target == 0 {
		o.Adapt.Step.Target = t.Target()
	}
	if o.Adapt.Step, err = o.Adapt.Step.Build(); err != nil {
		return o, err
	}
	if o.Metric == "" {
		o.Metric = Diagonal
	}
	if _, err := NewMass(o.Metric, o.Adapt.From, d); err != nil {
		return o, err
	}
	if err := o.Adapt.LowRank.check(); err != nil {
		return o, err
	}
	if o.InitialMetric == nil {
		m := UnitMetric(d)
		o.InitialMetric = &m
	}
	if o.InitialMetric.Dim != d {
		return fail("InitialMetric.Dim", o.InitialMetric.Dim, fmt.Sprintf("it must be the density's, %d", d))
	}
	if _, err := o.InitialMetric.Metric(); err != nil {
		return o, err
	}
	if o.Init != nil && len(o.Init) != o.Chains {
		return fail("Init", fmt.Sprintf("of length %d", len(o.Init)), fmt.Sprintf("it must be nil or have one start for each of %d chains", o.Chains))
	}
	for k, x := range o.Init {
		if len(x) != d {
			return fail(fmt.Sprintf("Init[%d]", k), fmt.Sprintf("of length %d", len(x)), fmt.Sprintf("it must have %d numbers", d))
		}
	}
	return o, nil
}
