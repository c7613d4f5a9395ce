package main

import (
	"math"

	"github.com/kelvin-ppl/kelvin/diag/score"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/examples/internal/classify"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/kelvin-ppl/kelvin/infer/laplace"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
)

// predict gives probabilities [image][digit].
type predict func(x torch.Tensor) ([][]float64, error)

// fitted is a method that has been fitted.
type fitted struct {
	name    string
	predict predict
}

type task struct{ *classify.Task }

// average is the mean of the probabilities over all draws of all chains.
func (t *task) average(d *draws.Draws) predict {
	return func(x torch.Tensor) ([][]float64, error) {
		mean, err := score.NewPredictive(int(x.T().MustSize()[0]), classes)
		if err != nil {
			return nil, err
		}
		for k := range d.Chains() {
			all, err := t.PredictionsOf(d, k, x)
			if err != nil {
				return nil, err
			}
			for _, network := range all {
				if err := mean.Add(network); err != nil {
					return nil, err
				}
			}
		}
		return mean.Mean(), nil
	}
}

// laplace is the normal distribution around a mode whose precision is the curvature there, by Kronecker factors; logits
// are those of the linearised network, and probabilities are averages over draws of them.
func (t *task) laplace(mode []float64, seed uint64) (predict, error) {
	network := func(p infer.Params, b infer.Batch, linear laplace.Linear) torch.Tensor {
		return t.Net.ForwardLinear(p, b.Get("x"), linear)
	}
	outer := func(z torch.Tensor, b infer.Batch) torch.Tensor { return dist.CategoricalLogits(z).LogProb(b.Get("y")) }
	precision := map[string]float64{} // of the prior, by site
	for name, law := range t.Prior.Laws() {
		precision[name] = 1 / (law.SD() * law.SD())
	}
	kfac := laplace.KFAC{Network: network, Layers: t.Net.LinearLayers(), Outer: outer,
		PriorPrecision: laplace.PerSite(precision)}
	transform, err := kfac.Build(infer.Target{})
	if err != nil {
		return nil, err
	}
	p, err := infer.NewParams(t.Net.Layout(), mode)
	if err != nil {
		return nil, err
	}
	if p, err = p.To(torch.CPU, gotch.Float); err != nil {
		return nil, err
	}
	state, err := transform.Init(p)
	if err != nil {
		return nil, err
	}
	if state, _, err = transform.Update(state, t.Train); err != nil {
		return nil, err
	}
	return func(x torch.Tensor) (rows [][]float64, err error) {
		mean, cov, err := state.(laplace.KFACState).LinearizedNetwork(network, infer.Batch{"x": x},
			curvature.LinearizedOptions{})
		if err != nil {
			return nil, err
		}
		streams := torch.NewStreams(seed+3000, 1)
		probabilities, err := laplace.Softmax(mean, cov, 1000, &streams)
		if err != nil {
			return nil, err
		}
		flat, err := torch.ToSlice[float64](probabilities)
		for ; len(flat) > 0; flat = flat[classes:] {
			rows = append(rows, flat[:classes])
		}
		return rows, err
	}, nil
}

// entropy is that of the probabilities of each image, in nats.
func entropy(p [][]float64) []float64 {
	out := make([]float64, len(p))
	for i, row := range p {
		for _, v := range row {
			if v > 0 {
				out[i] -= v * math.Log(v)
			}
		}
	}
	return out
}
