package main

import (
	"cmp"
	"context"
	"math"
	"path/filepath"
	"slices"

	"github.com/kelvin-ppl/kelvin/examples/internal/classify"
	"github.com/kelvin-ppl/kelvin/examples/internal/grid"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/infer/vi"
)

// walk is a way to sample.
type walk struct {
	name          string
	file          string
	masses, cycle bool
	langevin      bool
}

var walks = []walk{
	{name: "SGHMC", file: "sghmc"},
	{name: "SGHMC, masses", file: "sghmc-masses", masses: true},
	{name: "SGHMC, cycles", file: "sghmc-cycles", cycle: true},
	{name: "SGHMC, masses, cycles", file: "sghmc-both", masses: true, cycle: true},
	{name: "SGLD", file: "sgld", langevin: true},
}

// walks are the samplers of a study.
func (s studySettings) walks() []walk {
	return slices.DeleteFunc(slices.Clone(walks), func(w walk) bool {
		return len(s.Walks) > 0 && !slices.Contains(s.Walks, w.file)
	})
}

func (s studySettings) cycles() infer.Cycles { return infer.Cycles{Length: s.Cycle, From: s.Begin} }

// method warms up to the temperature in the first cycle, or in the one before the first.
func (w walk) method(s studySettings, temperature float64) infer.Method {
	rise := infer.Ramp(temperature, max(s.Begin, s.Cycle), s.Cycle)
	if p := s.Published; p != nil {
		return sgmcmc.SGHMC{LR: infer.Constant(p.StepSize), Alpha: infer.Constant(p.Friction),
			Temperature: infer.Constant(temperature)}
	}
	if w.langevin {
		return sgmcmc.SGLD{LR: infer.Constant(s.SGLD), Temperature: rise}
	}
	m := sgmcmc.SymplecticSGHMC{LR: infer.Constant(s.LR), Momentum: infer.Constant(s.Momentum), Temperature: rise}
	if w.cycle {
		m.Cycle = s.cycles().Cosine(1)
	}
	if w.masses {
		m.EstimateMass = &sgmcmc.Estimate{Every: cmp.Or(s.MassEvery, s.Cycle), Batches: s.MassBatches}
	}
	return m
}

// posteriorCells are, for each seed and temperature, each sampler and the variational fit. They start at the modes.
func (s *study) posteriorCells() (cells []grid.Cell[[]entry]) {
	add := func(name string, updates int,
		run func(ctx context.Context, dir, identity string, observer infer.Observer) ([]entry, error)) {
		cells = append(cells, grid.Cell[[]entry]{Name: name, Updates: updates, Run: run})
	}
	for seed := range s.Settings.Seeds {
		for _, temperature := range s.Settings.Temperatures {
			for _, w := range s.Settings.walks() {
				add(s.name(w.file, temperature, seed), s.burnIn()+s.Settings.Draws*s.Settings.Cycle,
					func(ctx context.Context, dir, identity string, observer infer.Observer) ([]entry, error) {
						return s.walk(ctx, w, temperature, seed, dir, identity, observer)
					})
			}
			if s.Settings.FitUpdates == 0 {
				continue
			}
			add(s.name("vi", temperature, seed), s.Settings.FitUpdates+s.Settings.Draws,
				func(ctx context.Context, dir, identity string, observer infer.Observer) ([]entry, error) {
					return s.fit(ctx, temperature, seed, dir, identity, observer)
				})
		}
	}
	return cells
}

func (s *study) burnIn() int {
	return cmp.Or(s.Settings.Begin, s.Settings.Cycle) + s.Settings.Settle*s.Settings.Cycle
}

// starts are k points to start from, the first modes where samplers start there.
func (s *study) starts(seed, k int) (infer.Params, error) {
	if s.Settings.Begin > 0 {
		return s.task.Starts(s.law, s.Settings.Seed+1000+uint64(seed), k)
	}
	return s.kept(seed, k)
}

