package hmc

import (
	"bytes"
	"context"
	"encoding/gob"
	"fmt"
	"slices"
	"strconv"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc/kernel"
)

var _ interface {
	infer.Transform
	infer.Driver
	infer.Seeded
	infer.Restorer
	infer.Noter
} = (*transform)(nil)

// transform is a method bound to a target.
type transform struct {
	config
	gradients *gradients
	base      infer.Target // as the method was given it
}

// Name is the method's.
func (t *transform) Name() string { return t.name }

// Attrs are what draws say of the run: the target of the acceptance, where the user set one, and that the user set the
// step size.
func (t *transform) Attrs() map[string]string {
	attrs := map[string]string{}
	if t.options.TargetAccept != 0 {
		attrs["target_accept"] = strconv.FormatFloat(t.options.TargetAccept, 'g', -1, 64)
	}
	if t.stepSize != nil {
		attrs["step_size"] = "given"
	}
	return attrs
}

// statNames are the statistics of a draw. At a temperature T other than 1 "lp" is N·LogPosterior + T·LogJacobian, T
// times the log density that is sampled.
var statNames = []string{
	draws.StatLP, draws.StatAccept, draws.StatStepSize, draws.StatTreeDepth, draws.StatLeapfrog, draws.StatDivergent,
	draws.StatEnergy, draws.StatMaxDepth,
}

// exchangeNames are those of replica exchange.
var exchangeNames = append(slices.Clone(statNames), "replica", "round_trips")

func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// statistics of a draw, in the order of exchangeNames.
func statistics(i kernel.Info) [10]float64 {
	return [...]float64{
		i.LogP, i.Accept, i.StepSize, float64(i.Depth), float64(i.Leapfrogs), flag(i.Divergent), i.Energy, flag(i.MaxDepth),
		float64(i.Replica), float64(i.RoundTrips),
	}
}

// Stats are the names of the statistics of a draw.
func (t *transform) Stats() []string {
	if t.options.Ladder != nil {
		return exchangeNames
	}
	if _, ok := t.options.Kernel.(kernel.Microcanonical); ok {
		return statNames[:6] // it has no kinetic energy that is drawn anew, and no trees
	}
	return statNames
}

// Drive makes a whole run: the chains run freely, and what gradients they want is evaluated as one batch. The detail
// is a *[Detail].
func (t *transform) Drive(ctx context.Context, job infer.Job) (any, error) {
	density, err := t.density(job)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.name, err)
	}
	return t.drive(ctx, job, density)
}

