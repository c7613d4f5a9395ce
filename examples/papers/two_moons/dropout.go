package main

import (
	"context"
	"strconv"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/models/nn"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
)

// dropoutLayers are the names of the dropout layers in the network that has them: one after each activation.
func (m model) dropoutLayers() (names []string) {
	for i := range len(m.mlp.Sizes) - 2 {
		names = append(names, strconv.Itoa(3*i+2))
	}
	return names
}

// masked adds masks of zeros and ones for the dropout layers to each batch. They are a function of the seed and the
// batch's place, as the batches are, so that a run can be repeated.
type masked struct {
	infer.Batches
	model model
	keep  float64 // of the units
	seed  uint64
}

func (m masked) Next() (infer.Batch, error) {
	at := m.Position()
	b, err := m.Batches.Next()
	if err != nil {
		return nil, err
	}
	n, err := b.Size()
	if err != nil {
		return nil, err
	}
	source := torch.NewSource(m.seed, uint64(at.Epoch)<<32+uint64(at.Index))
	out := infer.Batch{"x": b["x"], "y": b["y"]}
	for i, layer := range m.model.dropoutLayers() {
		u, err := source.Uniform([]int{n, m.model.mlp.Sizes[i+1]}, gotch.Double, torch.CPU)
		if err != nil {
			return nil, err
		}
		out["mask."+layer] = u.Lt(m.keep)
	}
	return out, nil
}

// dropout trains the network with dropout, from the start of the MAP, and keeps dropout on at prediction: each draw is
// a set of masks.
func (t *task) dropout(ctx context.Context) (predictor, error) {
	mlp := t.model.mlp
	mlp.Keep = t.tuned.Keep
	net, err := mlp.Build()
	if err != nil {
		return nil, err
	}
	logPosterior := func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		masks := map[string]torch.Tensor{}
		for _, layer := range t.model.dropoutLayers() {
			masks[layer] = b.Get("mask." + layer)
		}
		logits := net.ForwardWith(p, b.Get("x"), nn.Run{Masks: masks}).Squeeze(-1)
		return t.model.mean(p, outer(logits, b)), nil
	}
	streams := torch.NewStreams(t.seed, 1)
	start, err := nn.Init(net, nn.KaimingNormal(nn.GainReLU), &streams)
	if err != nil {
		return nil, err
	}
	batches, err := t.batches()
	if err != nil {
		return nil, err
	}
	result, err := infer.Run(ctx, t.program(logPosterior, start), optim.Adam{LR: infer.Constant(adamRate)},
		infer.Options{Chains: 1, Warmup: t.adamUpdates(), Draws: infer.None,
			Batches: masked{batches, t.model, mlp.Keep, t.seed + 1}})
	if err != nil {
		return nil, err
	}
	mode := result.State.Position()
	return func(x torch.Tensor) (prediction, error) {
		streams := torch.NewStreams(t.seed+2, t.samples)
		return predictWith(x, func(part torch.Tensor) (torch.Tensor, error) {
			return net.Predict(mode, part, &streams)
		})
	}, nil
}
