package hmc

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc/kernel"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
)

// State is the state of the methods: the points, and what each chain needs to go on. Updates go on from the chains' own
// record of the points; Params shows it.
type State struct {
	Params infer.Params // θ, of shape [d] or [K, d]
	Step   int          // updates so far

	chains  *kernel.Snapshot // without chains before the first update
	stepper *kernel.Stepper  // shared by all states that come of one
}

// Init starts with seed 0.
func (t *transform) Init(p infer.Params) (infer.State, error) {
	return t.InitStreams(p, torch.NewStreams(0, p.Chains()))
}

// InitStreams starts with the seed and the chains of the streams, whose numbers must follow each other.
func (t *transform) InitStreams(p infer.Params, streams torch.Streams) (infer.State, error) {
	if err := method.CheckStreams(t.name, p, streams); err != nil {
		return nil, err
	}
	chains := &kernel.Snapshot{}
	chains.Plan.Seed = streams.Seed
	if len(streams.Chains) > 0 {
		chains.Plan.FirstChain = streams.Chains[0]
	}
	for k, chain := range streams.Chains {
		if chain != chains.Plan.FirstChain+uint64(k) {
			return nil, fmt.Errorf("%s: the streams are of the chains %d: their numbers must follow each other: %w", t.name,
				streams.Chains, infer.ErrConfig)
		}
	}
	own := infer.Params{Layout: p.Layout}
	var err error
	if own.Flat, err = torch.Copy(p.Flat); err != nil {
		return nil, fmt.Errorf("%s: %w", t.name, err)
	}
	return t.state(own, 0, chains)
}

// WithWarmup is the transform whose first updates adapt, as many as are given.
func (t *transform) WithWarmup(updates int) (infer.Transform, error) {
	own := *t
	if own.warmup = updates; updates == 0 {
		own.warmup = infer.None
	}
	return &own, nil
}

// state is a state with a stepper of its own.
func (t *transform) state(p infer.Params, step int, chains *kernel.Snapshot) (infer.State, error) {
	o := t.options
	o.Chains, o.Warmup = p.Chains(), t.warmup
	o.Seed, o.FirstChain = chains.Plan.Seed, chains.Plan.FirstChain
	var err error
	if len(chains.Chains) == 0 {
		if o.Init, err = starts(p, p.Chains()); err != nil {
			return nil, fmt.Errorf("%s: %w", t.name, err)
		}
	}
	return State{Params: p, Step: step, chains: chains, stepper: &kernel.Stepper{Options: o}}, nil
}

