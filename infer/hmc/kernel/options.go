package kernel

import (
	"fmt"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/draws"
)

// Options configure [Run] and a [Stepper]. The zero value of a field is its default.
type Options struct {
	Chains int // default 4; with a Ladder: how many ladders
	Warmup int // transitions of each chain that adapt and are thrown away; default 1000; None for none
	Draws  int // draws of each chain; default 1000
	Thin   int // transitions for each draw; default 1
	Seed   uint64
	// FirstChain is the number of the first chain, where a run is a part of a larger one: chain k reads the stream
	// (Seed, FirstChain + k).
	FirstChain uint64
	Kernel     Kernel // default NUTS{}
	// Temperature is T; default 1. Schedule, if any, gives step size and temperature of transition i instead, of every
	// chain; a zero leaves the one that there is. A schedule of step sizes needs KeepStep.
	Temperature float64
	Schedule    func(i int) (stepSize, temperature float64)
	// Init are the starts, one for each chain; with a Ladder one for each ladder, or one for each replica of each.
	// Without them a chain draws from the uniform law on (-2, 2)^d, as Stan does, up to 100 times until density and
	// gradient are finite and the kernel's box, if any, holds the point.
	Init [][]float64
	// Minimise is how many steps of descent a chain makes from its start before the first transition; default none. See
	// [Run].
	Minimise int

	// Metric is the form of the mass matrix. By default it is Diagonal or LowRank, whichever the draws of the warm-up
	// predict to cost less; Diagonal in more than 1000 dimensions, with Pooled, and in a box with walls. InitialMetric is
	// what it starts from (nil: 1/|gradient| of the start where it adapts, else the identity), and stays if nothing is
	// adapted; its kind may be another.
	Metric        MetricKind
	InitialMetric *Metric
	StepSize      float64 // to start from; 0 finds one
	// TargetAccept is the acceptance to which the step size adapts, by dual averaging; default 0.8, and 0.574 for one
	// leapfrog step. For NUTS without a Ladder the default becomes 0.9 in a chain that gets into trouble after the first
	// 30 % of its warm-up: a transition diverges, or accepts less than 1e-5 on average.
	TargetAccept float64
	// Gamma, T0 and Kappa are the constants of dual averaging: how strongly the step size is drawn to ten times the one
	// it started from, how many updates damp the first ones, and how fast old ones are forgotten. The defaults are
	// Stan's, 0.05, 10 and 0.75 (more than 0.5, at most 1). For NUTS without a Ladder Gamma is 0.2, and the step size is
	// drawn to twice the first one.
	Gamma, T0, Kappa float64
	// LowRank: Shrinkage counts as that many more draws of unit variance (0: 1e-5 with more draws than dimensions,
	// else 1); eigenvalues within 1/Cutoff to Cutoff are left out (default 2); at most MaxRank vectors are kept
	// (default d).
	Shrinkage, Cutoff float64
	MaxRank           int
	KeepMetric        bool // do not adapt the metric
	KeepStep          bool // do not adapt the step size
	// Pooled makes one metric of the draws of all chains at each window's end, and one step size of all at the end of
	// the warm-up (their geometric mean). It is the choice for many chains: with one step size their trees cost the
	// same on average, so that they end together and batches are full to the end.
	Pooled bool
	// Trials finds step sizes by trajectories of their own, in the place of dual averaging (Baldock and Marzari 2019):
	// 10 is theirs, 0 is dual averaging. See [Run]. They are made again every TrialEvery transitions of the warm-up;
	// default 250, and 25 times SwapEvery with a Ladder.
	Trials, TrialEvery int

	// Ladder makes a run replica exchange: a chain at each of these temperatures, which rise; neighbours try to swap
	// their points every SwapEvery (default 10, and 1 with Adapt) transitions. Temperature, Schedule and Pooled are not
	// for it.
	Ladder    []float64
	SwapEvery int
	// Path names a path of densities: Ladder are then its inverse temperatures β, which fall from the one of interest,
	// and are not negative. The density must have ValueAndGradAt, which gets β in the place of the temperature, and the
	// law of a chain at β is exp(logp) for its logp at β.
	Path string
	// Adapt moves the rungs between the ends of the ladder in the first half of the warm-up, until neighbours refuse
	// swaps equally often. See [Run].
	Adapt bool
	// RandomPairs tries n-1 pairs of neighbours, drawn one after the other, in the place of all even or all odd pairs of
	// the n rungs.
	RandomPairs bool
	// KeepHot keeps the draws of all rungs but the first in Result.Hot, and in snapshots, which grow by them.
	KeepHot bool

	// Parallel lets each chain call the density by itself, from its own goroutine, instead of in batches. It is for
	// densities that are safe for concurrent use and gain nothing from batches. One that says of itself that it is
	// Concurrent (see [Density]) needs no such word.
	Parallel bool
	// Record, if any, sees each warm-up transition (info.Warmup; draw counts from 0) and each draw (draw counts from 0
	// again). Its calls come one at a time, those of one chain in order, those of several in any order. x is on loan.
	// An error ends the run. Nothing else keeps the draws.
	Record func(chain, draw int, x []float64, info Info) error
	// Checkpoint, if any, gets a snapshot every CheckpointEvery transitions of each chain (default 100), for which the
	// chains wait for each other. The snapshot is its own copy. An error ends the run.
	Checkpoint      func(*Snapshot) error
	CheckpointEvery int
	// Resume is a snapshot to go on from. The draws that follow are those of the run that was not interrupted, bit for
	// bit: always from a snapshot that Checkpoint was given, for which all chains stand at the same transition; from
	// the Snapshot of a result that was cancelled, where they do not, if the density computes each row without regard
	// to the others, as one in plain Go does. The options must be those of the run, except that Draws may grow.
	Resume *Snapshot
}

