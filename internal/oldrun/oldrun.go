// Package oldrun runs a transform that is built already through the one door, in the terms of updates: for tests that
// look at single updates.
package oldrun

import (
	"context"
	"errors"
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer"
)

// Config says how a run goes.
type Config struct {
	Steps, BurnIn, Thin int64
	Chains, Group       int
	Seed, FirstChain    uint64
	Cycles              *infer.Cycles
	Average             bool
	NoDraws, LastOnly   bool
	Until               func(infer.Progress) bool
	Observer            infer.Observer
	Checkpoint          *infer.Checkpoint
}

// method is a transform as a method.
type method struct{ t infer.Transform }

func (m method) Build(infer.Target) (infer.Transform, error) {
	if m.t == nil {
		return nil, fmt.Errorf("the transform is nil: %w", infer.ErrConfig)
	}
	return m.t, nil
}

// Run updates a transform from p.
func Run(ctx context.Context, t infer.Transform, p infer.Params, batches infer.Batches, c Config) (*infer.Result,
	error) {
	o := infer.Options{Chains: c.Chains, Seed: c.Seed, FirstChain: c.FirstChain, Start: p, Batches: batches,
		Group: c.Group, Cycles: c.Cycles, Average: c.Average,
		Until: c.Until, Observer: c.Observer, Checkpoint: c.Checkpoint}
	if o.Observer == nil {
		o.Observer = infer.Silent
	}
	if o.Chains == 0 {
		o.Chains = p.Chains()
	}
	thin := max(c.Thin, 1)
	_, sampler := t.(infer.Sampler)
	switch {
	case sampler: // its draws are from the fit
		o.Warmup, o.Draws = int(c.Steps), infer.None
	case c.NoDraws:
		o.Warmup, o.Draws, o.Discard = int(c.BurnIn), int(c.Steps-c.BurnIn), true
		if (c.Steps-c.BurnIn)%thin == 0 {
			o.Thin, o.Draws = int(thin), o.Draws/int(thin)
		}
	case c.LastOnly:
		o.Warmup, o.Draws = int(c.Steps)-1, 1
	case c.Cycles != nil:
		o.Warmup, o.Thin = int(c.BurnIn), int(thin)
		o.Draws = int((c.Cycles.Done(c.Steps) - c.Cycles.Done(c.BurnIn)) / thin)
	default:
		o.Warmup, o.Thin, o.Draws = int(c.BurnIn), int(thin), int((c.Steps-c.BurnIn)/thin)
	}
	if o.Warmup == 0 {
		o.Warmup = infer.None
	}
	if o.Draws == 0 && !c.NoDraws {
		return nil, errors.New("there are no draws")
	}
	if o.Draws == 0 {
		o.Draws = infer.None
	}
	return infer.Run(ctx, infer.Handwritten(infer.Target{}, p, nil), method{t}, o)
}