// Update makes one transition of each chain. The points are evaluated on the batch first, so that batches may differ; a
// batch on which one is not finite moves no chain. Batches may differ, but the target is that of a batch: HMC has no
// minibatch form.
func (t *transform) Update(state infer.State, b infer.Batch) (infer.State, infer.Info, error) {
	s, err := method.StateAs[State](state, t.name)
	if err != nil {
		return nil, infer.Info{}, err
	}
	fail := func(err error) (infer.State, infer.Info, error) { return nil, infer.Info{}, t.error(err) }
	stepSize, temperature := 0.0, 1.0
	if t.options.Ladder != nil {
		temperature = 0 // those of the ladder
	}
	for _, f := range []struct {
		name     string
		schedule infer.Schedule
		value    *float64
	}{{"Temperature", t.temperature, &temperature}, {"StepSize", t.stepSize, &stepSize}} {
		if f.schedule == nil {
			continue
		}
		*f.value = f.schedule(s.Step)
		if err := method.CheckValue(t.name, fmt.Sprintf("%s at update %d", f.name, s.Step), *f.value, 0, true); err != nil {
			return nil, infer.Info{}, err
		}
	}
	var density kernel.Density
	if t.path != nil {
		density, err = t.walk(s, b)
	} else {
		density, err = t.gradients.on(s.Params, b)
	}
	if err != nil {
		return nil, infer.Info{}, fmt.Errorf("%s: %w", t.name, err)
	}
	var from *kernel.Snapshot
	if len(s.chains.Chains) > 0 {
		from = s.chains
	}
	chains, transitions, err := s.stepper.Step(density, from, stepSize, temperature)
	if err != nil {
		return fail(err)
	}
	replicas := max(1, len(t.options.Ladder))
	info := infer.Info{LR: stepSize, Temperature: temperature, Stats: map[string][]float64{}}
	if t.options.Ladder != nil {
		info.Temperature = t.options.Ladder[0]
	}
	if t.path != nil {
		info.Temperature = 1 / info.Temperature
	}
	for k := 0; k < len(transitions); k += replicas {
		i := transitions[k]
		info.LogPosterior = append(info.LogPosterior, i.StartLogP/t.gradients.n)
		info.GradNorm = append(info.GradNorm, i.StartNorm/t.gradients.n)
	}
	if chains == nil { // some point is not finite on this batch
		for k, v := range info.LogPosterior {
			info.Diverged = append(info.Diverged, math.IsNaN(v+info.GradNorm[k]) || math.IsInf(v+info.GradNorm[k], 0))
		}
		s.Step++
		if s.Params.Flat, err = torch.Copy(s.Params.Flat); err != nil {
			return nil, infer.Info{}, fmt.Errorf("%s: %w", t.name, err)
		}
		return s, info, nil
	}
	next := State{Step: s.Step + 1, chains: chains, stepper: s.stepper}
	if next.Params, err = points(s.Params, chains, replicas); err != nil {
		return nil, infer.Info{}, fmt.Errorf("%s: %w", t.name, err)
	}
	for k := 0; k < len(transitions); k += replicas {
		values := statistics(transitions[k])
		for j, name := range t.Stats() {
			if name != draws.StatLP {
				info.Stats[name] = append(info.Stats[name], values[j])
			}
		}
		info.LR = transitions[k].StepSize
	}
	return next, info, nil
}

// points are those of a snapshot, at the first temperature, as tensors like the old ones.
func points(old infer.Params, s *kernel.Snapshot, replicas int) (infer.Params, error) {
	var x []float64
	for k := 0; k < len(s.Chains); k += replicas {
		x = append(x, s.Chains[k].Point.X...)
	}
	p, err := infer.NewParams(old.Layout, x)
	if err != nil {
		return p, err
	}
	if old.Batched() && !p.Batched() {
		if p, err = p.Repeat(1); err != nil {
			return p, err
		}
	}
	device, err := torch.DeviceOf(old.Flat)
	if err != nil {
		return p, err
	}
	dtype, err := torch.DTypeOfTensor(old.Flat)
	if err != nil || device == torch.CPU && dtype == gotch.Double {
		return p, err
	}
	return p.To(device, dtype)
}

// Position are the points.
func (s State) Position() infer.Params { return s.Params }

// Steps is the number of updates so far.
func (s State) Steps() int { return s.Step }

// Tensors are what the state owns, and what it shares with others.
func (s State) Tensors() (owned, shared infer.Tensors) {
	return infer.Tensors{"params": s.Params.Flat}, nil
}

// Save names the points, and everything else that the chains need as bytes.
func (s State) Save() infer.Saved {
	if s.chains == nil { // the zero value, which no method made
		return infer.Saved{}
	}
	saved := infer.Saved{
		Steps: s.Step, Streams: torch.NewStreams(s.chains.Plan.Seed, s.Params.Chains()),
		Tensors: infer.Tensors{"params": s.Params.Flat},
	}
	for k := range saved.Streams.Chains {
		saved.Streams.Chains[k] += s.chains.Plan.FirstChain
	}
	var err error
	if saved.Extra, err = encode(s.chains); err != nil {
		panic(fmt.Sprintf("hmc: a snapshot that gob cannot hold: %v", err)) // it is plain numbers
	}
	return saved
}

// Restore makes a state of what was saved.
func (t *transform) Restore(layout *infer.Layout, saved infer.Saved) (infer.State, error) {
	flat, err := saved.Tensor("params")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.name, err)
	}
	chains, err := decode(saved.Extra)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.name, err)
	}
	return t.state(infer.Params{Layout: layout, Flat: flat}, saved.Steps, chains)
}
