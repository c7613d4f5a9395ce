package hmc

import (
	"bytes"
	"context"
	"encoding/gob"
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc/kernel"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
)

// NUTS is the no-U-turn sampler as an infer.Method: one update is one transition of each chain. See kernel.NUTS for the
// equations.
type NUTS struct {
	kernel.NUTS
	Adaptation
}

// HMC is Hamiltonian Monte Carlo as an infer.Method: one update is one trajectory of each chain. See kernel.HMC.
type HMC struct {
	kernel.HMC
	Adaptation
}

// Adaptation is what the methods have in common. The zero value adapts as Stan does, in the first 1000 updates, which a run should throw away
// (infer.Options.Warmup).
type Adaptation struct {
	// StepSize is ε at each update; nil adapts it.
	StepSize infer.Schedule
	// Temperature is T at each update: the target is the density to the power 1/T. Nil is 1. It must be positive.
	Temperature infer.Schedule
	Warmup      int                 // updates that adapt; default 1000; kernel.None for none
	Metric      kernel.MetricKind   // form of the mass matrix; default kernel.Diagonal
	Initial     *kernel.MetricState // what the metric starts from; default the identity
	Adapt       kernel.Adapt        // the rules
}

// State is the state of [NUTS] and of [HMC]: the points, and what each chain needs to go on. Updates go on from the chains' own record
// of the points; Params shows it.
type State struct {
	Params infer.Params // θ, of shape [d] or [K, d]
	Step   int64        // updates so far
	chains *kernel.Snapshot
}

// Build checks the configuration and binds it to a log posterior.
func (c NUTS) Build(target infer.Target) (infer.Transform, error) {
	return build("hmc.NUTS", c.NUTS, c.Adaptation, target.LogPosterior)
}

// Build checks the configuration and binds it to a log posterior.
func (c HMC) Build(target infer.Target) (infer.Transform, error) {
	return build("hmc.HMC", c.HMC, c.Adaptation, target.LogPosterior)
}

func build(name string, k kernel.Kernel, a Adaptation, logPosterior infer.LogPosterior) (infer.Transform, error) {
	if logPosterior == nil {
		return nil, fmt.Errorf("%s: the log posterior is nil: %w", name, infer.ErrConfig)
	}
	if a.StepSize != nil {
		a.Adapt.KeepStep = true
		if a.Warmup == 0 && a.Metric == "" {
			a.Warmup = kernel.None
		}
	}
	if _, err := k.Build(1); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	var err error
	if a.Temperature, err = method.CheckSchedule(name, "Temperature", a.Temperature, infer.Constant(1), 0, true); err != nil {
		return nil, err
	}
	if a.StepSize != nil {
		if a.StepSize, err = method.CheckSchedule(name, "StepSize", a.StepSize, nil, 0, true); err != nil {
			return nil, err
		}
	}
	return &transform{Adaptation: a, name: name, kernel: k, logPosterior: logPosterior}, nil
}

type transform struct {
	Adaptation
	name         string
	kernel       kernel.Kernel
	logPosterior infer.LogPosterior
}

// endless is a number of draws that no run reaches.
const endless = math.MaxInt32

// options are the kernel's, at a temperature.
func (t *transform) options(chains int, plan kernel.Plan, temperature float64) kernel.Options {
	return kernel.Options{
		Chains: chains, Warmup: t.Warmup, Draws: endless, Seed: plan.Seed, FirstChain: plan.FirstChain, Kernel: t.kernel, Metric: t.Metric, InitialMetric: t.Initial,
		Adapt: t.Adapt, Temperature: temperature,
	}
}

func (t *transform) Init(p infer.Params) (infer.State, error) {
	return t.InitStreams(p, torch.NewStreams(0, p.Chains()))
}

// InitStreams starts with the seed and the chains of the streams, whose numbers must follow each other.
func (t *transform) InitStreams(p infer.Params, streams torch.Streams) (infer.State, error) {
	if err := p.Check(); err != nil {
		return nil, fmt.Errorf("%s: %w", t.name, err)
	}
	plan := kernel.Plan{Seed: streams.Seed}
	if len(streams.Chains) > 0 {
		plan.FirstChain = streams.Chains[0]
	}
	for k, chain := range streams.Chains {
		if chain != plan.FirstChain+uint64(k) {
			return nil, fmt.Errorf("%s: the streams are of the chains %d: their numbers must follow each other: %w", t.name, streams.Chains, infer.ErrConfig)
		}
	}
	return State{Params: p, chains: &kernel.Snapshot{Plan: plan}}, nil
}

