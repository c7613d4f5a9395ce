package hmc

import (
	"context"
	"errors"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc/kernel"
)

// ExchangeOptions configure [Exchange].
type ExchangeOptions struct {
	Options // Chains and Temperature are not used
	// Ladder are the temperatures, rising, the one of interest first; see kernel.GeometricLadder.
	Ladder []float64
	Every  int // transitions between swaps; default 10
}

// ExchangeResult is a [Result] with the statistics of the swaps. Its Draws are those at the lowest temperature, one chain; Tempered and
// Unconstrained have a chain for each temperature.
type ExchangeResult struct {
	*Result
	Tempered *draws.Draws
	Swaps    kernel.SwapStats
}

// Exchange samples a posterior with several modes by replica exchange: one chain at each temperature of a ladder, all of them one
// batch, whose neighbours swap their points now and then (see kernel.Exchange).
func Exchange(ctx context.Context, program Program, options ExchangeOptions) (*ExchangeResult, error) {
	if len(options.Ladder) < 2 {
		return nil, &infer.FieldError{Type: "hmc.ExchangeOptions", Field: "Ladder", Value: options.Ladder, Allowed: "it must have at least two temperatures"}
	}
	options.Chains = len(options.Ladder)
	r, err := prepare(program, options.Options)
	if err != nil {
		return nil, err
	}
	r.ladder, r.every, r.settings.Temperature = options.Ladder, options.Every, 0
	result, err := r.run(ctx)
	if result == nil {
		return nil, err
	}
	out := &ExchangeResult{Result: result, Tempered: result.Draws}
	if result.Draws != nil {
		var failed error
		result.Draws, failed = result.Draws.Chain(0)
		err = errors.Join(err, failed)
	}
	if r.swaps != nil {
		out.Swaps = *r.swaps
	}
	return out, err
}

func (r *run) exchange(ctx context.Context, snapshot *kernel.Snapshot) (*kernel.Result, error) {
	o := kernel.ExchangeOptions{Options: r.settings, Ladder: r.ladder, Every: r.every}
	var result *kernel.ExchangeResult
	var err error
	if snapshot != nil {
		result, err = kernel.ResumeExchange(ctx, r.density, o, snapshot)
	} else {
		result, err = kernel.Exchange(ctx, r.density, o)
	}
	if result == nil {
		return nil, err
	}
	r.swaps = &result.Swaps
	return result.Result, err
}
