package infer

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/kelvin-ppl/kelvin/torch"
)

// Method is a configuration that can be built. Build checks every field.
type Method interface {
	Build(Target) (Transform, error)
}

// Tuner is a method that may leave open what depends on the target, such as its step size. A run asks it before Build.
type Tuner interface {
	// Tune is the method with what it leaves open found, for a run with these options, where its chains start, and words
	// on what was found: the attribute "tuned" of the draws. Where nothing is open it is the method itself, and o.Start,
	// without words.
	Tune(ctx context.Context, program Program, o Options) (m Method, start Params, found string, err error)
}

// Transform is an inference method bound to a target.
type Transform interface {
	// Init makes the state at p, with random streams of seed 0. See [Init] for other seeds.
	Init(p Params) (State, error)
	// Update returns the state after one batch; s is not changed. The new state's tensors belong to the scope that is
	// open, or are freed by the garbage collector where none is.
	Update(s State, b Batch) (State, Info, error)
}

// State is what a method carries from one update to the next: one flat tensor for each quantity.
type State interface {
	// Position is the point, or the mean of a distribution over points.
	Position() Params
	// Steps is the number of updates so far.
	Steps() int
	// Tensors are the tensors that the state owns, which [Free] frees, and those that it shares with other states, for
	// example a preconditioner. It is asked for at every update.
	Tensors() (owned, shared Tensors)
	// Save is everything that the next update depends on: what a checkpoint stores.
	Save() Saved
}

// Saved is a state in parts, as a checkpoint stores it. The tensors are the state's own.
type Saved struct {
	Steps   int           // updates so far
	Streams torch.Streams // the random streams, with their positions
	Tensors Tensors       // "params" is the position
	Shared  Tensors       // what later states have in common with this one
	Extra   []byte        // what else the method needs, in its own format; nil for nothing
}

// Seeded is a transform whose states have random streams.
type Seeded interface {
	InitStreams(p Params, streams torch.Streams) (State, error)
}

// Preparer is a transform that now and then looks at several batches at one point before it goes on, for example once
// an epoch to estimate a preconditioner. [Run] asks it before every update.
type Preparer interface {
	// Due says whether Prepare comes before the next update of s. epoch is whether the next batch begins a
	// pass over the data.
	Due(s State, epoch bool) bool
	// Prepare returns the state to go on with; s is not changed. epoch is as for Due. The batches of next are those to
	// come, which the updates see again afterwards.
	Prepare(s State, epoch bool, next func() (Batch, error)) (State, error)
}

// Restorer is a transform that can go on from a saved state, whose Tensors then hold the shared ones too. [Run] needs
// it for checkpoints.
type Restorer interface {
	Restore(layout *Layout, saved Saved) (State, error)
}

// Sampler is a transform whose states are distributions that can be drawn from.
type Sampler interface {
	// Sample draws n points from the state's distribution, as params of shape [n, d].
	Sample(s State, n int, streams *torch.Streams) (Params, error)
}

// Init makes the state of a transform with a seed: chain k gets the stream (seed, k). A transform without random
// numbers ignores the seed.
func Init(t Transform, p Params, seed uint64) (State, error) { return begin(t, p, seed, 0) }

// Advance is an update of a state that is not needed any more: it returns the state after one batch, as Update does,
// and frees s, whose memory the new state gets where it can. So a loop of updates is faster and needs less memory.
// Other tensors over the memory of s, for example a site of its position, keep their values. Where there is an error s
// is as it was. What Save of s gave is freed with it.
func Advance(t Transform, s State, b Batch) (State, Info, error) {
	if t == nil {
		return nil, Info{}, fmt.Errorf("the transform is nil: %w", ErrConfig)
	}
	if a, ok := t.(advancer); ok {
		return a.Advance(s, b)
	}
	next, info, err := t.Update(s, b)
	if err != nil {
		return nil, info, err
	}
	freeBut(s, next)
	return next, info, nil
}

// advancer is a transform with a way of its own to advance.
type advancer interface {
	Advance(s State, b Batch) (State, Info, error)
}

// freeBut frees what the state s owns, but what next has too.
func freeBut(s, next State) {
	before, _ := s.Tensors()
	live := tensorsOf(next)
	for _, t := range before {
		if !slices.Contains(live, t) {
			torch.Free(t)
		}
	}
}

// tensorsOf are the tensors that a state owns, and those that it shares.
func tensorsOf(s State) []torch.Tensor {
	owned, shared := s.Tensors()
	return slices.AppendSeq(slices.Collect(maps.Values(owned)), maps.Values(shared))
}

// Free gives the memory of a state back now, instead of when the garbage collector finds it.
func Free(s State) {
	if s == nil {
		return
	}
	owned, _ := s.Tensors()
	for _, t := range owned {
		torch.Free(t)
	}
}

// Info is what an update tells about itself: plain numbers, one for each of K chains. A density that is not finite is a
// value here, not an error.
type Info struct {
	LogPosterior []float64 // at the point before the move, where the gradient was taken
	GradNorm     []float64 // Euclidean norm of the gradient there
	Diverged     []bool    // the density or the gradient is not finite, so the chain was held; nil when none is
	LR           float64   // step size used
	TimeStep     float64   // time that passed, the weight of a time average, where that is not LR; 0 for LR
	Temperature  float64   // temperature used
	Stats        map[string][]float64
	Aux          Aux
}

// Tensors are the named tensors of a state.
type Tensors = map[string]torch.Tensor

// Tensor is a tensor of a saved state; a name that is not there is an error.
func (s Saved) Tensor(name string) (torch.Tensor, error) {
	t, ok := s.Tensors[name]
	if !ok {
		return torch.Tensor{}, fmt.Errorf("the saved state has no %q: it is of another method: %w", name, ErrCheckpoint)
	}
	return t, nil
}

// GradientMethod is a method that needs nothing of the log posterior but its values and gradients, so that it can climb
// anything that has them: the optimisers. A variational method uses one to move the parameters of a distribution, whose
// objective no log posterior can express.
type GradientMethod interface {
	Method
	// BuildGradient is Build with a gradient in the place of the log posterior.
	BuildGradient(Gradient) (Transform, error)
}
