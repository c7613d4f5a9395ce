package main

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/diag/score"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/examples/internal/cifar"
	"github.com/kelvin-ppl/kelvin/examples/internal/classify"
	"github.com/kelvin-ppl/kelvin/examples/internal/grid"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/models/nn"
	"github.com/kelvin-ppl/kelvin/models/nn/layers"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
)

// The methods, in the order of the table.
var methods = []string{"SGD", "SGHMC", "SGNHT", "ATMC"}

// task is the network and its data.
type task struct {
	*classify.Task
	settings settings
	side     int            // of the images
	start    nn.Scheme      // of a chain
	frozen   *classify.Task // the same with a network that holds its moments, which predicts; nil without moments
}

// newTask puts the data on a device: the points, the batches with their changes, and the predictions follow them there.
func newTask(s settings, device gotch.Device, train, test cifar.Data) (*task, error) {
	var sets [2]classify.Set
	for i, d := range []cifar.Data{train, test} {
		var err error
		sets[i].Labels = d.Labels
		if sets[i].X, err = torch.FromSliceOn(device, gotch.Float, d.Pixels, d.Len(), cifar.Channels,
			d.Side, d.Side); err != nil {
			return nil, err
		}
	}
	t := &task{settings: s, side: train.Side}
	if s.Net != twenty {
		net, err := layers.ResNetPlusPlus{Size: t.side, Depth: s.Depth, Filters: s.Filters}.Build()
		if err != nil {
			return nil, err
		}
		t.start = layers.Fixup{Gain: 1, Last: 0.1}.Scheme
		t.Task, err = classify.New(net, layers.WeightNormPrior(5), sets[0], sets[1], gotch.Float)
		return t, err
	}
	normed := func(norm nn.Layer) (*classify.Task, error) {
		net, err := layers.ResNet20{Size: t.side, Depth: s.Depth, Filters: s.Filters, Norm: norm}.Build()
		if err != nil {
			return nil, err
		}
		return classify.New(net, nn.Same(nn.Normal(1)), sets[0], sets[1], gotch.Float)
	}
	var err error
	t.start = nn.KaimingNormal(nn.GainReLU)
	switch s.Norm {
	case batchNorm:
		if t.frozen, err = normed(layers.BatchNorm{}); err != nil {
			return nil, err
		}
		t.Task, err = normed(layers.BatchNorm{Batch: true})
	case noNorm:
		t.start = layers.Fixup{}.Scheme
		t.Task, err = normed(nn.Sequential{})
	default:
		t.Task, err = normed(layers.FRN{})
	}
	return t, err
}

// momentsOf is the number of training images that moments are of. They go through the network at once.
const momentsOf = 1000

