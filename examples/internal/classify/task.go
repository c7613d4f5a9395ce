// Package classify has what the examples with classifiers share: a network with a prior and data, scores of predictions
// that are averaged over networks, and temperatures that say whether a posterior was simulated.
package classify

import (
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/models/nn"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"gonum.org/v1/gonum/floats"
)

// Set are inputs, [n, in...], and their classes, [n].
type Set struct {
	X      torch.Tensor
	Labels []int
}

// Task is a network, its prior, data to train with and data to score on. All tensors are on the device of the training
// inputs.
type Task struct {
	Net    *nn.Network
	Prior  *nn.Prior
	Train  infer.Batch // "x", [N, in...], and "y", [N]
	N      int
	Test   torch.Tensor // [cases, in...]
	Labels []int        // of the test data
	DType  gotch.DType
	device gotch.Device
}

// New makes a task on the device of the training inputs, where the test inputs must be too; without any it is in main
// memory. Points have a type of their own, because inputs may be tokens.
func New(net *nn.Network, prior nn.Scheme, train, test Set, dtype gotch.DType) (*Task, error) {
	t := &Task{Net: net, N: len(train.Labels), Test: test.X, Labels: test.Labels, DType: dtype, device: torch.CPU}
	var err error
	if train.X != (torch.Tensor{}) {
		if t.device, err = torch.DeviceOf(train.X); err != nil {
			return nil, err
		}
	}
	if t.Prior, err = nn.NewPrior(net, prior); err != nil {
		return nil, err
	}
	if t.Prior, err = t.Prior.To(t.device, dtype); err != nil {
		return nil, err
	}
	t.Train = infer.Batch{"x": train.X}
	t.Train["y"], err = torch.FromSliceOn(t.device, gotch.Int64, train.Labels)
	return t, err
}

// LogPosterior is the mean log posterior over the training data: that of a batch of them.
func (t *Task) LogPosterior(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
	logLik := dist.CategoricalLogits(t.Net.Forward(p, b.Get("x"))).LogProb(b.Get("y")).Mean()
	return logLik.Add(t.Prior.LogDensity(p).Div(float64(t.N))), nil
}

// Program is the posterior, started at points.
func (t *Task) Program(starts infer.Params) infer.Program {
	return infer.Handwritten(infer.Mean(t.LogPosterior, t.N), starts, t.Train)
}

// Starts are random points to start K chains from.
func (t *Task) Starts(scheme nn.Scheme, seed uint64, k int) (infer.Params, error) {
	streams := torch.NewStreams(seed, k)
	p, err := nn.Init(t.Net, scheme, &streams)
	if err != nil {
		return p, err
	}
	return p.To(t.device, t.DType)
}

// Point is a point of the network, of the task's type and on its device.
func (t *Task) Point(flat []float64) (infer.Params, error) {
	p, err := infer.NewParams(t.Net.Layout(), flat)
	if err != nil {
		return p, err
	}
	return p.To(t.device, t.DType)
}

// block is how many cases are predicted at once.
const block = 2000

// Logits are those of the test data at one point: [case][class].
func (t *Task) Logits(flat []float64) ([][]float64, error) { return t.LogitsOf(flat, t.Test) }

// LogitsOf are those of other inputs.
func (t *Task) LogitsOf(flat []float64, x torch.Tensor) (rows [][]float64, err error) {
	n := x.T().MustSize()[0]
	for from := 0; from < int(n); from += block {
		err = torch.Do(func(*torch.Scope) error {
			p := torch.Must(t.Point(flat))
			part := x.T().MustNarrow(0, int64(from), int64(min(block, int(n)-from)), false)
			out := torch.Must(t.Net.Predict(p, torch.Of(part), nil))
			values := out.Values()
			for classes := len(values) / min(block, int(n)-from); len(values) > 0; values = values[classes:] {
				rows = append(rows, values[:classes])
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// Predictions are the log probabilities for the test data of the draws of a chain, [draw][case][class].
func (t *Task) Predictions(d *draws.Draws, chain int) ([][][]float64, error) {
	return t.PredictionsOf(d, chain, t.Test)
}

// PredictionsOf are those for other inputs.
func (t *Task) PredictionsOf(d *draws.Draws, chain int, x torch.Tensor) (all [][][]float64, err error) {
	all = make([][][]float64, d.Len(chain))
	for i := range all {
		if all[i], err = t.LogProbabilities(d.Row(chain, i), x); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// LogProbabilities are those of the classes at one point, [case][class].
func (t *Task) LogProbabilities(flat []float64, x torch.Tensor) ([][]float64, error) {
	rows, err := t.LogitsOf(flat, x)
	for _, z := range rows {
		floats.AddConst(-floats.LogSumExp(z), z)
	}
	return rows, err
}
