package main

import (
	"context"
	"time"

	"github.com/kelvin-ppl/kelvin/examples/internal/pima"
	"github.com/kelvin-ppl/kelvin/infer"
)

// block is how many chains of the parallel row are one point: enough that the processor is busy, and few
// enough for its cache.
const block = 250

// parallel runs many chains and keeps the last state of each. The spread of the row is that of ensembles chosen from
// them, as in the table. Every chain has batches of its own: see [copies].
func (t *task) parallel(ctx context.Context, r tableRow) (runs, error) {
	var out runs
	// The time of a chain is that of a chain alone, after one that is not timed.
	for i := range t.ensembles + 1 {
		began := time.Now()
		if _, err := t.block(ctx, r, 1, uint64(t.chains+i)); err != nil {
			return out, err
		}
		if i > 0 {
			out.seconds = append(out.seconds, time.Since(began).Seconds())
		}
	}
	var last []float64
	began := time.Now()
	for from := 0; from < t.chains; from += block {
		w, err := t.block(ctx, r, min(block, t.chains-from), uint64(from))
		if err != nil {
			return out, err
		}
		last = append(last, w...)
	}
	out.whole = time.Since(began).Seconds()
	ensembles, err := infer.Bootstrap(t.chains, t.draws, t.ensembles, 1)
	if err != nil {
		return out, err
	}
	for _, chains := range ensembles {
		out.draws = append(out.draws, rowsOf(last, chains))
	}
	return out, nil
}

// block runs independent chains as one point and returns where they end, a row of 8 weights for each. Its number is
// that of its random streams, for the noise and for the batches.
func (t *task) block(ctx context.Context, r tableRow, chains int, number uint64) ([]float64, error) {
	layout, err := infer.NewLayout(infer.Shapes{"w": {chains, pima.Features}})
	if err != nil {
		return nil, err
	}
	method, err := sghmc(layout.Dim())
	if err != nil {
		return nil, err
	}
	start, err := infer.Zeros(layout)
	if err != nil {
		return nil, err
	}
	batches, err := newResampled(infer.Batch{"x": t.data["x"], "y": t.data["y"]}, r.batch, chains, 1, number)
	if err != nil {
		return nil, err
	}
	// The density is that of all chains, each with the mean over its own batch.
	program := infer.Handwritten(infer.Mean(copies, pima.Patients), start, nil)
	result, err := infer.Run(ctx, program, method, infer.Options{Chains: 1, Warmup: t.chainUpdates, Draws: infer.None,
		Batches: batches, Seed: 1, FirstChain: number})
	if err != nil {
		return nil, err
	}
	infer.Free(result.State)
	return result.Last.Values()
}

// shared is the parallel row with the same batches for all chains of a run, as a run has them: some runs with batches
// of different seeds. The noise of the batches then moves all chains of a run together, which no choice of ensembles
// from them shows, but the spread of the runs does.
func (t *task) shared(ctx context.Context, r tableRow) (runs, error) {
	var out runs
	method, err := sghmc(pima.Features)
	if err != nil {
		return out, err
	}
	for seed := range uint64(t.sharedRuns) {
		o := infer.Options{Chains: t.sharedOne, Warmup: t.chainUpdates, Draws: infer.None, Seed: seed + 1}
		if o.Start, err = infer.Zeros(t.program.Layout()); err != nil {
			return out, err
		}
		if o.Batches, err = t.batches(r, seed+1); err != nil {
			return out, err
		}
		result, err := infer.Run(ctx, t.program, method, o)
		if err != nil {
			return out, err
		}
		infer.Free(result.State)
		w, err := result.Last.Values()
		if err != nil {
			return out, err
		}
		out.draws = append(out.draws, w)
	}
	return out, nil
}

// rowsOf chooses rows of 8 numbers.
func rowsOf(w []float64, rows []int) []float64 {
	out := make([]float64, 0, len(rows)*pima.Features)
	for _, i := range rows {
		out = append(out, w[i*pima.Features:(i+1)*pima.Features]...)
	}
	return out
}
