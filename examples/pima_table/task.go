package main

import (
	"context"
	"fmt"
	"time"

	"github.com/kelvin-ppl/kelvin/examples/internal/pima"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/infer/vi"
	"github.com/kelvin-ppl/kelvin/internal/oldrun"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
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
	whole   float64 // of the parallel row: the time for all chains, of which seconds is that of one chain alone
}

// run makes a row: one run for each seed, one after the other, which are timed without what comes before and after.
func (t *task) run(ctx context.Context, r tableRow, o infer.Observer) (runs, error) {
	if r.kind == parallel {
		return t.parallel(ctx, r, o)
	}
	one := map[kind]func(context.Context, tableRow, uint64, infer.Observer) ([]float64, error){nuts: t.nuts, variational: t.variational, serial: t.serial}[r.kind]
	var out runs
	for seed := range uint64(t.seeds) {
		began := time.Now()
		w, err := one(ctx, r, seed+1, o)
		if err != nil {
			return out, fmt.Errorf("seed %d: %w", seed+1, err)
		}
		out.seconds = append(out.seconds, time.Since(began).Seconds())
		out.draws = append(out.draws, w)
	}
	return out, nil
}

// nuts is one chain of NUTS with Stan's adaptation.
func (t *task) nuts(ctx context.Context, _ tableRow, seed uint64, _ infer.Observer) ([]float64, error) {
	d, err := infer.Sample(ctx, t.program, hmc.NUTS{},
		infer.Options{Chains: 1, Warmup: t.nutsWarmup, Draws: t.draws, Seed: seed, Observer: infer.Silent})
	if err != nil {
		return nil, err
	}
	var w []float64
	for i := range d.Len(0) {
		w = append(w, d.Row(0, i)...)
	}
	return w, nil
}

// batches are all data, or batches chosen with replacement.
func (t *task) batches(r tableRow, seed uint64) (infer.Batches, error) {
	if r.batch == 0 {
		return infer.Full(t.data), nil
	}
	return newResampled(t.data, r.batch, 0, seed, 0)
}

// sghmc is the method of the SGHMC rows, for points of a shape.
func sghmc(shape ...int64) (infer.Method, error) {
	rest, err := ts.Zeros(shape, gotch.Double, torch.CPU)
	return sgmcmc.SGHMC{LR: infer.Constant(sghmcStep), Alpha: infer.Constant(sghmcFriction), Sigma: 1,
		Temperature: infer.Constant(temperature), Momenta: rest}, err
}

// serial is one chain of SGHMC.
func (t *task) serial(ctx context.Context, r tableRow, seed uint64, o infer.Observer) ([]float64, error) {
	method, err := sghmc(pima.Features)
	if err != nil {
		return nil, err
	}
	transform, start, batches, err := t.prepare(method, r, seed)
	if err != nil {
		return nil, err
	}
	result, err := oldrun.Run(ctx, transform, start, batches, oldrun.Config{Steps: t.warmup + int64(t.draws)*t.thin, BurnIn: t.warmup, Thin: t.thin,
		Seed: seed, Observer: o})
	if err != nil {
		return nil, err
	}
	infer.Free(result.State)
	var w []float64
	for i := range result.Draws.Len(0) {
		w = append(w, result.Draws.Row(0, i)...)
	}
	return w, nil
}

// variational fits a normal distribution with independent elements, and draws from it.
func (t *task) variational(ctx context.Context, r tableRow, seed uint64, o infer.Observer) ([]float64, error) {
	method := vi.Diag{Optimizer: optim.Adam{LR: infer.Constant(adamRate)}, Samples: 1, InitScale: 1,
		Temperature: infer.Constant(temperature)}
	transform, start, batches, err := t.prepare(method, r, seed)
	if err != nil {
		return nil, err
	}
	result, err := oldrun.Run(ctx, transform, start, batches, oldrun.Config{Steps: t.viUpdates, NoDraws: true, Seed: seed, Observer: o})
	if err != nil {
		return nil, err
	}
	defer infer.Free(result.State)
	streams := torch.NewStreams(seed, 2) // the fit has read stream 0
	streams.Chains = streams.Chains[1:]
	p, err := transform.(infer.Sampler).Sample(result.State, t.draws, &streams)
	if err != nil {
		return nil, err
	}
	return p.Values()
}

// prepare builds a method, and gives the point 0 and the batches to start with.
func (t *task) prepare(method infer.Method, r tableRow, seed uint64) (infer.Transform, infer.Params, infer.Batches, error) {
	transform, err := method.Build(infer.Sum(t.program.MeanLogPosterior(), 1))
	if err != nil {
		return nil, infer.Params{}, nil, err
	}
	start, err := infer.Zeros(t.program.Layout())
	if err != nil {
		return nil, start, nil, err
	}
	batches, err := t.batches(r, seed)
	return transform, start, batches, err
}
