package main

import (
	"context"
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/path"
)

// rung is what a replica at one temperature gives.
type rung struct {
	Temperature float64 `json:"temperature"`
	Train       float64 `json:"train"` // mean of E/n over the draws
	Test        scores  `json:"test"`
	Swapped     float64 `json:"swapped"` // swaps with the next higher temperature that were accepted; -1 at the highest
	Step        float64 `json:"step"`    // step size
}

// swept is a curve.
type swept struct {
	curve
	Rungs      []rung `json:"rungs"`
	RoundTrips int    `json:"round_trips"`
	Gradients  int    `json:"gradients"`
}

// sweep samples p(w|T, D) ∝ exp(−E(w)/T) in the box at all temperatures together (Baldock and Marzari 2019, algorithm
// 2). The likelihood at the lowest temperature is the target; a rung β of its powers has temperature T_low/β.
func (s settings) sweep(ctx context.Context, p *problem, c curve, dir string, observer infer.Observer) (*swept, error) {
	n := p.networks[c.Network]
	target, err := infer.TemperLikelihood(n.target(p.train.Len()), c.Temperatures[0])
	if err != nil {
		return nil, err
	}
	width := 1.0
	if c.Filled {
		width = n.width / 2
	}
	start, err := n.start(1, s.Seed, width)
	if err != nil {
		return nil, err
	}
	top := len(c.Temperatures) - 1
	ladder := make([]float64, len(c.Temperatures)) // rising in β, falling in T
	for i := range ladder {
		ladder[i] = c.Temperatures[0] / c.Temperatures[top-i]
	}
	method := hmc.Exchange{Ladder: ladder, Path: &path.Path{Reference: n.box()}, Every: s.Every, Minimise: s.Minimise,
		KeepHot: true, Kernel: hmc.HMC{Steps: s.Steps, Metric: hmc.Unit, TargetAccept: 0.65, Bounce: !c.Refused}}
	if c.Refused {
		method.RandomPairs, method.Trials, method.TrialEvery = true, 10, 25*s.Every
	}
	r, err := infer.Run(ctx, infer.Handwritten(target, start, p.batch), method, infer.Options{Chains: 1,
		Warmup: c.Warmup, Draws: c.Draws, Thin: s.Thin, Seed: s.Seed, Observer: observer,
		Checkpoint: &infer.Checkpoint{Dir: dir, Every: 25, Resume: true, Model: fmt.Sprint(p.source, c)}})
	if err != nil {
		return nil, err
	}
	detail, ok := r.Detail.(*hmc.Detail)
	if !ok || len(detail.Swaps) != 1 || len(detail.Hot) != top {
		return nil, fmt.Errorf("mnist_bayes: the run of %s kept no draws of its rungs", c.Network)
	}
	result := &swept{curve: c}
	for _, n := range detail.Gradients {
		result.Gradients += n
	}
	swaps := detail.Swaps[0]
	for _, trips := range swaps.RoundTrips {
		result.RoundTrips += trips
	}
	for i, temperature := range c.Temperatures {
		// Rung 0 of the run is that of interest, the lowest temperature.
		d := r.Unconstrained
		if i > 0 {
			d = detail.Hot[i-1]
		}
		one, err := p.rung(n, d)
		if err != nil {
			return nil, err
		}
		one.Temperature, one.Step, one.Swapped = temperature, detail.StepSizes[i], -1
		if i < top {
			one.Swapped = float64(swaps.SamplingAccepted[i]) / math.Max(1, float64(swaps.SamplingTried[i]))
		}
		result.Rungs = append(result.Rungs, one)
	}
	return result, nil
}

// rung scores the draws of one temperature.
func (p *problem) rung(n *network, d *draws.Draws) (r rung, err error) {
	points := d.Rows()
	if r.Test, err = p.predicted(n, points); err != nil {
		return r, err
	}
	for _, x := range points {
		e, err := p.loss(n, x)
		if err != nil {
			return r, err
		}
		r.Train += e / float64(len(points))
	}
	return r, nil
}
