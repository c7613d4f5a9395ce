package hmc

import (
	"context"
	"iter"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc/kernel"
)

// Draw is one draw as [Stream] hands it out, or one transition of the warm-up.
type Draw struct {
	Chain, Index int       // from 0; draws of the warm-up count by themselves
	Warmup       bool      // not a draw from the posterior
	X            []float64 // on unconstrained space
	Info         kernel.Info
}

// Params is the draw as a point, which the program's Constrain takes.
func (d Draw) Params(layout *infer.Layout) (infer.Params, error) { return infer.NewParams(layout, d.X) }

// Stream is [Sample] as an iterator: draws as they come, those of one chain in order. The run goes on while a draw is being used,
// by at most a few draws. Leaving the loop ends the run. An error comes last, with a Draw that is zero.
func Stream(ctx context.Context, program Program, options Options) iter.Seq2[Draw, error] {
	return func(yield func(Draw, error) bool) {
		r, err := prepare(program, options)
		if err != nil {
			yield(Draw{}, err)
			return
		}
		if options.Checkpoint != nil {
			yield(Draw{}, &infer.FieldError{Type: "hmc.Options", Field: "Checkpoint", Value: "set", Allowed: "a stream cannot go on: draws under way would be lost; use Sample with Save"})
			return
		}
		ctx, cancel := context.WithCancel(ctx)
		found, done := make(chan Draw, 16), make(chan error, 1)
		r.each = func(chain, draw int, x []float64, info kernel.Info) {
			d := Draw{Chain: chain, Index: draw, Warmup: info.Warmup, X: append([]float64(nil), x...), Info: info}
			select {
			case found <- d:
			case <-ctx.Done():
			}
		}
		go func() {
			err := guard("run", func() error { _, err := r.run(ctx); return err })
			close(found)
			done <- err
		}()
		left := false
		defer func() {
			cancel()
			for range found { // until the run has ended
			}
		}()
		for d := range found {
			if !yield(d, nil) {
				left = true
				return
			}
		}
		if err := <-done; err != nil && !left {
			yield(Draw{}, err)
		}
	}
}