// Result is what a run tells at its end, or where it ended early.
type Result struct {
	Metrics   []Metric  // of each chain
	StepSizes []float64 // of each chain
	Gradients []int     // evaluated for each chain in all, with warm-up, also before a Resume
	Swaps     []Swaps   // of each ladder
	Lost      []Lost    // chains that had not arrived at the end of their warm-up
	// Hot are, with KeepHot, the draws at each rung but the first: Hot[i-1] those of rung i, on unconstrained space, with
	// a chain for each ladder. Package kernel has no names of sites: one site "x" has all dimensions.
	Hot []*draws.Draws
	// LogZ0 is log Z at β = 0 of the path of hmc.Exchange, where that is known and the log density is linear in β;
	// evidence.FromExchange goes on from there.
	LogZ0    *float64
	Snapshot *Snapshot // to go on from

	// Batches are the calls of the density and Rows the gradients; zero where nothing was batched. The sampling ones
	// count from when no chain was in its warm-up any more; the full ones are those of them that held every chain.
	Batches, Rows                              int
	SamplingBatches, SamplingRows, FullBatches int
}

// Fill is the mean fraction of chains in a batch of the sampling phase; NaN if no batch was evaluated.
func (r *Result) Fill() float64 {
	return float64(r.SamplingRows) / (float64(r.SamplingBatches) * float64(len(r.StepSizes)))
}

// maxTransitions is how many transitions a run can have: their numbers are counted exactly, also as floating-point
// numbers.
const maxTransitions = 1 << 53

// Chains and dimensions are bounded, so that a mistake is an error and not a request for all memory.
const (
	maxChains = 1 << 20
	maxDim    = 1 << 31
	maxDense  = 1 << 34 // bytes of all dense metrics
)

// replicas is the number of chains of a ladder, 1 without one.
func (o Options) replicas() int { return max(1, len(o.Ladder)) }

// low configures the low-rank metric.
func (o Options) low() lowRankFisher { return lowRankFisher{o.Shrinkage, o.Cutoff, o.MaxRank} }

// averages configures the dual averaging.
func (o Options) averages() dualAveraging {
	c := dualAveraging{Target: o.TargetAccept, Gamma: o.Gamma, T0: o.T0, Kappa: o.Kappa}
	if o.plainNUTS() {
		c.Pull = followingPull
		if c.Gamma == 0 {
			c.Gamma = followingGamma
		}
	}
	return c
}

// follows reports whether the metric adapts.
func (o Options) follows() bool {
	return !o.KeepMetric && o.Metric != Unit && o.Warmup >= leastWarmup
}

// plainNUTS reports whether it is NUTS, with chains that have nothing to do with each other.
func (o Options) plainNUTS() bool {
	_, ok := o.Kernel.(NUTS)
	return ok && o.Ladder == nil
}

// defaultMetric is the form of the metric in d dimensions where the user names none.
func (o Options) defaultMetric(d int) MetricKind {
	h, ok := o.Kernel.(HMC)
	if ok && h.Bounce || o.Pooled || d == 1 || d > autoDim {
		return Diagonal
	}
	return auto
}

// Check says what is wrong with the options for d dimensions. With d = 0 it is where nothing is known of the density:
// then the lengths of InitialMetric, Init and of a box need only fit each other.
func (o Options) Check(d int) error {
	if d == 0 {
		d = 1
		if h, ok := o.Kernel.(HMC); ok && len(h.Lower)+len(h.Upper) > 0 {
			d = max(len(h.Lower), len(h.Upper))
		} else if m := o.InitialMetric; m != nil {
			d = max(1, m.Dim, len(m.Diag))
		} else if len(o.Init) > 0 {
			d = len(o.Init[0])
		} else if _, ok := o.Kernel.(Microcanonical); ok {
			d = 2
		}
	}
	_, err := o.check(d)
	return err
}

