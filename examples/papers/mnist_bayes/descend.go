package main

import (
	"context"
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/optim"
)

// optimiser finds minima of E.
var optimiser = optim.Adam{LR: infer.Constant(0.01)}

// descended are networks at minima of E, each from a start of its own, without a prior within the box.
type descended struct {
	Network string  `json:"network"`
	Data    int     `json:"data"`
	Train   float64 `json:"train"` // mean of E/n
	Test    scores  `json:"test"`  // Gibbs: the mean of single networks; Loss: of the ensemble
}

// descend optimises an ensemble by Adam, all members as chains of one run.
func (s settings) descend(ctx context.Context, p *problem, name, dir string,
	observer infer.Observer) (*descended, error) {
	n := p.networks[name]
	start, err := n.start(s.Networks, s.Seed+1, 1)
	if err != nil {
		return nil, err
	}
	program := infer.Handwritten(n.target(p.train.Len()), start, p.batch)
	r, err := infer.Run(ctx, program, optimiser, infer.Options{Chains: s.Networks, Warmup: s.Updates, Draws: 1,
		Seed: s.Seed, Observer: observer, Checkpoint: &infer.Checkpoint{Dir: dir, Every: 100, Resume: true,
			Model: fmt.Sprint(p.source, p.name, name)}})
	if err != nil {
		return nil, err
	}
	points := r.Unconstrained.Rows()
	result := &descended{Network: name, Data: p.train.Len()}
	if result.Test, err = p.predicted(n, points); err != nil {
		return nil, err
	}
	for _, x := range points {
		e, err := p.loss(n, x)
		if err != nil {
			return nil, err
		}
		result.Train += e / float64(len(points))
	}
	return result, nil
}
