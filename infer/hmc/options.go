package hmc

import (
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc/kernel"
	"github.com/sugarme/gotch"
)

// Program is what is sampled: a compiled model (*ppl.Program), or a [Posterior] written by hand.
type Program interface {
	Layout() *infer.Layout
	LogPosterior() infer.LogPosterior
	// Batch is the data, for Options without any.
	Batch() infer.Batch
	// Start is a point for each chain at which density and gradient are finite.
	Start(batch infer.Batch, chains int, seed uint64) (infer.Params, error)
	// Draws maps draws on unconstrained space to named values.
	Draws(unconstrained *draws.Draws, batch infer.Batch) (*draws.Draws, error)
}

// Options configure [Sample], [Run] and [Stream]. The zero value of a field is its default.
type Options struct {
	Chains int // default 4
	Warmup int // transitions of each chain that adapt and are thrown away; default 1000; kernel.None for none
	Draws  int // draws kept of each chain; default 1000
	Thin   int // transitions for each draw; default 1
	Seed   uint64

	Batch  infer.Batch  // the data; nil: those of the program
	Device gotch.Device // where points are made; the zero value is main memory

	// Kernel moves the chains: kernel.NUTS (the default), kernel.HMC or kernel.MALA, with its fields.
	Kernel        kernel.Kernel
	Metric        kernel.MetricKind   // form of the mass matrix; default kernel.Diagonal
	InitialMetric *kernel.MetricState // default the identity
	StepSize      float64             // to start from; 0 finds one
	Adapt         kernel.Adapt        // the warm-up; the zero value is Stan's
	Temperature   float64             // the target is the density to the power 1/T; default 1

	// Init is where the chains start, of shape [d] or [Chains, d], on unconstrained space. The zero value leaves it to the
	// program: uniform in (-2, 2), as Stan does.
	Init infer.Params

	// Observe, if any, sees the run: after each transition of the warm-up and each draw kept, of each chain, one call at a time. Transitions
	// that Thin drops are not seen, nor are their divergences.
	Observe func(Progress)
	// Save, if any, gets the named draws as they are made, in blocks of SaveEvery (default 100) transitions: draw 0 of chain c in a block is
	// draw from[c] of the run. Run identifies a run with a Checkpoint by its model, data and options, and is empty without one. store.CSVSink and
	// store.ZarrSink are made for it. An error ends the run. With a Checkpoint, blocks are its intervals.
	Save      func(run string, from []int, block *draws.Draws) error
	SaveEvery int
	// Checkpoint, if any, makes the run one that can be killed and go on.
	Checkpoint *Checkpoint
}

// Statistics of the draws, by the names that package diag reads.
const (
	StatLP        = "lp"         // log density, up to a constant, not divided by T
	StatAccept    = "accept"     // mean acceptance probability of the trajectory
	StatStepSize  = "step_size"  // of the leapfrog
	StatDepth     = "tree_depth" // doublings of NUTS's tree
	StatLeapfrogs = "n_leapfrog" // leapfrog steps of the trajectory, and so gradients
	StatDivergent = "divergent"  // 1 where the trajectory diverged
	StatEnergy    = "energy"     // the Hamiltonian
	StatMaxDepth  = "max_depth"  // 1 where the tree was cut off at its greatest depth
)

var statNames = []string{StatLP, StatAccept, StatStepSize, StatDepth, StatLeapfrogs, StatDivergent, StatEnergy, StatMaxDepth}

func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// statistics of a draw, in the order of statNames.
func statistics(i kernel.Info) []float64 {
	return []float64{i.LogP, i.Accept, i.StepSize, float64(i.Depth), float64(i.Leapfrogs), flag(i.Divergent), i.Energy, flag(i.MaxDepth)}
}

// Posterior is a log posterior written by hand as a [Program]. Its draws keep the names and values of the layout.
type Posterior struct {
	Density infer.LogPosterior
	Sites   *infer.Layout
	Data    infer.Batch
}

// Layout is the layout.
func (p Posterior) Layout() *infer.Layout { return p.Sites }

// LogPosterior is the log posterior.
func (p Posterior) LogPosterior() infer.LogPosterior { return p.Density }

// Batch is the data.
func (p Posterior) Batch() infer.Batch { return p.Data }

// Start leaves it to the kernel, which draws uniformly from (-2, 2): it returns no point.
func (p Posterior) Start(infer.Batch, int, uint64) (infer.Params, error) { return infer.Params{}, nil }

// Draws are the draws.
func (p Posterior) Draws(d *draws.Draws, _ infer.Batch) (*draws.Draws, error) { return d, nil }
