package main

import (
	"context"
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/models/nn"
	"github.com/kelvin-ppl/kelvin/models/nn/layers"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
)

const dtype = gotch.Float

// language is a transformer of characters.
type language struct {
	net    *nn.Network
	length int
	last   string // the name of its last attention layer
}

func newLanguage(s settings) (*language, error) {
	net, err := layers.Transformer{Vocab: vocab, Length: s.Length, Width: s.Width, Heads: 4,
		Blocks: s.Blocks}.Build()
	if err != nil {
		return nil, err
	}
	return &language{net: net, length: s.Length, last: fmt.Sprintf("block_%d.0.body.1.", s.Blocks)}, nil
}

// forward are logits for tokens [n, length], at a point of whatever is inferred.
type forward func(p infer.Params, x torch.Tensor) torch.Tensor

// perWindow is the log likelihood of each window of a batch, the sum over its characters: [n].
func perWindow(f forward) func(p infer.Params, b infer.Batch) torch.Tensor {
	return func(p infer.Params, b infer.Batch) torch.Tensor {
		return dist.CategoricalLogits(f(p, b.Get("x"))).LogProb(b.Get("y")).Sum(-1)
	}
}

// posterior is a target whose data are the windows, with a log prior.
func posterior(f forward, prior func(infer.Params) torch.Tensor, n int) infer.Target {
	logLik := perWindow(f)
	return infer.Mean(func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		return logLik(p, b).Mean().Add(prior(p).Div(float64(n))), nil
	}, n)
}

// normal is the log density of N(0, sd²), without its constant.
func normal(sd float64) func(infer.Params) torch.Tensor {
	return func(p infer.Params) torch.Tensor {
		flat := p.Flat
		return flat.Dot(flat).Mul(-0.5 / (sd * sd))
	}
}

// trained is a point and what evaluates the network there.
type trained struct{ at infer.Params }

// climb looks for the mode by Adam with steps that fall to nothing.
func climb(ctx context.Context, target infer.Target, start infer.Params, data infer.Batch, updates, batch int,
	lr float64, seed uint64, checkpoint *infer.Checkpoint) (infer.Params, error) {
	n := data["x"].Shape()[0]
	batches, err := infer.Minibatches(data, infer.MinibatchOptions{Size: min(batch, n), Seed: seed, DropLast: true})
	if err != nil {
		return infer.Params{}, err
	}
	r, err := infer.Run(ctx, infer.Handwritten(target, start, data), optim.Adam{LR: infer.Linear(lr, 0, 0, updates)},
		infer.Options{Chains: 1, Warmup: updates, Draws: infer.None, Start: start, Batches: batches, Seed: seed,
			Observer: infer.Silent, Checkpoint: checkpoint})
	if err != nil {
		return infer.Params{}, err
	}
	return infer.Params{Layout: r.Last.Layout, Flat: r.Last.Flat.Reshape(-1)}, nil
}

// base trains on the first text.
func (m *language) base(ctx context.Context, s settings, texts map[string]text, dir, identity string) (*trained,
	error) {
	data, err := windows(texts[baseText].train, m.length, m.length/2)
	if err != nil {
		return nil, err
	}
	streams := torch.NewStreams(s.Seed+1000, 1)
	start, err := nn.Init(m.net, nn.PerSite(map[string]nn.Law{"tokens.weight": nn.Normal(0.1),
		"positions.weight": nn.Normal(0.1)}, nn.PyTorch()), &streams)
	if err != nil {
		return nil, err
	}
	if start, err = start.To(torch.CPU, dtype); err != nil {
		return nil, err
	}
	n := data["x"].Shape()[0]
	at, err := climb(ctx, posterior(m.net.Forward, normal(1), n), start, data, s.Base, s.Batch, 3e-3, s.Seed,
		&infer.Checkpoint{Dir: dir, Resume: true, Every: 100, Model: identity})
	return &trained{at: at}, err
}

// loss is the mean negative log likelihood of a character of some windows.
func loss(f forward, p infer.Params, data infer.Batch) (mean float64, err error) {
	err = torch.Do(func(*torch.Scope) error {
		return torch.NoGrad(func() error {
			x := data["x"].T().MustSize()
			mean = -perWindow(f)(p, data).Sum().Item() / float64(x[0]*x[1])
			return nil
		})
	})
	return mean, err
}

// logProbabilities are those of the characters after each of some windows, [window · length][vocab].
func logProbabilities(f forward, p infer.Params, x torch.Tensor) (rows [][]float64, err error) {
	err = torch.Do(func(*torch.Scope) error {
		return torch.NoGrad(func() error {
			for v := f(p, x).LogSoftmax(-1).Values(); len(v) > 0; v = v[vocab:] {
				rows = append(rows, v[:vocab])
			}
			return nil
		})
	})
	for _, row := range rows { // rounding to float32 leaves sums of probabilities a little off 1
		sum := 0.0
		for _, l := range row {
			sum += math.Exp(l)
		}
		for i := range row {
			row[i] -= math.Log(sum)
		}
	}
	return rows, err
}
