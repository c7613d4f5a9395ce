package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kelvin-ppl/kelvin/diag/score"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/torch"
	"gonum.org/v1/gonum/stat"
)

// The methods whose predictions tell Latin from English.
const (
	methodBase     = "base"
	methodSGD      = "SGD"
	methodSerial   = "serial SGHMC"
	methodParallel = "parallel SGHMC"
)

// detection is how well a method tells Latin from English, and what it says of single windows.
type detection struct {
	Method      string         `json:"method"`
	Total       float64        `json:"auroc_total"`     // of the total uncertainty
	Epistemic   float64        `json:"auroc_epistemic"` // −1 for a single network, which has none
	English     float64        `json:"english_loss"`    // of the averaged probabilities, nats for a character
	Latin       float64        `json:"latin_loss"`
	Uncertainty [2][][]float64 `json:"uncertainty"` // of English and Latin windows: total, aleatoric, epistemic
}

// The kinds of uncertainty of a window, in their order.
const (
	total = iota
	aleatoric
	epistemic
	kinds
)

// auroc is how well a kind of uncertainty tells Latin from English; 1/2 is guessing.
func (d detection) auroc(kind int) (float64, error) {
	return score.AUROC(column(d.Uncertainty[1], kind), column(d.Uncertainty[0], kind))
}

// mean is a kind of uncertainty on average over the windows of a group, in nats.
func (d detection) mean(group, kind int) float64 {
	return stat.Mean(column(d.Uncertainty[group], kind), nil)
}

func column(rows [][]float64, kind int) []float64 {
	out := make([]float64, len(rows))
	for i, row := range rows {
		out[i] = row[kind]
	}
	return out
}

// outliers samples the last attention layer given three English texts, and scores windows of their test parts,
// and of Latin. Runs are saved in a folder as they go.
func (m *language) outliers(ctx context.Context, s settings, base *trained, texts map[string]text, seed uint64, dir,
	identity string) ([]detection, error) {
	var learned, known []int
	for _, name := range english {
		t := texts[name]
		learned, known = slices.Concat(learned, t.train, t.validation), append(known, t.test...)
	}
	strange := slices.Concat(texts[latin].train, texts[latin].validation, texts[latin].test)
	data, err := windows(learned, m.length, m.length)
	if err != nil {
		return nil, err
	}
	var groups [2]infer.Batch
	for i, t := range [][]int{known, strange} {
		stride := max(1, (len(t)-m.length-1)/s.Windows)
		if groups[i], err = windows(t, m.length, stride); err != nil {
			return nil, err
		}
	}

	n := data["x"].Shape()[0]
	log := func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		return perWindow(m.net.Forward)(p, b).Mean().Div(float64(m.length)), nil
	}
	var sites []string
	for _, site := range m.net.Layout().Sites {
		if len(site.Name) > len(m.last) && site.Name[:len(m.last)] == m.last {
			sites = append(sites, site.Name)
		}
	}
	part, start, embed, err := infer.Subspace(log, base.at, sites...)
	if err != nil {
		return nil, err
	}
	// The data are characters: all steps are those of the mean over them.
	characters := n * m.length
	prior := normal(priorSD)
	target := infer.Mean(func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		value, aux := part(p, b)
		return value.Add(prior(p).Div(float64(characters))), aux
	}, characters)
	sample := func(name string, temperature float64, chains int, burn, draws, thin int) ([]infer.Params, error) {
		batches, err := infer.Minibatches(data, infer.MinibatchOptions{Size: min(s.Batch, n), Seed: seed})
		if err != nil {
			return nil, err
		}
		r, err := infer.Run(ctx, infer.Handwritten(target, start, data), sgmcmc.SymplecticSGHMC{LR: infer.Constant(s.LR),
			Momentum: infer.Constant(0.9), Temperature: infer.Constant(temperature)}, infer.Options{Chains: chains,
			Warmup: burn, Draws: draws, Thin: thin, Batches: batches, Seed: seed, Observer: infer.Silent,
			Checkpoint: &infer.Checkpoint{Dir: filepath.Join(dir, strings.ReplaceAll(name, " ", "_")), Resume: true, Every: 10,
				Model: identity}})
		if err != nil {
			return nil, err
		}
		var points []infer.Params
		for k := range chains {
			for i := range r.Draws.Len(k) {
				p, err := infer.NewParams(start.Layout, r.Draws.Row(k, i))
				if err == nil {
					p, err = p.To(torch.CPU, dtype)
				}
				if err == nil {
					p, err = embed(p)
				}
				if err != nil {
					return nil, err
				}
				points = append(points, p)
			}
		}
		return points, nil
	}
	var all []detection
	for _, method := range []struct {
		name        string
		temperature float64
		chains      int
		burn, draws int
		thin        int
	}{
		{name: methodBase},
		{methodSGD, 0, 1, s.Sampled - 1, 1, 1},
		{methodSerial, 1, 1, s.Sampled - 1, s.Draws, max(1, s.Sampled/s.Draws)},
		{methodParallel, 1, s.Chains, s.Sampled - 1, 1, 1},
	} {
		points := []infer.Params{base.at}
		if method.chains > 0 {
			if points, err = sample(method.name, method.temperature, method.chains, method.burn, method.draws,
				method.thin); err != nil {
				return nil, fmt.Errorf("%s: %w", method.name, err)
			}
		}
		d, err := m.detect(points, groups)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", method.name, err)
		}
		d.Method = method.name
		all = append(all, d)
	}
	return all, nil
}

// detect averages the predictions of points for English and Latin windows.
func (m *language) detect(points []infer.Params, groups [2]infer.Batch) (d detection, err error) {
	for g, b := range groups {
		n := b["x"].Shape()[0]
		length := m.length
		predictive, err := score.NewPredictive(n*length, vocab)
		if err != nil {
			return d, err
		}
		for _, p := range points {
			rows, err := logProbabilities(m.net.Forward, p, b["x"])
			if err != nil {
				return d, err
			}
			if err := predictive.Add(rows); err != nil {
				return d, err
			}
		}
		labels, err := torch.ToSlice[int](b["y"])
		if err != nil {
			return d, err
		}
		s, err := score.Score(predictive.LogMean(), labels)
		if err != nil {
			return d, err
		}
		if g == 0 {
			d.English = s.LogLoss
		} else {
			d.Latin = s.LogLoss
		}
		u := predictive.Uncertainty()
		for i := range n {
			mean := make([]float64, kinds)
			for _, c := range u[i*length : (i+1)*length] {
				mean[total] += c.Total / float64(length)
				mean[aleatoric] += c.Aleatoric / float64(length)
				mean[epistemic] += c.Epistemic / float64(length)
			}
			d.Uncertainty[g] = append(d.Uncertainty[g], mean)
		}
	}
	if d.Total, err = d.auroc(total); err != nil {
		return d, err
	}
	if d.Epistemic = -1; len(points) > 1 {
		d.Epistemic, err = d.auroc(epistemic)
	}
	return d, err
}
