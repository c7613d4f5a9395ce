package main

import (
	"context"
	"fmt"
	"time"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/examples/internal/pima"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/infer/vi"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// task is what all rows have in common: the posterior, the data and the lengths.
type task struct {
	lengths
	program *ppl.Program
	data    infer.Batch
}

func newTask(l lengths) (*task, error) {
	data, _, err := pima.Read()
	if err != nil {
		return nil, err
	}
	program, err := ppl.Compile(regression, data)
	return &task{lengths: l, program: program, data: data}, err
}

// runs are the draws of the runs of a row, each n rows of 8 weights, and how long one run took.
type runs struct {
	draws   [][]float64
	seconds []float64
	whole   float64 // of the parallel row: the time for all chains; seconds is that of one chain alone
}

// run makes a row: one run for each seed, one after the other, which are timed without what comes before and after.
func (t *task) run(ctx context.Context, r tableRow) (runs, error) {
	if r.kind == parallel {
		return t.parallel(ctx, r)
	}
	var out runs
	for seed := range uint64(t.seeds) {
		began := time.Now()
		d, err := t.sample(ctx, r, seed+1)
		if err != nil {
			return out, fmt.Errorf("seed %d: %w", seed+1, err)
		}
		out.seconds = append(out.seconds, time.Since(began).Seconds())
		var w []float64
		for i := range d.Len(0) {
			w = append(w, d.Row(0, i)...)
		}
		out.draws = append(out.draws, w)
	}
	return out, nil
}

// sample is one chain: NUTS with Stan's adaptation, SGHMC, or draws from a normal
// distribution with independent elements.
func (t *task) sample(ctx context.Context, r tableRow, seed uint64) (*draws.Draws, error) {
	var method infer.Method
	o := infer.Options{Chains: 1, Draws: t.draws, Seed: seed}
	var err error
	switch r.kind {
	case nuts:
		method, o.Warmup = hmc.NUTS{}, t.nutsWarmup
		return infer.Sample(ctx, t.program, method, o)
	case variational:
		method = vi.Diag{Optimizer: optim.Adam{LR: infer.Constant(adamRate)}, Samples: 1, InitScale: 1}
		o.Warmup = t.viUpdates
	default:
		o.Warmup, o.Thin = t.warmup, t.thin
		method, err = sghmc(pima.Features)
	}
	if err == nil {
		o.Start, err = infer.Zeros(t.program.Layout())
	}
	if err == nil {
		o.Batches, err = t.batches(r, seed)
	}
	if err != nil {
		return nil, err
	}
	return infer.Sample(ctx, t.program, method, o)
}

// batches are all data, or batches chosen with replacement.
func (t *task) batches(r tableRow, seed uint64) (infer.Batches, error) {
	if r.batch == 0 {
		return nil, nil
	}
	return newResampled(t.data, r.batch, 0, seed, 0)
}

// sghmc is the method of the SGHMC rows, for points of a shape.
func sghmc(shape ...int) (infer.Method, error) {
	return sgmcmc.SGHMC{LR: infer.Constant(sghmcStep), Alpha: infer.Constant(sghmcFriction), Sigma: 1,
		Momenta: torch.Zeros(shape...)}, nil
}
