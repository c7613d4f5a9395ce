package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/kelvin-ppl/kelvin/examples/internal/classify"
	"github.com/kelvin-ppl/kelvin/infer"
)

// result is what is stored of a cell.
type result struct {
	Sampler     string               `json:"sampler"`
	Temperature float64              `json:"temperature"`
	Lines       map[string]estimate  `json:"lines"`
	Simulation  *classify.Simulation `json:"simulation"` // nil at temperature 0
	Diverged    int                  `json:"diverged"`   // updates of single chains that were held
}

// The ways to predict from the draws of a cell.
const (
	oneChain  = "one chain"  // all draws of a chain; repeated with every chain
	allChains = "all chains" // all draws of all chains
	// of the chains of a run: parallel SGHMC, and at temperature 0 a deep ensemble; repeated with every run
	lastStates = "last states"
	oneNetwork = "one network" // the last state of a chain; repeated with every chain
)

// runCell runs a cell, or goes on with it, in a folder of its own.
func (s settings) runCell(ctx context.Context, t *classify.Task, c cell, dir, identity string, every int,
	observer infer.Observer) (*result, error) {
	cycles := s.cycles(c)
	r := &result{Sampler: c.sampler.name, Temperature: c.temperature, Lines: map[string]estimate{}}
	// log probabilities: of all draws of each chain, of the last draws of each run, and of each chain
	var chains, runs, single [][][][]float64
	var readings [][]infer.Reading
	for i := range c.runs {
		own := filepath.Join(dir, fmt.Sprintf("run-%d", i))
		if err := os.MkdirAll(own, 0o755); err != nil {
			return nil, err
		}
		thermometer, err := newThermometer(t, func(updates int) bool {
			return updates > s.burnIn(c) &&
				cycles.Ends(updates)
		}, filepath.Join(own, "temperatures.json"))
		if err != nil {
			return nil, err
		}
		thermometer.Then = observer
		// All temperatures have the same starts, streams and batches.
		starts, err := t.Starts(start, s.Seed+1000+uint64(i), c.chains)
		if err != nil {
			return nil, err
		}
		batches, err := infer.Minibatches(t.Train, infer.MinibatchOptions{Size: s.Batch, Seed: s.Seed + uint64(i)})
		if err != nil {
			return nil, err
		}
		e, err := infer.Run(ctx, t.Program(starts), s.method(c),
			infer.Options{
				Chains: c.chains, Warmup: s.burnIn(c), Draws: c.draws, Thin: 1, Cycles: &cycles, Batches: batches,
				Seed: s.Seed, FirstChain: uint64(i * c.chains), Observer: thermometer,
				Checkpoint: &infer.Checkpoint{Dir: own, Resume: true, Every: every, Model: identity}})
		if err == nil {
			err = thermometer.Err
		}
		if err != nil {
			return nil, err
		}
		r.Diverged += e.Held
		readings = append(readings, thermometer.Readings)
		var last [][][]float64
		for k := range c.chains {
			logp, err := t.Predictions(e.Draws, k)
			if err != nil {
				return nil, err
			}
			chains = append(chains, logp)
			last = append(last, logp[len(logp)-1])
			single = append(single, logp[len(logp)-1:])
		}
		runs = append(runs, last)
	}
	for _, line := range []struct {
		name   string
		groups [][][][]float64
		score  func([][][][]float64, []int) (estimate, error)
		when   bool
	}{
		{oneChain, chains, repeated, true},
		{allChains, chains, pooled, c.cyclical},
		{lastStates, runs, repeated, !c.cyclical},
		{oneNetwork, single, repeated, true},
	} {
		if !line.when {
			continue
		}
		var err error
		if r.Lines[line.name], err = line.score(line.groups, t.Labels); err != nil {
			return nil, fmt.Errorf("%s: %w", line.name, err)
		}
	}
	if c.temperature > 0 {
		var err error
		if r.Simulation, err = classify.Judge(t.Net.Layout(), c.temperature, readings); err != nil {
			return nil, err
		}
	}
	return r, nil
}
