package infer

import (
	"fmt"
	"log/slog"
	"math"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/torch"
)

// None is the value of a count whose zero value stands for its default, where none at all is wanted.
const None = -1

// Options say how a run goes. The zero value of a field is its default; a method may have defaults of its own.
type Options struct {
	Chains int    // default 4
	Warmup int    // updates of each chain before the first draw; default 1000; None for none
	Draws  int    // draws kept of each chain; default 1000; None for none, where the last state is what counts
	Thin   int    // updates for each draw; default 1
	Seed   uint64 // of the random streams: chain k reads (Seed, FirstChain + k), whatever the other chains
	// FirstChain is the number of the first chain, where this run is a part of a larger one; default 0.
	FirstChain uint64

	// Start is where the chains start, on unconstrained space, of shape [d] or [Chains, d]; the zero value leaves it to
	// the program (a compiled model: uniform in (-2, 2)).
	Start Params
	// Batches are the data; nil is all of the program's in every update. They are as many as the program counts: Full and
	// Minibatches of another number are an error, for they would have another posterior. They may be other data than the
	// program's. Methods that need all of the data in every update, such as NUTS, take Full alone.
	Batches Batches
	// DependentRows says that rows of a batch may depend on each other, as they do by batch normalisation. Without it a
	// run with minibatches of a density in which the terms of one row change with the other rows, their order or number is
	// an error: on a part of the data it is another density, and the mean over batches is not that of all data. Neither is
	// it with DependentRows: no posterior is sampled then.
	DependentRows bool
	// Group is how many chains run at once, as one batch of tensors; 0 is all of them. Memory grows with it, and so does
	// speed until the processor has enough to do. Every group starts where Batches stand, so its size changes results by
	// rounding only.
	Group int
	// Cycles takes the draws at the ends of cycles: the last point of every Thin-th cycle that ends after Warmup; nil for
	// a draw every Thin updates. It, Average and Discard are for samplers and optimisers that make one update after
	// another; methods that make their run themselves (NUTS) or draw from what they have fitted (vi) refuse them.
	Cycles *Cycles
	// Average also averages over all updates after Warmup, weighted by their step sizes: Result.Average.
	Average bool
	// Discard makes the updates of the draws and keeps no draws: for large networks, whose states observers see.
	Discard bool
	// Until ends a run after the update for which it returns true; nil for the whole run. A checkpoint remembers that it
	// did: with an Until a run that is resumed has ended, without one it goes on.
	Until func(Progress) bool

	// Native says who evaluates the gradients: compiled C where the machine has a compiler, else a virtual machine; for
	// models that cannot be compiled a replay of libtorch's operations, else eager evaluation. The run's draws say in the
	// attribute "gradient" what it was, and why. The tiers differ in the last bits, so a checkpoint is resumed in the tier
	// that made it. See package native.
	Native native.Tier

	// Observer sees the run as it goes. nil draws a line of progress on the standard error stream where that is a
	// terminal, and elsewhere logs to the Logger; [Silent] does neither.
	Observer Observer
	// Logger gets a line about the run each minute where there is no terminal and no Observer; nil for none.
	Logger *slog.Logger
	// Checkpoint makes the run one that can be killed and go on; nil for none.
	Checkpoint *Checkpoint
	// Save gets the named draws as they are made, in blocks of SaveEvery updates (default 100): draw 0 of chain c in a
	// block is draw from[c] of the run. run identifies a run with a Checkpoint by its model, data and options, and is
	// empty without one. Package store has sinks made for it, which get the notes of the run too, at its end. With a
	// Checkpoint, blocks are its intervals.
	Save      func(run string, from []int, block *draws.Draws) error
	SaveEvery int
}

// optionsName is what errors call the options: what the user wrote.
const optionsName = "infer.Options"

