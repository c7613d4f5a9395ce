package infer

import (
	"context"

	"github.com/kelvin-ppl/kelvin/draws"
)

// Driver is a transform that makes a whole run itself, instead of one update after another: chains that run freely,
// replicas that swap.
type Driver interface {
	// Stats are the names of the statistics of its draws.
	Stats() []string
	// Drive makes the run, or what is left of it. What it returns besides the error is for [Result].Detail.
	Drive(ctx context.Context, job Job) (detail any, err error)
}

// Job is what a [Driver] is asked to do. The run keeps the draws and writes the files; the driver keeps none.
type Job struct {
	Layout *Layout // of the target
	Batch  Batch   // all of the data
	Start  Params  // of shape [K, d]
	// Seed and FirstChain name the random streams: chain k reads (Seed, FirstChain + k).
	Seed, FirstChain            uint64
	Chains, Warmup, Draws, Thin int                      // Warmup 0 is none
	Resume                      []byte                   // a snapshot to go on from; nil at the start
	Every                       int                      // transitions of each chain between snapshots; 0 for none
	Snapshot                    func(state []byte) error // called while all chains rest
	// Due says, before a snapshot is made, whether there is to be one; nil is always. It is for short transitions: a
	// snapshot takes longer than many of them.
	Due func() bool
	// Record is called after every transition of the warm-up and every draw kept, one call at a time.
	Record func(Transition) error

	compilation *compilation
}

// Transition is what a [Driver] tells of one transition of one chain.
type Transition struct {
	Chain     int       // from 0
	Warmup    bool      // of the warm-up, so that no draw is kept
	X         []float64 // the point, of length d; used during the call only
	Stats     []float64 // in the order of Driver.Stats; used during the call only
	Gradients int       // evaluated for it, or values of a method without gradients
	Divergent bool
	StepSize  float64
}

// ModeFinder is a transform whose states belong at a mode: a run first climbs the target with the method, for the
// updates of the warm-up, and makes the state where that ends.
type ModeFinder interface {
	FindMode() (Method, Target)
}

// Defaulter is a method with defaults of its own for the options of a run. Fields that are zero are left to the door.
type Defaulter interface {
	Defaults() Options
}

// Named is a transform with a stable name for checkpoints and draws, for example "sgmcmc.SGHMC".
type Named interface {
	Name() string
}

// Noter is a transform that has something to say about a run that ended: a step that is too large, a fit that has not
// settled. Each note has advice that names the field to set.
type Noter interface {
	Notes(s State, run RunSummary) []draws.Note
}

// RunSummary is what a [Noter] is told about its run.
type RunSummary struct {
	Updates int // of each chain
	Held    int // updates of single chains that were held
	// Undefined counts gradients that were NaN where the density is finite. The run has a note about them itself.
	Undefined int
	Info      Info // of the last update
	Layout    *Layout
	Batch     Batch        // all of the data
	Part      bool         // Batch is a part of them: the model was compiled on a minibatch
	Batches   Batches      // where an update sees a part of the data; nil where it sees all
	Draws     *draws.Draws // on unconstrained space
	Details   []any        // what a method that drives itself has told, one of each group
}

// Batcher is a transform with a default of its own for the Batches of a run, where others see all of the data in every
// update. An error leaves it at that.
type Batcher interface {
	Batches(data Batch, seed uint64) (Batches, error)
}

// Passer is a transform whose fit is a number of passes over the batches: an accumulated curvature, a filter.
type Passer interface {
	Passes() int
}
