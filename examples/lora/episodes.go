package main

import (
	"context"
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/laplace"
	"github.com/kelvin-ppl/kelvin/models/nn/weights"
	"github.com/kelvin-ppl/kelvin/torch"
)

// The ways to learn episodes. Laplace has a weight λ of what was learned before.
const (
	sequential = "sequential MAP"
	offline    = "offline"
)

// methods in the order of the table, with λ; 0 is none.
var methods = []struct {
	name   string
	lambda float64
}{{sequential, 0}, {"Laplace", 1}, {"Laplace, λ = 10", 10}, {offline, 0}}

// priorSD is that of the first prior of the adapters.
const priorSD = 1

// episodes learns the texts one after another, and gives the losses on the test parts of all of them after each.
func (m *language) episodes(ctx context.Context, s settings, base *trained, texts []text, seed uint64) (
	l learned, err error) {
	var sites []string
	for _, part := range []string{"query", "key", "output"} {
		sites = append(sites, m.last+part+".weight")
	}
	adapter, err := weights.LoRA{Rank: s.Rank, Alpha: s.Alpha, Sites: sites}.Attach(m.net, base.at)
	if err != nil {
		return l, err
	}
	streams := torch.NewStreams(seed+2000, 1)
	start, err := adapter.Init(&streams)
	if err != nil {
		return l, err
	}
	var train, test []infer.Batch
	for _, t := range texts[1 : 1+episodes] {
		a, err := windows(t.train, m.length, m.length)
		if err != nil {
			return l, err
		}
		b, err := windows(t.test, m.length, m.length/4)
		if err != nil {
			return l, err
		}
		train, test = append(train, a), append(test, b)
	}
	exam := func(at infer.Params) (row []float64, err error) {
		for _, b := range test {
			mean, err := loss(adapter.Forward, at, b)
			if err != nil {
				return nil, err
			}
			row = append(row, mean)
		}
		return row, nil
	}
	fit := func(prior func(infer.Params) torch.Tensor, from infer.Params, data infer.Batch) (infer.Params, error) {
		n := data["x"].MustSize()[0]
		return climb(ctx, posterior(adapter.Forward, prior, n), from, data, s.Episode, s.Batch, 3e-3, seed, nil)
	}
	l.Losses = map[string][][]float64{}
	for i, b := range train {
		at, err := fit(normal(priorSD), start, b)
		if err != nil {
			return l, err
		}
		row, err := exam(at)
		if err != nil {
			return l, err
		}
		l.Single = append(l.Single, row[i])
	}
	for _, method := range methods {
		at, prior := start, normal(priorSD)
		var state infer.State
		for i, b := range train {
			data := b
			if method.name == offline {
				var all []int64
				for _, t := range texts[1 : 2+i] {
					all = append(all, t.train...)
				}
				if data, err = windows(all, m.length, m.length); err != nil {
					return l, err
				}
				at = start
			}
			if at, err = fit(prior, at, data); err != nil {
				return l, fmt.Errorf("%s, episode %d: %w", method.name, i+1, err)
			}
			row, err := exam(at)
			if err != nil {
				return l, err
			}
			l.Losses[method.name] = append(l.Losses[method.name], row)
			if method.lambda == 0 {
				continue
			}
			if state, err = remember(adapter.Forward, state, at, b); err != nil {
				return l, fmt.Errorf("%s, episode %d: %w", method.name, i+1, err)
			}
			if prior, err = state.(laplace.Posterior).LogPrior(method.lambda); err != nil {
				return l, err
			}
		}
	}
	return l, nil
}

// remember adds the curvature of an episode at its optimum to that of the episodes before, around the new optimum:
// P_n = P_{n−1} + Σ_i g_i g_iᵀ, of which it keeps the diagonal (Huszár 2018; Duffield et al. 2025, section 5.2).
func remember(f forward, before infer.State, at infer.Params, data infer.Batch) (infer.State, error) {
	transform, err := laplace.DiagFisher{LogLikelihood: perWindow(f),
		PriorPrecision: laplace.Isotropic(1.0 / (priorSD * priorSD))}.Build(infer.Target{})
	if err != nil {
		return nil, err
	}
	var state infer.State
	if before == nil {
		state, err = transform.Init(at)
	} else {
		saved := before.Save()
		saved.Tensors["params"] = at.Flat
		state, err = transform.(infer.Restorer).Restore(at.Layout, saved)
	}
	if err != nil {
		return nil, err
	}
	state, _, err = transform.Update(state, data)
	return state, err
}
