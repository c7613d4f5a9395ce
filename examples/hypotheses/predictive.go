package main

import (
	"context"
	"math"

	"github.com/kelvin-ppl/kelvin/torch"
)

// histograms is a trial: the classes that networks predict that are drawn from the prior. The classes of one network
// are its probabilities on average over the test images (Wenzel et al. 2020, section 5.2).
type histograms struct {
	Hidden   []int64 `json:"hidden"`
	Prior    priorOf `json:"prior"`
	Networks int     `json:"networks"`
	Seed     uint64  `json:"seed"`
}

func (h histograms) kind() string { return "prior" }

func (h histograms) run(context.Context) (values, error) {
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
	v := values{}
	var average []float64
	for d := t.Net.NumParams(); len(flat) > 0; flat = flat[d:] {
		rows, err := t.Logits(flat[:d])
		if err != nil {
			return nil, err
		}
		classes := meanProbabilities(rows)
		largest := 0.0
		if average == nil {
			average = make([]float64, len(classes))
		}
		for i, c := range classes {
			largest = max(largest, c)
			average[i] += c / float64(h.Networks)
		}
		v["largest"] += largest / float64(h.Networks)
		v["entropy"] += entropy(classes) / float64(h.Networks)
	}
	v["entropy_average"] = entropy(average)
	for _, c := range average {
		v["largest_average"] = max(v["largest_average"], c)
	}
	return v, nil
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