// predictions are the log probabilities for the test images of the draws, [draw][case][class]. Those of a network with
// batch normalisation have the moments of training images, so that they do not depend on the other test images.
func (t *task) predictions(d *draws.Draws) ([][][]float64, error) {
	if t.frozen == nil {
		return t.Predictions(d, 0)
	}
	x := t.Train["x"].T().MustNarrow(0, 0, int64(min(momentsOf, t.N)), false)
	all := make([][][]float64, d.Len(0))
	for i := range all {
		p, err := t.Point(d.Row(0, i))
		if err != nil {
			return nil, err
		}
		if p, err = layers.FreezeMoments(t.Net, t.frozen.Net, p, torch.Of(x)); err != nil {
			return nil, err
		}
		flat, err := p.Values()
		if err != nil {
			return nil, err
		}
		if all[i], err = t.frozen.LogProbabilities(flat, t.Test); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// result is what is stored of a run.
type result struct {
	Method   string `json:"method"`
	Seed     uint64 `json:"seed"`
	Networks int    `json:"networks"`
	Updates  int    `json:"updates"`

	Single     classify.Metrics `json:"single"` // of the last network
	Predictive classify.Metrics `json:"predictive"`
	Half       float64          `json:"nll_half"` // of the first half of the networks
	Bins       []bin            `json:"bins"`     // of the predictive
	// Of the ends of all epochs, over the friction that was set: see reading. 1 for samplers without thermostats.
	Readings int     `json:"friction_readings"`
	Friction float64 `json:"least_friction"`
	Xi       float64 `json:"least_xi"`
	Negative float64 `json:"negative_friction"` // the share of elements and readings
	Held     int     `json:"held"`
	Unstable bool    `json:"unstable,omitempty"` // of -tune: most updates were not finite, and there is nothing else
}

// bin is one of a reliability diagram.
type bin struct {
	Confidence float64 `json:"confidence"`
	Accuracy   float64 `json:"accuracy"`
	Count      int     `json:"count"`
}

// setting is a method with a learning rate and a momentum, both in the terms of SGD.
type setting struct {
	Method       string
	LR, Momentum float64
}

// The samplers have the numbers of SGD with momentum: with ε = √ℓ and mass 1 momenta lose 1 − μ in a step, and an
// element moves by √(ℓ/N) on average when it is only noise. ATMC's limit is 10/3 of that, as in the paper. PSGLD moves
// an element with a constant gradient by ℓ/100.
func (t *task) method(s setting, cycles infer.Cycles, updates int) (infer.Method, float64, error) {
	step := math.Sqrt(s.LR)
	friction := -math.Log(s.Momentum) / step
	temperature := infer.Constant(cmp.Or(t.settings.Temperature, 1))
	switch s.Method {
	case "SGD":
		return sgmcmc.SymplecticSGHMC{LR: infer.Cosine(s.LR, updates), Momentum: infer.Constant(s.Momentum),
			Temperature: infer.Constant(0)}, friction, nil
	case "SGHMC":
		m := sgmcmc.SymplecticSGHMC{LR: infer.Constant(s.LR), Momentum: infer.Constant(s.Momentum),
			Temperature: temperature}
		if t.settings.Prepared {
			cycles.From = t.settings.Start * t.epoch()
			m.Temperature, m.EstimateMass = infer.Ramp(temperature(0), cycles.From, cycles.Length), &sgmcmc.Estimate{}
		}
		m.Cycle = cycles.Cosine(1)
		return m, friction, nil
	case "SGNHT":
		return sgmcmc.SGNHT{LR: cycles.Cosine(step), Alpha: infer.Constant(friction), PerParameter: true,
			Temperature: temperature}, friction, nil
	case "ATMC":
		return sgmcmc.ATMC{LR: cycles.Cosine(step), Friction: infer.Constant(friction),
			Temperature: temperature, Speed: 10.0 / 3 / math.Sqrt(float64(t.N))}, friction, nil
	}
	if s.Method == psgld {
		return sgmcmc.PSGLD{LR: cycles.Cosine(s.LR / 100)}, 0, nil
	}
	return nil, 0, fmt.Errorf("no method %q", s.Method)
}

// cell is the run of a method with a seed.
func (t *task) cell(how setting, name string, seed uint64) grid.Cell[*result] {
	return grid.Cell[*result]{Name: name, Updates: t.settings.Epochs * t.epoch(),
		Run: func(ctx context.Context, dir, identity string, _ infer.Observer) (*result, error) {
			return t.run(ctx, dir, identity+name, how, seed)
		}}
}

// epoch is how many batches have seen all images; what is left of them is dropped.
func (t *task) epoch() int { return t.N / min(t.settings.Batch, t.N) }

// run makes the run of a method, or goes on with it, in a folder of its own.
func (t *task) run(ctx context.Context, dir, identity string, how setting, seed uint64) (*result, error) {
	name, s, epoch := how.Method, t.settings, t.epoch()
	updates := s.Epochs * epoch
	if name == "SGD" {
		updates = cmp.Or(s.SGDEpochs, s.Epochs) * epoch
	}
	cycles := infer.Cycles{Length: s.Cycle * epoch}
	method, friction, err := t.method(how, cycles, updates)
	if err != nil {
		return nil, err
	}
	// A cycle leaves a network at its end; those of the first half are warm-up. SGD has its last state alone. Every cycle
	// counts, not each fifth, as is the samplers' default.
	whole := s.Epochs / s.Cycle
	first := cmp.Or(s.Start/s.Cycle, whole/2)
	o := infer.Options{Chains: 1, Warmup: first * cycles.Length, Draws: whole - first, Thin: 1, Cycles: &cycles}
	if name == "SGD" {
		o = infer.Options{Chains: 1, Warmup: updates - 1, Draws: 1, Thin: 1}
	}
	start, err := t.Starts(t.start, seed+1000, 1)
	if err != nil {
		return nil, err
	}
	if o.Batches, err = infer.Minibatches(t.Train, infer.MinibatchOptions{Size: min(s.Batch, t.N), Seed: seed,
		DropLast: true}); err != nil {
		return nil, err
	}
	if s.Augment { // an eighth of the side at each edge, as is usual for images of 32 pixels
		change := nn.Augment{Flip: true, Pad: t.side / 8}
		if o.Batches, err = change.Batches(o.Batches, "x", seed+2000); err != nil {
			return nil, err
		}
	}
	frictions, err := newThermostat(dir, epoch, friction)
	if err != nil {
		return nil, err
	}
	o.Seed, o.Observer, o.DependentRows = seed, frictions, s.Norm == batchNorm
	o.Checkpoint = &infer.Checkpoint{Dir: dir, Resume: true, Every: 100, Model: identity}
	e, err := infer.Run(ctx, t.Program(start), method, o)
	if err != nil {
		return nil, err
	}
	if frictions.err != nil {
		return nil, frictions.err
	}
	logp, err := t.predictions(e.Draws)
	if err != nil {
		return nil, err
	}
	r := &result{Method: name, Seed: seed, Networks: len(logp), Updates: e.State.Steps(), Held: e.Held}
	r.frictions(frictions.readings)
	if r.Single, err = classify.Score(logp[len(logp)-1:], t.Labels); err != nil {
		return nil, err
	}
	if r.Predictive, err = classify.Score(logp, t.Labels); err != nil {
		return nil, err
	}
	half, err := classify.Score(logp[:max(1, len(logp)/2)], t.Labels)
	if err != nil {
		return nil, err
	}
	r.Half = half.NLL
	return r, r.reliability(logp, t.Labels)
}

// reliability has 8 bins of equal numbers of images, as the paper's figures.
func (r *result) reliability(logp [][][]float64, labels []int) error {
	predictive, err := score.NewPredictive(len(labels), cifar.Classes)
	if err != nil {
		return err
	}
	for _, network := range logp {
		if err := predictive.Add(network); err != nil {
			return err
		}
	}
	c, err := score.ClassCalibration(predictive.Mean(), labels, score.Binning{Bins: 8, EqualMass: true})
	if err != nil {
		return err
	}
	for _, b := range c.Bins {
		r.Bins = append(r.Bins, bin{Confidence: b.Confidence, Accuracy: b.Accuracy, Count: b.Cases})
	}
	return nil
}

// frictions are what the readings say of the run; 1 of a sampler without thermostats.
func (r *result) frictions(readings []reading) {
	r.Friction, r.Xi, r.Readings = 1, 1, len(readings)
	for i, one := range readings {
		if i == 0 {
			r.Friction, r.Xi = one.Friction, one.Xi
		}
		r.Friction, r.Xi = min(r.Friction, one.Friction), min(r.Xi, one.Xi)
		r.Negative += one.Negative / float64(len(readings))
	}
}
