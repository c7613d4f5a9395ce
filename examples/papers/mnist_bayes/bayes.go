package main

import (
	"context"
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/evidence"
	"github.com/kelvin-ppl/kelvin/infer/path"
)

// weighed is the log evidence of a network.
type weighed struct {
	Network  string   `json:"network"`
	Data     int      `json:"data"`
	Seed     int      `json:"seed"`
	LogZ     float64  `json:"log_z"`
	SE       float64  `json:"se"`
	Warnings []string `json:"warnings"`
}

// weigh integrates from the prior to the posterior, both in the box, whose volume is known. The paper starts from a
// harmonic reference around one minimum, [path.Fit]; but the posterior fills the box.
func (s settings) weigh(ctx context.Context, p *problem, name string, seed int, dir string,
	observer infer.Observer) (*weighed, error) {
	n := p.networks[name]
	own := s.Seed + 100*uint64(seed)
	start, err := n.start(1, own, n.width/2)
	if err != nil {
		return nil, err
	}
	z, err := evidence.Run(ctx, infer.Handwritten(n.target(p.train.Len()), start, p.batch), evidence.TI{
		Path: path.Path{Reference: n.box()}, Rungs: s.Rungs, TargetAccept: 0.65}, infer.Options{Chains: 1,
		Warmup: s.Rounds / 2, Draws: s.Rounds / 2, Seed: own, Observer: observer,
		Checkpoint: &infer.Checkpoint{Dir: dir, Every: 10, Resume: true, Model: fmt.Sprint(p.source, p.name, name)}})
	if err != nil {
		return nil, err
	}
	return &weighed{Network: name, Data: p.train.Len(), Seed: seed, LogZ: z.LogZ, SE: z.SE, Warnings: z.Warnings}, nil
}
