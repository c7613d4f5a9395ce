package main

import (
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/examples/internal/digits"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/models/nn"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// dtype is the type of all tensors. float32 takes about an eighth less time than float64 here: the matrices are small.
const dtype = gotch.Float

// task is a network, its posterior given training data, and test data.
type task struct {
	net          *nn.Network
	prior        *nn.Prior
	logPosterior infer.LogPosterior // the mean over the training data
	train        infer.Batch        // "x", [n, inputs], and "y", [n]
	n            int64
	test         *ts.Tensor // [cases, inputs]
	labels       []int      // of the test data
}

// newTask is classification by a perceptron with ReLU and the prior N(0, I) on all weights and biases.
func newTask(hidden []int64, classes int64, train, test digits.Data) (*task, error) {
	inputs := int64(len(train.Pixels) / train.Len())
	net, err := nn.MLP{Sizes: append(append([]int64{inputs}, hidden...), classes)}.Build()
	if err != nil {
		return nil, err
	}
	t := &task{net: net, n: int64(train.Len()), labels: test.Labels}
	if t.prior, err = nn.NewPrior(net, nn.Same(nn.Normal(1))); err != nil {
		return nil, err
	}
	y := make([]int64, t.n)
	for i, label := range train.Labels {
		y[i] = int64(label)
	}
	t.train = infer.Batch{}
	if t.train["x"], err = torch.FromSliceOn(torch.CPU, dtype, train.Pixels, t.n, inputs); err != nil {
		return nil, err
	}
	if t.train["y"], err = torch.FromSlice(y); err != nil {
		return nil, err
	}
	if t.test, err = torch.FromSliceOn(torch.CPU, dtype, test.Pixels, int64(test.Len()), inputs); err != nil {
		return nil, err
	}
	t.logPosterior = func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		logits := t.net.Forward(p, b.Get("x"))
		logLik := dist.CategoricalLogits(logits).LogProb(b.Get("y")).Mean()
		return logLik.Add(t.prior.LogDensity(p).Div(float64(t.n))), nil
	}
	return t, nil
}

// starts are random points to start K chains from, as networks are usually started: small weights, biases 0.
func (t *task) starts(seed uint64, k int) (infer.Params, error) {
	streams := torch.NewStreams(seed, k)
	p, err := nn.Init(t.net, nn.KaimingNormal(nn.GainReLU), &streams)
	if err != nil {
		return p, err
	}
	return p.To(torch.CPU, dtype)
}

// logits are those of the test data at one point: [case][class].
func (t *task) logits(flat []float64) (rows [][]float64, err error) {
	err = torch.Do(func(*torch.Scope) error {
		p, err := infer.NewParams(t.net.Layout(), flat)
		if err != nil {
			return err
		}
		if p, err = p.To(torch.CPU, dtype); err != nil {
			return err
		}
		out, err := t.net.Predict(p, torch.Of(t.test), nil)
		if err != nil {
			return err
		}
		values := out.Values()
		classes := len(values) / len(t.labels)
		for ; len(values) > 0; values = values[classes:] {
			rows = append(rows, values[:classes])
		}
		return nil
	})
	return rows, err
}
