package main

import (
	"math"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/models/nn"
	"github.com/kelvin-ppl/kelvin/models/nn/layers"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
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
			func(device gotch.Device) ([]float64, error) {
				var numbers []float64
				err := torch.Do(func(*torch.Scope) error {
					numbers = trained(device, c.norm, c.start)
					return nil
				})
				return numbers, err
			}})
	}
	return list
}

// trained is the last point of a run, and its logits for images that it has not seen. It is called inside torch.Do,
// which returns what it panics with.
func trained(device gotch.Device, norm nn.Layer, start nn.Scheme) []float64 {
	const data, tests, batch, side = 32, 8, 16, 16
	build := func(norm nn.Layer) *nn.Network {
		return torch.Must(layers.ResNet20{Size: side, Filters: 4, Norm: norm}.Build())
	}
	net := build(norm)
	images := func(n, at int) torch.Tensor {
		pixels := make([]float64, n*3*side*side)
		for i := range pixels {
			pixels[i] = math.Sin(1.3 * float64(i+at))
		}
		return torch.Must(torch.FromSliceOn(device, gotch.Double, pixels, n, 3, side, side))
	}
	labels := make([]int, data)
	for i := range labels {
		labels[i] = (7 * i) % 10
	}
	x, unseen := images(data, 0), images(tests, 5)
	y := torch.Must(torch.FromSliceOn(device, gotch.Int64, labels))
	batches := torch.Must(infer.Minibatches(infer.Batch{"x": x, "y": y}, infer.MinibatchOptions{Size: batch, Seed: 3}))
	batches = torch.Must((nn.Augment{Flip: true, Pad: 2}).Batches(batches, "x", 4))
	prior := torch.Must(nn.NewPrior(net, nn.Same(nn.Normal(1))))
	target := infer.Mean(func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		fit := dist.CategoricalLogits(net.Forward(p, b.Get("x"))).LogProb(b.Get("y")).Mean()
		return fit.Add(prior.LogDensity(p).Div(data)), nil
	}, data)
	transform := torch.Must(sgmcmc.ATMC{LR: infer.Constant(0.03), Speed: 0.6}.Build(target))
	streams := torch.NewStreams(20, 1)
	p := torch.Must(torch.Must(nn.Init(net, start, &streams)).To(device, gotch.Double))
	state := torch.Must(infer.Init(transform, p, 4))
	defer func() { infer.Free(state) }()
	for range 3 {
		next, _, err := infer.Advance(transform, state, torch.Must(batches.Next()))
		state = torch.Must(next, err)
	}
	p = state.Position()
	numbers := torch.Must(p.Values())
	if b, ok := norm.(layers.BatchNorm); ok && b.Batch {
		frozen := build(layers.BatchNorm{})
		p, net = torch.Must(layers.FreezeMoments(net, frozen, p, x)), frozen
	}
	return append(numbers, torch.Must(net.Predict(p, unseen, nil)).Values()...)
}
