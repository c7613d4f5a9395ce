package hmc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc/kernel"
)

// Sample draws from the posterior of a program and returns named values, chains x draws. When the run is cancelled or
// fails, the draws that there are come back with the error. The same options give the same draws, bit for bit.
func Sample(ctx context.Context, program Program, options Options) (*draws.Draws, error) {
	r, err := Run(ctx, program, options)
	if r == nil {
		return nil, err
	}
	return r.Draws, err
}

// Result is what a run made.
type Result struct {
	Draws         *draws.Draws // named values, as the program's Draws makes them; nil while there are none
	Unconstrained *draws.Draws // the same draws on unconstrained space
	Metrics       []kernel.MetricState
	StepSizes     []float64 // of each chain, at the end
	Gradients     int64     // evaluated in all, with the warm-up
	Batches       kernel.BatchStats
}

// Run is [Sample] with all that the run tells. The result is nil only if nothing was run.
func Run(ctx context.Context, program Program, options Options) (*Result, error) {
	r, err := prepare(program, options)
	if err != nil {
		return nil, err
	}
	return r.run(ctx)
}

// run is a run that is ready to start.
type run struct {
	program  Program
	options  Options
	batch    infer.Batch
	layout   *infer.Layout
	density  kernel.Density
	settings kernel.Options
	rows     [][]float64 // of each chain: draws, each a point and its statistics
	progress Progress
	began    time.Time
	ladder   []float64 // of Exchange
	every    int
	swaps    *kernel.SwapStats
	each     func(chain, draw int, x []float64, info kernel.Info) // of Stream
}

func prepare(program Program, o Options) (*run, error) {
	if program == nil {
		return nil, fmt.Errorf("hmc.Sample: the program is nil: %w", infer.ErrConfig)
	}
	if o.Chains == 0 {
		o.Chains = 4
	}
	r := &run{program: program, options: o, batch: o.Batch, layout: program.Layout()}
	if r.batch == nil {
		r.batch = program.Batch()
	}
	var err error
	if r.density, err = NewDensity(program.LogPosterior(), r.layout, r.batch, o.Device); err != nil {
		return nil, err
	}
	r.settings = kernel.Options{
		Chains: o.Chains, Warmup: o.Warmup, Draws: o.Draws, Thin: o.Thin, Seed: o.Seed, Kernel: o.Kernel, Metric: o.Metric,
		InitialMetric: o.InitialMetric, StepSize: o.StepSize, Adapt: o.Adapt, Temperature: o.Temperature, Observer: r.observe,
	}
	if o.Chains < 1 {
		return nil, &infer.FieldError{Type: "hmc.Options", Field: "Chains", Value: o.Chains, Allowed: "it must be at least 1, or 0 for the default of 4"}
	}
	r.rows = make([][]float64, o.Chains)
	r.progress = Progress{Chains: o.Chains, Warming: o.Chains}
	r.progress.Total, r.progress.Wanted = r.lengths()
	return r, nil
}

// lengths are the transitions that the observer will see, and the draws, of all chains.
func (r *run) lengths() (total, wanted int64) {
	def := func(v, def int) int64 {
		switch {
		case v == 0:
			return int64(def)
		case v < 0: // kernel.None
			return 0
		}
		return int64(v)
	}
	k := int64(r.options.Chains)
	wanted = k * def(r.options.Draws, 1000)
	return wanted + k*def(r.options.Warmup, 1000), wanted
}

// start finds where the chains start.
func (r *run) start() error {
	p := r.options.Init
	if p.Flat == nil {
		var err error
		if p, err = r.program.Start(r.batch, r.options.Chains, r.options.Seed); err != nil {
			return err
		}
		if p.Flat == nil {
			return nil
		}
	}
	if !p.Layout.Equal(r.layout) {
		return &infer.FieldError{Type: "hmc.Options", Field: "Init", Value: p.Layout, Allowed: fmt.Sprintf("its layout must be the program's, %v", r.layout)}
	}
	x, err := p.Values()
	if err != nil {
		return err
	}
	d, k := r.layout.Dim(), r.options.Chains
	if p.Chains() != k && p.Chains() != 1 {
		return &infer.FieldError{Type: "hmc.Options", Field: "Init", Value: fmt.Sprintf("of %d chains", p.Chains()), Allowed: fmt.Sprintf("it must have one point, or one for each of %d", k)}
	}
	for c := range k {
		from := 0
		if p.Chains() == k {
			from = c * d
		}
		r.settings.Init = append(r.settings.Init, x[from:from+d])
	}
	return nil
}