// walk samples with as many chains as there are modes. Serial is all draws of the first chain, and parallel the last
// state of each.
func (s *study) walk(ctx context.Context, w walk, temperature float64, seed int, dir, identity string,
	observer infer.Observer) ([]entry, error) {
	starts, err := s.starts(seed, s.Settings.Members)
	if err != nil {
		return nil, err
	}
	batches, err := s.batches(seed)
	if err != nil {
		return nil, err
	}
	cycles := s.Settings.cycles()
	thermometer, err := newThermometer(s.task, func(updates int) bool {
		return updates > s.burnIn() && cycles.Ends(updates)
	}, filepath.Join(dir, "temperatures.json"))
	if err != nil {
		return nil, err
	}
	if !s.readAll {
		thermometer.Gradient, thermometer.Next = nil, nil
	}
	thermometer.Then = observer
	r, err := infer.Run(ctx, s.task.Program(starts), w.method(s.Settings, temperature),
		infer.Options{Chains: s.Settings.Members, Warmup: s.burnIn(), Draws: s.Settings.Draws, Thin: 1, Cycles: &cycles,
			Batches: batches, Seed: s.Settings.Seed + uint64(seed), Observer: thermometer,
			Checkpoint: &infer.Checkpoint{Dir: dir, Resume: true, Every: s.every, Model: identity}})
	if err == nil {
		err = thermometer.Err
	}
	if err != nil {
		return nil, err
	}
	// Each row has the temperatures of the chains that its networks are of.
	whole, err := classify.Judge(s.task.Net.Layout(), temperature, [][]infer.Reading{thermometer.Readings})
	if err != nil {
		return nil, err
	}
	first, err := classify.Judge(s.task.Net.Layout(), temperature, [][]infer.Reading{firstChain(thermometer.Readings)})
	if err != nil {
		return nil, err
	}
	var serial, last [][][]float64
	for k := range s.Settings.Members {
		n := r.Draws.Len(k)
		for i := range n {
			if k > 0 && i < n-1 {
				continue
			}
			logp, err := s.network(r.Draws.Row(k, i))
			if err != nil {
				return nil, err
			}
			if k == 0 {
				serial = append(serial, logp)
			}
			if i == n-1 {
				last = append(last, logp)
			}
		}
	}
	one, err := s.entry(w.name+", serial", temperature, serial)
	if err != nil {
		return nil, err
	}
	all, err := s.entry(w.name+", parallel", temperature, last)
	one.Simulation, all.Simulation = first, whole
	one.Held, all.Held = r.Held, r.Held
	return []entry{one, all}, err
}

// firstChain are the readings of the first chain alone.
func firstChain(all []infer.Reading) []infer.Reading {
	out := slices.Clone(all)
	for i, r := range out {
		out[i].Kinetic, out[i].Configurational = r.Kinetic[:min(1, len(r.Kinetic))],
			r.Configurational[:min(1, len(r.Configurational))]
	}
	return out
}

// fit is a normal distribution with independent weights, that starts around the first mode.
func (s *study) fit(ctx context.Context, temperature float64, seed int, dir, identity string,
	observer infer.Observer) ([]entry, error) {
	start, err := s.starts(seed, 1)
	if err != nil {
		return nil, err
	}
	batches, err := s.batches(seed)
	if err != nil {
		return nil, err
	}
	method := vi.Diag{Samples: s.Settings.FitSamples, InitScale: s.Settings.FitScale * math.Sqrt(temperature),
		Temperature: infer.Constant(temperature), Optimizer: s.Settings.optimiser(s.Settings.FitUpdates, 0)}
	if s.Settings.Published != nil {
		method.InitScale = s.Settings.FitScale
	}
	r, err := infer.Run(ctx, s.task.Program(start), method,
		infer.Options{Chains: 1, Warmup: s.Settings.FitUpdates, Draws: s.Settings.own().ParameterSamples,
			Batches: batches, Seed: s.Settings.Seed + uint64(seed), Observer: observer,
			Checkpoint: &infer.Checkpoint{Dir: dir, Resume: true, Every: s.every, Model: identity}})
	if err != nil {
		return nil, err
	}
	var flat []float64
	for i := range r.Draws.Len(0) {
		flat = append(flat, r.Draws.Row(0, i)...)
	}
	draws, err := s.points(variational, temperature, flat)
	if err != nil {
		return nil, err
	}
	mean, cov, err := r.State.(vi.State).Linearized(s.forward, infer.Batch{"x": s.task.Test},
		curvature.LinearizedOptions{})
	if err != nil {
		return nil, err
	}
	linear, err := s.linearised(variational, temperature, mean, cov, 1, seed)
	draws.Held, linear.Held = r.Held, r.Held
	return []entry{draws, linear}, err
}