// Update makes one transition of each chain. The points are evaluated on the batch first, so that batches may differ; a batch
// on which one is not finite moves no chain.
func (t *transform) Update(state infer.State, b infer.Batch) (infer.State, infer.Info, error) {
	s, err := method.StateAs[State](state, t.name)
	if err != nil {
		return nil, infer.Info{}, err
	}
	fail := func(err error) (infer.State, infer.Info, error) {
		return nil, infer.Info{}, fmt.Errorf("%s: %w", t.name, err)
	}
	temperature := t.Temperature(s.Step)
	if err := method.CheckValue(t.name, fmt.Sprintf("Temperature at update %d", s.Step), temperature, 0, true); err != nil {
		return nil, infer.Info{}, err
	}
	device, err := torch.DeviceOf(s.Params.Flat)
	if err != nil {
		return fail(err)
	}
	density, err := NewDensity(t.logPosterior, s.Params.Layout, b, device)
	if err != nil {
		return fail(err)
	}
	at, err := t.evaluate(density, s)
	if err != nil {
		return fail(err)
	}
	info := at.info(temperature)
	if info.Diverged != nil {
		s.Step++
		return s, info, nil
	}
	options := t.options(s.Params.Chains(), s.chains.Plan, temperature)
	var from *kernel.Snapshot
	if len(s.chains.Chains) == 0 {
		options.Init = at.rows()
	} else {
		from = at.place(s.chains, temperature)
	}
	if t.StepSize != nil {
		info.LR = t.StepSize(s.Step)
		if err := method.CheckValue(t.name, fmt.Sprintf("StepSize at update %d", s.Step), info.LR, 0, true); err != nil {
			return nil, infer.Info{}, err
		}
		options.StepSize = info.LR
		if from != nil {
			for k := range from.Chains {
				from.Chains[k].StepSize, from.Chains[k].NeedStep = info.LR, false
			}
		}
	}
	var infos = make([]kernel.Info, options.Chains)
	options.Observer = func(chain, _ int, _ []float64, i kernel.Info) { infos[chain] = i }
	result, err := kernel.Advance(context.Background(), density, options, from, 1)
	if err != nil {
		return fail(err)
	}
	next := State{Step: s.Step + 1, chains: result.Snapshot}
	if next.Params, err = t.params(s.Params, result.Snapshot); err != nil {
		return fail(err)
	}
	info.Stats = map[string][]float64{}
	for _, i := range infos {
		for j, v := range statistics(i) {
			if name := statNames[j]; name != StatLP {
				info.Stats[name] = append(info.Stats[name], v)
			}
		}
		info.LR = i.StepSize
	}
	return next, info, nil
}

// params are the points of a snapshot, as tensors like the old ones.
func (t *transform) params(old infer.Params, s *kernel.Snapshot) (infer.Params, error) {
	var x []float64
	for _, c := range s.Chains {
		x = append(x, c.Point.X...)
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

// evaluated are the points of the chains with their densities and gradients on a batch.
type evaluated struct {
	d             int
	x, logp, grad []float64
}

func (t *transform) evaluate(density kernel.Density, s State) (evaluated, error) {
	e := evaluated{d: density.Dim()}
	if len(s.chains.Chains) == 0 {
		var err error
		if e.x, err = s.Params.Values(); err != nil {
			return e, err
		}
	}
	for _, c := range s.chains.Chains {
		e.x = append(e.x, c.Point.X...)
	}
	e.logp, e.grad = make([]float64, len(e.x)/e.d), make([]float64, len(e.x))
	return e, density.ValueAndGrad(e.x, e.logp, e.grad)
}

func (e evaluated) info(temperature float64) infer.Info {
	info := infer.Info{LogPosterior: e.logp, GradNorm: make([]float64, len(e.logp)), Temperature: temperature}
	for k, v := range e.logp {
		norm := 0.0
		for _, g := range e.grad[k*e.d : (k+1)*e.d] {
			norm = math.Hypot(norm, g)
		}
		info.GradNorm[k] = norm
		if s := v + norm; math.IsNaN(s) || math.IsInf(s, 0) {
			if info.Diverged == nil {
				info.Diverged = make([]bool, len(e.logp))
			}
			info.Diverged[k] = true
		}
	}
	return info
}

func (e evaluated) rows() [][]float64 {
	var out [][]float64
	for i := 0; i < len(e.x); i += e.d {
		out = append(out, e.x[i:i+e.d])
	}
	return out
}

// place puts densities, gradients and the temperature into a copy of the chains.
func (e evaluated) place(s *kernel.Snapshot, temperature float64) *kernel.Snapshot {
	next := *s
	next.Chains = append([]kernel.ChainState(nil), s.Chains...)
	for k := range next.Chains {
		c := &next.Chains[k]
		c.Temperature = temperature
		c.Point.LogP, c.Point.Grad = e.logp[k], e.grad[k*e.d:(k+1)*e.d]
	}
	return &next
}

// Position are the points.
func (s State) Position() infer.Params { return s.Params }

// Steps is the number of updates so far.
func (s State) Steps() int64 { return s.Step }

// Save names the points, and everything else that the chains need as bytes.
func (s State) Save() infer.Saved {
	saved := infer.Saved{Steps: s.Step, Streams: torch.NewStreams(s.chains.Plan.Seed, s.Params.Chains()), Tensors: infer.Tensors{"params": s.Params.Flat}}
	for k := range saved.Streams.Chains {
		saved.Streams.Chains[k] += s.chains.Plan.FirstChain
	}
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(s.chains); err != nil {
		panic(fmt.Sprintf("hmc: a snapshot that gob cannot hold: %v", err)) // it is plain numbers
	}
	bytes, err := torch.FromSlice(b.Bytes())
	if err == nil {
		torch.Detach(bytes)
		saved.Tensors["chains"] = bytes
	}
	return saved
}

// Restore makes a state of what was saved.
func (t *transform) Restore(layout *infer.Layout, saved infer.Saved) (infer.State, error) {
	fail := func(err error) (infer.State, error) { return nil, fmt.Errorf("%s: %w", t.name, err) }
	flat, err := saved.Tensor("params")
	if err != nil {
		return fail(err)
	}
	raw, err := saved.Tensor("chains")
	if err != nil {
		return fail(err)
	}
	text, err := torch.ToSlice[uint8](raw)
	if err != nil {
		return fail(err)
	}
	s := State{Params: infer.Params{Layout: layout, Flat: flat}, Step: saved.Steps, chains: &kernel.Snapshot{}}
	if err := gob.NewDecoder(bytes.NewReader(text)).Decode(s.chains); err != nil {
		return fail(fmt.Errorf("the chains cannot be read: %v: %w", err, infer.ErrCheckpoint))
	}
	return s, nil
}

// Tensors are what the state owns, and what it shares with others.
func (s State) Tensors() (owned, shared infer.Tensors) {
	return infer.Tensors{"params": s.Params.Flat}, nil
}