// check fills in the defaults.
func (o Options) check(d int) (Options, error) {
	c := checks{typ: "kernel.Options"}
	c.require(d >= 1 && d <= maxDim, "density.Dim()", d, fmt.Sprintf("it must be from 1 to %d", maxDim))
	c.atLeast("Chains", &o.Chains, 4, 1)
	c.atLeast("Draws", &o.Draws, 1000, 1)
	c.atLeast("Thin", &o.Thin, 1, 1)
	c.atLeast("CheckpointEvery", &o.CheckpointEvery, 100, 1)
	c.atLeast("SwapEvery", &o.SwapEvery, o.swapEvery(), 1)
	c.optional("Warmup", &o.Warmup, 1000)
	c.require(o.Chains <= maxChains, "Chains", o.Chains, fmt.Sprintf("it must be at most %d", maxChains))
	if c.err != nil {
		return o, c.err
	}
	most := maxTransitions / o.Chains
	c.require(o.Warmup <= most && o.Draws <= (most-o.Warmup)/o.Thin, "Draws", o.Draws,
		fmt.Sprintf("with %d chains, a warm-up of %d and every %d-th kept it must make at most %d "+
			"transitions in all", o.Chains, o.Warmup, o.Thin, maxTransitions))
	c.positive("Temperature", &o.Temperature, 1)
	c.require(o.StepSize >= 0 && finite(o.StepSize), "StepSize", o.StepSize,
		"it must be a positive number, or 0 to find one")
	if c.err != nil {
		return o, c.err
	}
	if o.Kernel == nil {
		o.Kernel = NUTS{}
	}
	t, err := o.Kernel.build(d)
	if err != nil {
		return o, err
	}
	accept := o.TargetAccept
	if accept == 0 {
		o.TargetAccept = t.Target()
	}
	if o.Trials > 0 && accept == 0 {
		o.TargetAccept = 0.65
	}
	_, err = (dualAveraging{Target: o.TargetAccept}).build()
	c.require(err == nil, "TargetAccept", o.TargetAccept, "it must be between 0 and 1")
	_, err = o.averages().build()
	c.add(err)
	if o.Metric == "" {
		o.Metric = o.defaultMetric(d)
	} else {
		c.require(slices.Contains([]MetricKind{Unit, Diagonal, Dense, LowRank}, o.Metric), "Metric",
			fmt.Sprintf("%q", o.Metric), "it must be Unit, Diagonal, Dense or LowRank")
	}
	c.add(o.checkMetric(d))
	c.add(o.low().check())
	if c.err != nil {
		return o, c.err
	}
	initial := unitMetric(d)
	if o.InitialMetric != nil {
		initial = *o.InitialMetric
	}
	if initial.Dim == 0 {
		initial.Dim = d
	}
	o.InitialMetric = &initial
	if c.require(initial.Dim == d, "InitialMetric.Dim", initial.Dim,
		fmt.Sprintf("it must be the density's, %d", d)); c.err != nil {
		return o, c.err
	}
	_, err = initial.build()
	c.add(err)
	c.add(o.checkLadder())
	c.add(o.checkTrials())
	c.require(o.Init == nil || len(o.Init) == o.Chains || len(o.Init) == o.Chains*o.replicas(), "Init",
		fmt.Sprintf("of length %d", len(o.Init)),
		fmt.Sprintf("it must be nil or have one start for each of %d chains", o.Chains))
	for k, x := range o.Init {
		c.require(len(x) == d, fmt.Sprintf("Init[%d]", k), fmt.Sprintf("of length %d", len(x)),
			fmt.Sprintf("it must have %d numbers", d))
	}
	return o, c.err
}

// checkMetric checks what the form of the metric needs.
func (o *Options) checkMetric(d int) error {
	c := checks{typ: "kernel.Options"}
	form := fmt.Sprintf("%q", o.Metric)
	h, ok := o.Kernel.(HMC)
	c.require(!ok || !h.Bounce || o.Metric == Unit || o.Metric == Diagonal, "Metric", form,
		"with HMC.Bounce it must be Unit or Diagonal: a wall turns one momentum")
	// Each chain has its metric, the factor of it, an estimate and the one before.
	bytes := 4 * 8 * float64(o.Chains) * float64(d) * float64(d)
	c.require(o.Metric != Dense || bytes <= maxDense, "Metric", form,
		fmt.Sprintf("matrices of %d x %d for %d chains take %.0f GB, more than %d: use LowRank or Diagonal", d, d, o.Chains,
			bytes/1e9, maxDense/1_000_000_000))
	return c.err
}

// None is the value of a count whose zero value stands for its default, where none at all is wanted.
const None = -1

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

func allPositive(v []float64) bool {
	for _, e := range v {
		if !(e > 0) || !finite(e) {
			return false
		}
	}
	return true
}

// allFinite multiplies by zero: the sum is zero unless something is infinite or not a number.
func allFinite(v []float64) bool {
	s := 0.0
	for _, e := range v {
		s += 0 * e
	}
	return s == 0
}