// drive makes the run on a density.
func (t *transform) drive(ctx context.Context, job infer.Job, density kernel.Density) (any, error) {
	var err error
	o := t.options
	o.Chains, o.Warmup, o.Draws, o.Thin = job.Chains, job.Warmup, job.Draws, job.Thin
	o.Seed, o.FirstChain = job.Seed, job.FirstChain
	if job.Warmup == 0 {
		o.Warmup = kernel.None
	}
	if job.Draws < 1 {
		return nil, &infer.FieldError{Type: "infer.Options", Field: "Draws", Value: job.Draws,
			Allowed: "it must be at least 1"}
	}
	if t.stepSize != nil || t.temperature != nil {
		o.Schedule = func(i int) (eps, temperature float64) { return value(t.stepSize, i), value(t.temperature, i) }
	}
	if o.Init, err = starts(job.Start, job.Chains); err != nil {
		return nil, fmt.Errorf("%s: %w", t.name, err)
	}
	if on, ok := density.(along); ok && job.Resume == nil {
		if o.Init, err = t.spread(on.Evaluator, job.Seed, job.FirstChain, o.Init); err != nil {
			return nil, fmt.Errorf("%s: %w", t.name, err)
		}
	}
	if job.Resume != nil {
		if o.Resume, err = decode(job.Resume); err != nil {
			return nil, fmt.Errorf("%s: %w", t.name, err)
		}
	}
	if job.Snapshot != nil && job.Every > 0 {
		o.CheckpointEvery = job.Every
		o.Checkpoint = func(s *kernel.Snapshot) error {
			if job.Due != nil && !job.Due() {
				return nil
			}
			b, err := encode(s)
			if err != nil {
				return err
			}
			return job.Snapshot(b)
		}
	}
	replicas := max(1, len(o.Ladder))
	hot := make([]int, job.Chains) // gradients of the replicas at higher temperatures
	named := len(t.Stats())
	var stats [10]float64 // of one call; they come one at a time
	o.Record = func(chain, _ int, x []float64, info kernel.Info) error {
		own := chain / replicas
		if chain%replicas != 0 {
			hot[own] += info.Gradients
			return nil
		}
		stats = statistics(info)
		made := infer.Transition{
			Chain: own, Warmup: info.Warmup, X: x, Stats: stats[:named], Gradients: info.Gradients + hot[own],
			Divergent: info.Divergent, StepSize: info.StepSize,
		}
		hot[own] = 0
		return job.Record(made)
	}
	result, err := kernel.Run(ctx, density, o)
	if result == nil {
		return nil, t.error(err)
	}
	if failed := name(result.Hot, job.Layout); err == nil {
		err = failed
	}
	if on, ok := density.(along); ok && err == nil && on.Linear() && o.Ladder[len(o.Ladder)-1] == 0 {
		z, failed := on.LogZ0()
		result.LogZ0, err = &z, failed
	}
	return result, t.error(err)
}

// name gives the draws of hot rungs, which have one site for all, those of the layout.
func name(hot []*draws.Draws, l *infer.Layout) error {
	for i, all := range hot {
		d, err := draws.New(l.Sites, nil, all.Chains())
		if err != nil {
			return err
		}
		for chain := range all.Chains() {
			for j := range all.Len(chain) {
				if err := d.AppendChain(chain, all.Row(chain, j), nil); err != nil {
					return err
				}
			}
		}
		hot[i] = d
	}
	return nil
}

// density is the target on the job's batch, as native code where the run has it.
func (t *transform) density(job infer.Job) (kernel.Density, error) {
	if t.path != nil {
		return t.bound(job)
	}
	f, err := job.Compile(t.gradients.target)
	switch {
	case err != nil:
		return nil, err
	case f == nil:
		return t.gradients.on(job.Start, job.Batch)
	case t.gradients.jacobian != nil:
		return compiledTempered{compiled{f, t.gradients.scale}}, nil
	}
	return compiled{f, t.gradients.scale}, nil
}

// value is a schedule's, 0 without one.
func value(s infer.Schedule, i int) float64 {
	if s == nil {
		return 0
	}
	if v := s(i); v != 0 {
		return v
	}
	return -1 // which the kernel refuses
}

// starts are the points of the chains. One row is for all.
func starts(p infer.Params, chains int) ([][]float64, error) {
	x, err := p.Values()
	if err != nil {
		return nil, err
	}
	d := p.Layout.Dim()
	if len(x) != d && len(x) != chains*d {
		return nil, fmt.Errorf("the start has %d chains of %d: %w", p.Chains(), chains, infer.ErrConfig)
	}
	var out [][]float64
	for k := range chains {
		from := k * d % len(x)
		out = append(out, x[from:from+d:from+d])
	}
	return out, nil
}

// encode and decode carry a snapshot as bytes.
func encode(s *kernel.Snapshot) ([]byte, error) {
	var b bytes.Buffer
	err := gob.NewEncoder(&b).Encode(s)
	return b.Bytes(), err
}

func decode(b []byte) (*kernel.Snapshot, error) {
	s := &kernel.Snapshot{}
	if err := gob.NewDecoder(bytes.NewReader(b)).Decode(s); err != nil {
		return nil, fmt.Errorf("the chains cannot be read: %v: %w", err, infer.ErrCheckpoint)
	}
	return s, nil
}
