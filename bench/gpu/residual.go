package main

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/models/nn"
	"github.com/kelvin-ppl/kelvin/models/nn/layers"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// residual are short runs of ATMC on ResNet-20 with each norm, as examples/papers/atmc makes them: minibatches with
// flips and crops, updates, and predictions, of which those of batch normalisation have moments of the data. They are
// small and in float64, so that what differs is not rounding.
func residual() (list []agreement) {
	for _, c := range []struct {
		name  string
		norm  nn.Layer
		start nn.Scheme
	}{
		{"filter response normalisation", layers.FRN{}, nn.KaimingNormal(nn.GainReLU)},
		{"batch normalisation", layers.BatchNorm{Batch: true}, nn.KaimingNormal(nn.GainReLU)},
		{"no norm", nn.Sequential{}, layers.Fixup{}.Scheme},
	} {
		list = append(list, agreement{"networks: 3 updates of ATMC on ResNet-20, " + c.name, updates,
			func(device gotch.Device) (numbers []float64, err error) {
				err = torch.Do(func(*torch.Scope) error {
					numbers, err = trained(device, c.norm, c.start)
					return err
				})
				return numbers, err
			}})
	}
	return list
}

// trained is the last point of a run, and its logits for images that it has not seen.
func trained(device gotch.Device, norm nn.Layer, start nn.Scheme) ([]float64, error) {
	const data, tests, batch, side = 32, 8, 16, 16
	build := func(norm nn.Layer) (*nn.Network, error) {
		return layers.ResNet20{Size: side, Filters: 4, Norm: norm}.Build()
	}
	net, err := build(norm)
	if err != nil {
		return nil, err
	}
	images := func(n, at int64) (*ts.Tensor, error) {
		pixels := make([]float64, n*3*side*side)
		for i := range pixels {
			pixels[i] = math.Sin(1.3 * float64(i+int(at)))
		}
		return torch.FromSliceOn(device, gotch.Double, pixels, n, 3, side, side)
	}
	labels := make([]int64, data)
	for i := range labels {
		labels[i] = int64(7*i) % 10
	}
	x, err := images(data, 0)
	if err != nil {
		return nil, err
	}
	unseen, err := images(tests, 5)
	if err != nil {
		return nil, err
	}
	y, err := torch.FromSliceOn(device, gotch.Int64, labels)
	if err != nil {
		return nil, err
	}
	batches, err := infer.Minibatches(infer.Batch{"x": x, "y": y}, infer.MinibatchOptions{Size: batch, Seed: 3})
	if err != nil {
		return nil, err
	}
	if batches, err = (nn.Augment{Flip: true, Pad: 2}).Batches(batches, "x", 4); err != nil {
		return nil, err
	}
	prior, err := nn.NewPrior(net, nn.Same(nn.Normal(1)))
	if err != nil {
		return nil, err
	}
	target := infer.Mean(func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		fit := dist.CategoricalLogits(net.Forward(p, b.Get("x"))).LogProb(b.Get("y")).Mean()
		return fit.Add(prior.LogDensity(p).Div(data)), nil
	}, data)
	transform, err := sgmcmc.ATMC{LR: infer.Constant(0.03), Speed: 0.6}.Build(target)
	if err != nil {
		return nil, err
	}
	streams := torch.NewStreams(20, 1)
	p, err := nn.Init(net, start, &streams)
	if err != nil {
		return nil, err
	}
	if p, err = p.To(device, gotch.Double); err != nil {
		return nil, err
	}
	state, err := infer.Init(transform, p, 4)
	if err != nil {
		return nil, err
	}
	defer func() { infer.Free(state) }()
	for range 3 {
		b, err := batches.Next()
		if err != nil {
			return nil, err
		}
		next, _, err := infer.Advance(transform, state, b)
		if err != nil {
			return nil, err
		}
		state = next
	}
	p = state.Position()
	numbers, err := p.Values()
	if err != nil {
		return nil, err
	}
	if b, ok := norm.(layers.BatchNorm); ok && b.Batch {
		frozen, err := build(layers.BatchNorm{})
		if err != nil {
			return nil, err
		}
		if p, err = layers.FreezeMoments(net, frozen, p, torch.Of(x)); err != nil {
			return nil, err
		}
		net = frozen
	}
	logits, err := net.Predict(p, torch.Of(unseen), nil)
	if err != nil {
		return nil, fmt.Errorf("predictions: %w", err)
	}
	return append(numbers, logits.Values()...), nil
}
