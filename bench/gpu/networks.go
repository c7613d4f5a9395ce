package main

import (
	"math/rand/v2"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/models/nn"
	"github.com/kelvin-ppl/kelvin/models/nn/layers"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
)

// architecture is a network that step.py has too.
type architecture struct {
	name, key string // key: what step.py calls it
	network   interface{ Build() (*nn.Network, error) }
	batch     int
	data      int // of which the batch is a part
}

var architectures = []architecture{
	{"ResNet-20, batch of 128", "resnet", layers.ResNet20{Norm: layers.BatchNorm{Batch: true}}, 128, 50000},
	{"CNN-LSTM, batch of 32", "cnnlstm", nn.CNNLSTM{}, 32, 25000},
}

// training is a network with made-up data, in float32 on a device; x and y are those data in main memory.
type training struct {
	architecture
	x, y   []float64
	shape  []int // of x
	target infer.Target
	batch  infer.Batch
	start  infer.Params
}

func (a architecture) on(device gotch.Device) (*training, error) {
	net, err := a.network.Build()
	if err != nil {
		return nil, err
	}
	t := &training{architecture: a, shape: append([]int{a.batch}, net.In()...)}
	rng := rand.New(rand.NewPCG(32, 128))
	scheme, dtype := nn.PyTorch(), gotch.Int64
	draw := func() float64 { return float64(rng.Int64N(int64(net.Sites()[0].Shape[0]))) } // a token
	if a.key == "resnet" {
		draw, scheme, dtype = rng.NormFloat64, nn.KaimingNormal(nn.GainReLU), gotch.Float
	}
	n := 1
	for _, size := range t.shape {
		n *= size
	}
	t.x, t.y = make([]float64, n), make([]float64, a.batch)
	for i := range t.x {
		t.x[i] = draw()
	}
	for i := range t.y {
		t.y[i] = float64(rng.Int64N(int64(net.Out()[0])))
	}
	x, err := torch.FromSliceOn(device, dtype, t.x, t.shape...)
	if err != nil {
		return nil, err
	}
	y, err := torch.FromSliceOn(device, gotch.Int64, t.y, a.batch)
	if err != nil {
		return nil, err
	}
	t.batch = infer.Batch{"x": x, "y": y}
	streams := torch.NewStreams(20, 1)
	if t.start, err = nn.Init(net, scheme, &streams); err != nil {
		return nil, err
	}
	if t.start, err = t.start.To(device, gotch.Float); err != nil {
		return nil, err
	}
	prior, err := nn.NewPrior(net, nn.Same(nn.Normal(1)))
	if err != nil {
		return nil, err
	}
	t.target = infer.Mean(func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		fit := dist.CategoricalLogits(net.Forward(p, b.Get("x"))).LogProb(b.Get("y")).Mean()
		return fit.Add(prior.LogDensity(p).Div(float64(a.data))), nil
	}, a.data)
	return t, nil
}

// method is the one that is measured, with the friction that step.py has.
func (t *training) method() infer.Method {
	return sgmcmc.SGHMC{LR: infer.Constant(rate), Alpha: infer.Constant(alpha)}
}