// resolved fills in the defaults, of the method first, and checks the fields.
func (o Options) resolved(m Method, t Transform) (Options, error) {
	def := Options{Chains: 4, Warmup: 1000, Draws: 1000, Thin: 1}
	if d, ok := m.(Defaulter); ok {
		own := d.Defaults()
		for _, f := range []struct{ own, to *int }{
			{&own.Chains, &def.Chains}, {&own.Warmup, &def.Warmup}, {&own.Draws, &def.Draws}, {&own.Thin, &def.Thin},
		} {
			if *f.own != 0 {
				*f.to = *f.own
			}
		}
	}
	if o.Start.Flat != (torch.Tensor{}) && o.Start.Batched() && o.Chains == 0 {
		o.Chains = o.Start.Chains()
	}
	for _, f := range []struct {
		name string
		v    *int
		def  int
		none bool
	}{
		{"Chains", &o.Chains, def.Chains, false}, {"Warmup", &o.Warmup, def.Warmup, true},
		{"Draws", &o.Draws, def.Draws, true}, {"Thin", &o.Thin, def.Thin, false},
		{"Group", &o.Group, max(o.Chains, def.Chains), false}, {"SaveEvery", &o.SaveEvery, 100, false},
	} {
		if *f.v == 0 {
			*f.v = f.def
		}
		switch {
		case *f.v == None && f.none:
			*f.v = 0
		case *f.v < 0 && f.none:
			return o, &FieldError{Type: optionsName, Field: f.name, Value: *f.v,
				Allowed: "it must be at least 1, 0 for the default, or infer.None"}
		case *f.v < 1:
			return o, &FieldError{Type: optionsName, Field: f.name, Value: *f.v,
				Allowed: "it must be at least 1, or 0 for the default"}
		}
	}
	if err := o.Native.Check(); err != nil {
		return o, &FieldError{Type: optionsName, Field: "Native", Value: fmt.Sprintf("%q", o.Native),
			Allowed: `it must be native.Auto, Require, C, VM or Eager`}
	}
	o.Group = min(o.Group, o.Chains)
	if o.Chains > maxChains {
		return o, &FieldError{Type: optionsName, Field: "Chains", Value: o.Chains,
			Allowed: fmt.Sprintf("it must be at most %d", maxChains)}
	}
	if float64(o.Warmup)+float64(o.Draws)*float64(o.Thin) > maxUpdates {
		return o, &FieldError{Type: optionsName, Field: "Draws", Value: o.Draws,
			Allowed: fmt.Sprintf("with Warmup %d and Thin %d a run must have at most 2^53 updates", o.Warmup, o.Thin)}
	}
	_, passes := t.(Passer)
	_, sampler := t.(Sampler)
	if o.Warmup == 0 && o.Draws == 0 && !passes && !sampler {
		return o, &FieldError{Type: optionsName, Field: "Draws", Value: "None",
			Allowed: "with Warmup None there is nothing to do"}
	}
	if o.Cycles != nil {
		if err := o.Cycles.Check(); err != nil {
			return o, err
		}
	}
	if err := o.checkUsed(nameOf(t), t); err != nil {
		return o, err
	}
	if o.Average && o.Until != nil && o.Group < o.Chains {
		return o, &FieldError{Type: optionsName, Field: "Until", Value: "given",
			Allowed: "it must be nil when Average is set and Group " +
				"is less than Chains: groups that end at different times have averages of different weights"}
	}
	if c := o.Checkpoint; c != nil && c.Every < 0 {
		return o, &FieldError{Type: "infer.Checkpoint", Field: "Every", Value: c.Every, Allowed: "it must be at least 0"}
	}
	return o, nil
}

// checkUsed refuses options that a method cannot follow: they are for transitions that the run makes one by one.
func (o Options) checkUsed(name string, t Transform) error {
	why := ""
	if _, ok := t.(Driver); ok {
		if why = " makes its run itself"; o.Draws == 0 {
			return &FieldError{Type: optionsName, Field: "Draws", Value: "infer.None",
				Allowed: "it must be at least 1, or 0 for the default: " + name + why}
		}
	} else if _, ok := t.(Sampler); ok {
		why = " draws from what it has fitted"
	}
	if why == "" {
		return nil
	}
	for _, f := range []struct {
		field string
		given bool
		leave string
	}{
		{"Cycles", o.Cycles != nil, "nil"}, {"Average", o.Average, "false, and take the mean of the draws"},
		{"Discard", o.Discard, "false"},
	} {
		if f.given {
			return &FieldError{Type: optionsName, Field: f.field, Value: "given",
				Allowed: fmt.Sprintf("%s%s: leave it %s", name, why, f.leave)}
		}
	}
	return nil
}

const (
	maxChains  = 1 << 20 // streams, files and rows of draws are made for each
	maxUpdates = 1 << 53 // counted exactly, also as floating-point numbers
)

// updates is the length of a run of draws, and when its draws are taken.
func (o Options) updates() int {
	if o.Cycles == nil || o.Draws == 0 {
		return o.Warmup + o.Draws*o.Thin
	}
	c, warm := *o.Cycles, o.Warmup
	return c.From + c.Length*(c.Done(warm)+o.Draws*o.Thin)
}

// draws says whether there is a draw after a number of updates.
func (o Options) draws(updates int) bool {
	warm, thin := o.Warmup, o.Thin
	if updates <= warm || o.Draws == 0 || o.Discard {
		return false
	}
	if o.Cycles == nil {
		return (updates-warm)%thin == 0
	}
	return o.Cycles.Ends(updates) && (o.Cycles.Done(updates)-o.Cycles.Done(warm))%thin == 0
}

var nan = math.NaN()
