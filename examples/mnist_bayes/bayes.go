package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/evidence"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/path"
)

// weighed is the log evidence of a network.
type weighed struct {
	Network  string   `json:"network"`
	Data     int      `json:"data"`
	Seed     int      `json:"seed"`
	LogZ     float64  `json:"log_z"`
	SE       float64  `json:"se"`
	LogZ0    float64  `json:"log_z0"` // of the reference
	Warnings []string `json:"warnings"`
}

// weigh integrates from a harmonic reference, fitted to draws of the posterior around a minimum, to the posterior in
// the box (Baldock and Marzari 2019, section on thermodynamic integration).
func (s settings) weigh(ctx context.Context, p *problem, name string, seed int, dir string,
	observer infer.Observer) (*weighed, error) {
	n := p.networks[name]
	own := s.Seed + 100*uint64(seed)
	start, err := n.start(1, own+2)
	if err != nil {
		return nil, err
	}
	target := n.target(p.train.Len())
	save := func(part string) *infer.Checkpoint {
		return &infer.Checkpoint{Dir: filepath.Join(dir, part), Resume: true, Model: fmt.Sprint(p.source, p.name, name)}
	}
	mode, err := infer.Run(ctx, infer.Handwritten(target, start, p.batch), optimiser, infer.Options{Chains: 1,
		Warmup: s.Updates, Draws: 1, Seed: own, Observer: observer, Checkpoint: save("mode")})
	if err != nil {
		return nil, err
	}
	around, err := infer.Run(ctx, infer.Handwritten(target, mode.Last, p.batch),
		hmc.HMC{Steps: s.Steps, Metric: hmc.Unit, TargetAccept: 0.65}, infer.Options{Chains: 1, Warmup: s.Fitted,
			Draws: s.Fitted, Seed: own + 1, Observer: observer, Checkpoint: save("around")})
	if err != nil {
		return nil, err
	}
	var x []float64
	for _, row := range pointsOf(around.Unconstrained) {
		x = append(x, row...)
	}
	reference, err := path.Fit(x, len(n.lower))
	if err != nil {
		return nil, err
	}
	reference.Lower, reference.Upper = n.lower, n.upper
	z, err := evidence.Run(ctx, infer.Handwritten(target, around.Last, p.batch), evidence.TI{
		Path: path.Path{Reference: reference}, Rungs: s.Rungs, TargetAccept: 0.65}, infer.Options{Chains: 1,
		Warmup: s.Moves / 2, Draws: s.Moves / 2, Seed: own + 3, Observer: observer, Checkpoint: save("path")})
	if err != nil {
		return nil, err
	}
	return &weighed{Network: name, Data: p.train.Len(), Seed: seed, LogZ: z.LogZ, SE: z.SE, LogZ0: reference.LogZ(),
		Warnings: z.Warnings}, nil
}