func (r *run) run(ctx context.Context) (*Result, error) {
	var snapshot *kernel.Snapshot
	var checkpoint *saver
	var save *saving
	r.settings.CheckpointEvery = r.options.SaveEvery
	if r.options.Checkpoint != nil {
		var err error
		if checkpoint, err = r.options.Checkpoint.open(r); err != nil {
			return nil, err
		}
		defer checkpoint.close()
		snapshot, r.settings.CheckpointEvery = checkpoint.snapshot, r.options.Checkpoint.every()
	}
	if r.options.Save != nil {
		save = newSaving(r)
	}
	if save != nil || checkpoint != nil {
		r.settings.Checkpoint = r.hook(save, checkpoint)
	}
	var result *kernel.Result
	var err error
	r.began = time.Now()
	if snapshot == nil {
		if err := guard("model", r.start); err != nil {
			return nil, failed(err)
		}
	}
	switch {
	case r.ladder != nil:
		result, err = r.exchange(ctx, snapshot)
	case snapshot != nil:
		result, err = kernel.Resume(ctx, r.density, r.settings, snapshot)
	default:
		result, err = kernel.Run(ctx, r.density, r.settings)
	}
	if result == nil {
		return nil, failed(err)
	}
	out := &Result{}
	after := guard("model", func() error { return r.collect(result, out) })
	if save != nil {
		after = errors.Join(after, guard("Save", save.save))
	}
	if err = errors.Join(err, after); err != nil {
		return out, failed(err)
	}
	return out, nil
}

// observe keeps a draw, and shows the run to the observer.
func (r *run) observe(chain, draw int, x []float64, info kernel.Info) {
	p := &r.progress
	p.Done++
	p.Gradients += int64(info.Leapfrogs)
	if !info.Warmup {
		if len(r.rows[chain]) == 0 {
			p.Warming--
		}
		r.rows[chain] = append(append(r.rows[chain], x...), statistics(info)...)
		p.Draws++
		if info.Divergent {
			p.Divergences++
		}
	}
	if r.each != nil {
		r.each(chain, draw, x, info)
	}
	if r.options.Observe != nil {
		p.Chain, p.Info, p.StepSize, p.Elapsed = chain, info, info.StepSize, time.Since(r.began)
		r.options.Observe(*p)
	}
}

// collect makes draws of what was kept.
func (r *run) collect(k *kernel.Result, out *Result) error {
	out.Batches = k.Batches
	for _, c := range k.Chains {
		out.Metrics = append(out.Metrics, c.Metric)
		out.Gradients += c.Gradients
	}
	for _, c := range k.Snapshot.Chains {
		out.StepSizes = append(out.StepSizes, c.StepSize)
	}
	var err error
	if out.Unconstrained, err = r.unconstrained(r.rows); err != nil {
		return err
	}
	if out.Unconstrained.Total() > 0 {
		out.Draws, err = r.program.Draws(out.Unconstrained, r.batch)
	}
	return err
}

// unconstrained makes draws of rows.
func (r *run) unconstrained(all [][]float64) (*draws.Draws, error) {
	var sites []draws.Site
	for _, s := range r.layout.Sites {
		sites = append(sites, draws.Site(s))
	}
	d, err := draws.New(sites, statNames, len(all))
	if err != nil {
		return nil, err
	}
	dim, width := r.layout.Dim(), r.layout.Dim()+len(statNames)
	for chain, rows := range all {
		for i := 0; i < len(rows); i += width {
			if err := d.AppendChain(chain, rows[i:i+dim], rows[i+dim:i+width]); err != nil {
				return nil, err
			}
		}
	}
	return d, nil
}
