package main

import (
	"context"
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/laplace"
	"github.com/kelvin-ppl/kelvin/models/nn/weights"
	"github.com/kelvin-ppl/kelvin/torch"
)

// The ways to learn episodes. Those of Laplace have a weight λ of what was learned before. They are equal up to the
// end of the first episode.
const (
	sequential = "sequential MAP"
	offline    = "offline"
)

// way is a way to learn episodes; λ is 0 without Laplace.
type way struct {
	name   string
	lambda float64
}

func laplaceWay(lambda float64) way { return way{fmt.Sprintf("Laplace, λ = %g", lambda), lambda} }

// ways in the order of the table. -tune chose λ = 1, which is Bayes' rule for the approximation; the other shows what a
// larger one does.
func ways(s settings) []way {
	return []way{{name: sequential}, laplaceWay(s.Lambda[0]), laplaceWay(s.Lambda[1]), {name: offline}}
}

// learned are losses, in nats for a character.
type learned struct {
	Losses map[string][][]float64 `json:"losses"` // by way, [episodes seen][episode]
	Single []float64              `json:"single"` // of a model of each episode alone
	Before []float64              `json:"before"` // of the base
}

// priorSD is that of the first prior of the adapters.
const priorSD = 1

// adapted is the base with adapters, and what they learn.
type adapted struct {
	*language
	settings
	adapter *weights.Adapter
	start   infer.Params
	texts   map[string]text
	exams   []infer.Batch // what losses are of, by episode
	seed    uint64
}

// adapt puts adapters beside the query, key and output of the last attention layer. Losses are of the parts of the
// texts that exam picks.
func (m *language) adapt(s settings, base *trained, texts map[string]text, seed uint64, exam func(text) []int) (
	*adapted, error) {
	var sites []string
	for _, part := range []string{"query", "key", "output"} {
		sites = append(sites, m.last+part+".weight")
	}
	adapter, err := weights.LoRA{Rank: s.Rank, Alpha: s.Alpha, Sites: sites}.Attach(m.net, base.at)
	if err != nil {
		return nil, err
	}
	streams := torch.NewStreams(seed+2000, 1)
	start, err := adapter.Init(&streams)
	if err != nil {
		return nil, err
	}
	a := &adapted{language: m, settings: s, adapter: adapter, start: start, texts: texts, seed: seed}
	for _, name := range episodes {
		b, err := windows(exam(texts[name]), m.length, m.length/4)
		if err != nil {
			return nil, err
		}
		a.exams = append(a.exams, b)
	}
	return a, nil
}

// losses of a point, by episode.
func (a *adapted) losses(at infer.Params) (row []float64, err error) {
	for _, b := range a.exams {
		mean, err := loss(a.adapter.Forward, at, b)
		if err != nil {
			return nil, err
		}
		row = append(row, mean)
	}
	return row, nil
}

// fit learns the training windows of the episodes first to last, in as many updates as they have in turn.
func (a *adapted) fit(ctx context.Context, prior func(infer.Params) torch.Tensor, from infer.Params, first, last int) (
	at infer.Params, err error) {
	var train []int
	for _, name := range episodes[first : last+1] {
		train = append(train, a.texts[name].train...)
	}
	data, err := windows(train, a.length, a.length)
	if err != nil {
		return at, err
	}
	n, updates := data["x"].Shape()[0], a.Episode*(last-first+1)
	return climb(ctx, posterior(a.adapter.Forward, prior, n), from, data, updates, a.Batch, a.EpisodeLR, a.seed, nil)
}

// learn learns the texts one after another in each way, and gives the losses on all of them after each.
func (a *adapted) learn(ctx context.Context, ways []way) (l learned, err error) {
	if l.Before, err = a.losses(a.start); err != nil {
		return l, err
	}
	var first infer.Params
	for i := range episodes {
		at, err := a.fit(ctx, normal(priorSD), a.start, i, i)
		if err != nil {
			return l, err
		}
		if i == 0 {
			first = at
		}
		row, err := a.losses(at)
		if err != nil {
			return l, err
		}
		l.Single = append(l.Single, row[i])
	}
	l.Losses = map[string][][]float64{}
	for _, w := range ways {
		if l.Losses[w.name], err = a.inTurn(ctx, w, first); err != nil {
			return l, fmt.Errorf("%s: %w", w.name, err)
		}
	}
	return l, nil
}

// inTurn gives the losses after each episode of one way, from where the first ended.
func (a *adapted) inTurn(ctx context.Context, w way, at infer.Params) (rows [][]float64, err error) {
	prior := normal(priorSD)
	var state infer.State
	for i, name := range episodes {
		switch {
		case i == 0:
		case w.name == offline:
			at, err = a.fit(ctx, prior, a.start, 0, i)
		default:
			at, err = a.fit(ctx, prior, at, i, i)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		row, err := a.losses(at)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
		if w.lambda == 0 {
			continue
		}
		data, err := windows(a.texts[name].train, a.length, a.length)
		if err != nil {
			return nil, err
		}
		if state, err = remember(a.adapter.Forward, state, at, data); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if prior, err = state.(laplace.Posterior).LogPrior(w.lambda); err != nil {
			return nil, err
		}
	}
	return rows, nil
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
	const part = 32 // windows at a time: the gradient of each is kept until the next part
	for from, n := 0, data["x"].Shape()[0]; from < n && err == nil; from += part {
		to := min(from+part, n)
		b := infer.Batch{}
		for name, t := range data {
			b[name] = t.Slice(0, from, to)
		}
		state, _, err = transform.Update(state, b)
	}
	return state, err
}
