package main

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
)

// settings are everything that the results depend on.
type settings struct {
	Version      int       `json:"version"` // of this program: raised when the same settings give other results
	Hidden       []int     `json:"hidden"`
	Train        int       `json:"training_images"`
	Batch        int       `json:"batch"`
	LR           float64   `json:"learning_rate"`
	Momentum     float64   `json:"momentum"`
	Cycle        int       `json:"cycle"` // updates
	Temperatures []float64 `json:"temperatures"`
	Ensembles    int       `json:"ensembles"`
	Members      int       `json:"members"` // chains of an ensemble, and of the cyclical method
	Seed         uint64    `json:"seed"`
	// In cycles: warm-up, time at the temperature without draws, and draws.
	CyclicalWarmup int `json:"cyclical_warmup"`
	CyclicalSettle int `json:"cyclical_settle"`
	CyclicalDraws  int `json:"cyclical_draws"`
	ConstantWarmup int `json:"constant_warmup"`
	ConstantDraws  int `json:"constant_draws"`
}

// whole are the settings of the sweep, a few minutes of two cores; quick is a look at whether it works.
//
// In the terms of Wenzel et al. (2020) the step is h = √(0.03/500) and the momentum 0.98, so that momenta forget in 50
// updates and the slowest directions, those of the prior alone, in about 350. At a learning rate of 0.1 parameters are
// clearly too hot.
func whole(seed uint64) settings {
	return settings{Version: 1, Hidden: []int{32, 32}, Train: 500, Batch: 100, LR: 0.03, Momentum: 0.98, Cycle: 300,
		Ensembles: 4, Members: 8,
		Seed: seed, CyclicalWarmup: 5, CyclicalSettle: 10, CyclicalDraws: 20, ConstantWarmup: 4, ConstantDraws: 8,
		Temperatures: []float64{0.001, 0.0032, 0.01, 0.032, 0.1, 0.32, 1, 3.2}}
}

func quick(seed uint64) settings {
	s := whole(seed)
	s.Hidden, s.Train, s.Batch, s.Cycle, s.Ensembles, s.Members = []int{8}, 100, 20, 20, 2, 2
	s.Temperatures = []float64{0.1, 1}
	s.CyclicalWarmup, s.CyclicalSettle, s.CyclicalDraws, s.ConstantWarmup, s.ConstantDraws = 2, 1, 5, 2, 4
	return s
}

// sampler is a method of the sweep, at all temperatures.
type sampler struct {
	name          string
	cyclical      bool // steps in cycles and estimated masses
	warmup        int  // cycles
	settle, draws int
	runs, chains  int // runs, each with chains of its own and batches in an order of its own
}

func (s settings) samplers() []sampler {
	return []sampler{
		{name: "constant", warmup: s.ConstantWarmup, draws: s.ConstantDraws, runs: s.Ensembles, chains: s.Members},
		{name: "cyclical", cyclical: true, warmup: s.CyclicalWarmup, settle: s.CyclicalSettle, draws: s.CyclicalDraws,
			runs: 1, chains: s.Members},
	}
}

// cell is a sampler at one temperature: what is stored when it is done.
type cell struct {
	sampler
	temperature float64 // 1 is the Bayes posterior, 0 optimisation
}

func (c cell) name() string { return fmt.Sprintf("%s-%g", c.sampler.name, c.temperature) }

// cells are all of the sweep, those that take longest first.
func (s settings) cells() (all []cell) {
	for _, m := range s.samplers() {
		for _, t := range append([]float64{0}, s.Temperatures...) {
			all = append(all, cell{m, t})
		}
	}
	return all
}

// updates of one run of a cell, and those before its draws.
func (s settings) updates(c cell) int { return s.burnIn(c) + c.draws*s.Cycle }
func (s settings) burnIn(c cell) int  { return (c.warmup + c.settle) * s.Cycle }

// cycles are those at the temperature of the cell; when it has settled a draw is taken, and temperatures are read, at
// the end of each. Without cyclical steps they are just intervals.
func (s settings) cycles(c cell) infer.Cycles {
	return infer.Cycles{Length: s.Cycle, From: c.warmup * s.Cycle}
}

// method is symplectic Euler SGHMC (Wenzel et al. 2020, algorithm 1), which at temperature 0 is SGD with momentum. It
// warms up at temperature 0, but for the last of these cycles, in which the temperature rises to its value. From then
// on the steps of the cyclical method fall to nearly 0 in each cycle, and it finds masses at the start of each. (The
// explicit form, sgmcmc.SGHMC, is stable at this step and friction only for curvatures below 0.7, and would need much
// smaller steps.)
func (s settings) method(c cell) infer.Method {
	cycles := s.cycles(c)
	m := sgmcmc.SymplecticSGHMC{
		LR:          infer.Constant(s.LR),
		Momentum:    infer.Constant(s.Momentum),
		Temperature: infer.Ramp(c.temperature, cycles.From, s.Cycle),
	}
	if c.cyclical {
		m.Cycle = cycles.Cosine(1)
		m.EstimateMass = &sgmcmc.Estimate{Every: s.Cycle}
	}
	return m
}
