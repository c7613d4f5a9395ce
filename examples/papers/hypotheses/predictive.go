package main

import (
	"context"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/torch"
)

// histograms is a trial: the classes that networks predict that are drawn from the prior. The classes of one network
// are its probabilities on average over the test images (Wenzel et al. 2020, section 5.2).
type histograms struct {
	Hidden   []int   `json:"hidden"`
	Prior    priorOf `json:"prior"`
	Networks int     `json:"networks"`
	Seed     uint64  `json:"seed"`
}

func (h histograms) kind() string { return "prior" }

func (h histograms) run(context.Context) (values, error) {
	all, err := h.classes()
	if err != nil {
		return nil, err
	}
	v := values{}
	for _, classes := range all {
		v["largest"] += slices.Max(classes) / float64(h.Networks)
		v["entropy"] += entropy(classes) / float64(h.Networks)
	}
	average := averageOf(all)
	v["entropy_average"], v["largest_average"] = entropy(average), slices.Max(average)
	return v, nil
}

// classes are those of each network.
func (h histograms) classes() (all [][]float64, err error) {
	t, err := digitsTask(1, h.Hidden, h.Prior, false)
	if err != nil {
		return nil, err
	}
	streams := torch.NewStreams(h.Seed, h.Networks)
	p, err := t.Prior.Draw(&streams)
	if err != nil {
		return nil, err
	}
	flat, err := p.Values()
	if err != nil {
		return nil, err
	}
	for d := t.Net.NumParams(); len(flat) > 0; flat = flat[d:] {
		rows, err := t.Logits(flat[:d])
		if err != nil {
			return nil, err
		}
		all = append(all, meanProbabilities(rows))
	}
	return all, nil
}

// averageOf is the average of the networks' classes.
func averageOf(all [][]float64) []float64 {
	average := make([]float64, len(all[0]))
	for _, classes := range all {
		for i, c := range classes {
			average[i] += c / float64(len(all))
		}
	}
	return average
}

// meanProbabilities are those of the classes, over the cases.
func meanProbabilities(logits [][]float64) []float64 {
	out := make([]float64, len(logits[0]))
	for _, z := range logits {
		most, sum := math.Inf(-1), 0.0
		for _, v := range z {
			most = max(most, v)
		}
		for _, v := range z {
			sum += math.Exp(v - most)
		}
		for i, v := range z {
			out[i] += math.Exp(v-most) / sum / float64(len(logits))
		}
	}
	return out
}

func entropy(p []float64) (h float64) {
	for _, v := range p {
		if v > 0 {
			h -= v * math.Log(v)
		}
	}
	return h
}
