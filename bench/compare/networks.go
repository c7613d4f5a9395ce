package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/kelvin-ppl/kelvin/bench"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/models/nn"
	"github.com/kelvin-ppl/kelvin/models/nn/layers"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
)

// architecture is a network that both sides have.
type architecture struct {
	name, key string // key: what networks.cpp calls it
	network   interface{ Build() (*nn.Network, error) }
	batch     int
	data      int // of which the batch is a part
}

// architectures are those that are measured.
var architectures = []architecture{
	{"CNN-LSTM, batch of 32", "cnnlstm", nn.CNNLSTM{}, 32, 25000},
	{"ResNet-20, batch of 128", "resnet", layers.ResNet20{Norm: layers.BatchNorm{Batch: true}}, 128, 50000},
}

// The step of both sides: gradient ascent with momentum.
const (
	stepRate     = 1e-4
	stepMomentum = 0.9
)

// training is a network on made-up data, here and in the C++ program.
type training struct {
	architecture
	target   infer.Target
	gradient infer.Gradient
	batch    infer.Batch
	start    infer.Params
	wait     func() error
}

// on gives both sides the network, with its parameters, its minibatch and its labels.
func (a architecture) on(cpp *native, device gotch.Device, dtype gotch.DType) (*training, error) {
	net, err := a.network.Build()
	if err != nil {
		return nil, err
	}
	name := map[gotch.DType]string{gotch.Double: "double", gotch.Float: "float"}[dtype]
	t := &training{architecture: a, batch: infer.Batch{}, wait: func() error { return nil }}
	if device != torch.CPU {
		t.wait = torch.Synchronize
	}
	rng := rand.New(rand.NewPCG(32, 128))
	shape, values := append([]int{a.batch}, net.In()...), "long"
	scheme := nn.PyTorch()
	draw := func() float64 { return float64(rng.Int64N(int64(net.Sites()[0].Shape[0]))) } // a token
	if a.key == "resnet" {
		draw, values, scheme = rng.NormFloat64, name, nn.KaimingNormal(nn.GainReLU)
	}
	put := func(key, dtype string, data []float64, shape ...int) error {
		if err := cpp.putAs(dtype, a.key+"."+key, data, shape...); err != nil {
			return err
		}
		types := map[string]gotch.DType{"double": gotch.Double, "float": gotch.Float, "long": gotch.Int64}
		t.batch[key], err = torch.FromSliceOn(device, types[dtype], data, shape...)
		return err
	}
	x, y := make([]float64, numel(shape)), make([]float64, a.batch)
	for i := range x {
		x[i] = draw()
	}
	for i := range y {
		y[i] = float64(rng.Int64N(int64(net.Out()[0])))
	}
	if err := put("x", values, x, shape...); err != nil {
		return nil, err
	}
	if err := put("y", "long", y, a.batch); err != nil {
		return nil, err
	}
	streams := torch.NewStreams(20, 1)
	if t.start, err = nn.Init(net, scheme, &streams); err != nil {
		return nil, err
	}
	if t.start, err = t.start.To(device, dtype); err != nil {
		return nil, err
	}
	theta, err := t.start.Values()
	if err != nil {
		return nil, err
	}
	if err := cpp.putAs(name, a.key+".theta", theta, len(theta)); err != nil {
		return nil, err
	}
	if err := cpp.net(a.key, a.key, a.data, net.Layout().Sites); err != nil {
		return nil, err
	}
	prior, err := nn.NewPrior(net, nn.Same(nn.Normal(1)))
	if err != nil {
		return nil, err
	}
	t.target = infer.Mean(func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		logLik := dist.CategoricalLogits(net.Forward(p, b.Get("x"))).LogProb(b.Get("y")).Mean()
		return logLik.Add(prior.LogDensity(p).Div(float64(a.data))), nil
	}, a.data)
	t.gradient, err = infer.NewGradient(t.target)
	return t, err
}

func numel(shape []int) int {
	n := 1
	for _, size := range shape {
		n *= size
	}
	return n
}

// evaluate is the gradient at the start.
func (t *training) evaluate() error {
	return torch.Do(func(*torch.Scope) error {
		if _, err := t.gradient.ValueAndGrad(t.start, t.batch, 0); err != nil {
			return err
		}
		return t.wait()
	})
}

// chain is a method on the network, from its start.
type chain struct {
	*training
	transform infer.Transform
	state     infer.State
}

func (t *training) chain(m infer.Method) (*chain, error) {
	c := &chain{training: t}
	var err error
	if c.transform, err = m.Build(t.target); err != nil {
		return nil, err
	}
	c.state, err = infer.Init(c.transform, t.start, 4)
	return c, err
}

// update makes one update.
func (c *chain) update() error {
	next, _, err := infer.Advance(c.transform, c.state, c.batch)
	if err != nil {
		return err
	}
	c.state = next
	return c.wait()
}

// ascent is the step that the C++ program makes.
func (t *training) ascent() (*chain, error) {
	return t.chain(optim.SGD{LR: infer.Constant(stepRate), Momentum: stepMomentum})
}

// check compares log posterior and gradient of both sides, and returns their largest difference: of the log posterior
// relative to itself, of the gradient relative to its largest number.
func (t *training) check(cpp *native, tolerance float64) (float64, error) {
	want, err := cpp.eval(t.key, t.key+".theta")
	if err != nil {
		return 0, err
	}
	var got []float64
	err = torch.Do(func(*torch.Scope) error {
		e, err := t.gradient.ValueAndGrad(t.start, t.batch, 0)
		if err != nil {
			return err
		}
		grad, err := torch.ToSlice[float64](e.Grad)
		got = append(e.Values, grad...)
		return err
	})
	if err != nil {
		return 0, err
	}
	if len(got) != len(want) {
		return 0, fmt.Errorf("there are %d numbers from Kelvin and %d from C++", len(got), len(want))
	}
	value, err := apart(got[:1], want[:1], tolerance)
	if err != nil {
		return value, fmt.Errorf("the log posterior: %w", err)
	}
	grad, err := apart(got[1:], want[1:], tolerance)
	if err != nil {
		return grad, fmt.Errorf("the gradient: %w", err)
	}
	return max(value, grad), nil
}

// apart is the largest difference, relative to the largest number; an error above the tolerance.
func apart(got, want []float64, tolerance float64) (float64, error) {
	size, largest, at := 0.0, 0.0, 0
	for i, w := range want {
		size = max(size, math.Abs(w))
		if d := math.Abs(got[i] - w); !(d <= largest) {
			largest, at = d, i
		}
	}
	if !(largest <= tolerance*size) {
		return largest / size, fmt.Errorf("number %d is %.17g from Kelvin and %.17g from C++, where the largest is %g", at,
			got[at], want[at], size)
	}
	return largest / size, nil
}

// floatTolerance is what roundings of single precision may add up to in a network. In double precision, as the tests
// compare them, both sides agree to 1e-10.
const floatTolerance = 1e-4

// rows are the names of the rows of a network.
func (a architecture) rows() []string {
	names := []string{a.name + ": gradient", a.name + ": step"}
	for _, m := range own {
		names = append(names, a.name+": "+m.name)
	}
	return names
}

// own are the methods whose own cost is measured.
var own = []struct {
	name   string
	method infer.Method
}{
	{"SGHMC", sgmcmc.SGHMC{LR: infer.Constant(stepRate)}},
	{"ATMC, Gaussian", sgmcmc.ATMC{LR: infer.Constant(stepRate)}},
	{"ATMC, relativistic", sgmcmc.ATMC{LR: infer.Constant(stepRate), Speed: 1}},
}

// pairing is two sides that take turns, of which the second is judged.
type pairing struct {
	name, base string
	sides      [2]bench.Side
	difference float64
}

// pairings are the rows of a network: gradient and step against C++, then methods against the gradient.
func (t *training) pairings(cpp *native, difference float64) ([]pairing, error) {
	theirs := func(key string) bench.Side {
		return func(n int) (float64, error) { return cpp.time(key, t.key+".theta", n) }
	}
	ascent, err := t.ascent()
	if err != nil {
		return nil, err
	}
	names := t.rows()
	rows := []pairing{
		{names[0], "C++", [2]bench.Side{theirs(t.key), warmed(t.evaluate)}, difference},
		{names[1], "C++", [2]bench.Side{theirs(t.key + ".step"), warmed(ascent.update)}, difference},
	}
	for i, m := range own {
		c, err := t.chain(m.method)
		if err != nil {
			return nil, err
		}
		rows = append(rows, pairing{names[2+i], "its gradient",
			[2]bench.Side{warmed(t.evaluate), warmed(c.update)}, 0})
	}
	return rows, nil
}

// warmed measures as the C++ program does: after a fifth as many calls, which also outlast what the threads of the
// other side still do.
func warmed(f func() error) bench.Side {
	calls := bench.Calls(f)
	return func(n int) (float64, error) {
		if _, err := calls(n/5 + 1); err != nil {
			return 0, err
		}
		return calls(n)
	}
}

// turn is how many calls a side makes one after the other, as a training does: the first call after the other process
// finds its memory and its threads elsewhere.
const turn = 5

// time lets the two sides take turns until the time is up, and summarises the rounds of two turns each.
func (p pairing) time(ctx context.Context, device string, budget time.Duration) (networkRow, error) {
	var base, judged []float64
	for start := time.Now(); len(base) < 3 || time.Since(start) < budget; {
		if err := ctx.Err(); err != nil {
			return networkRow{}, err
		}
		ns, err := bench.Round(2, p.sides, [2]int{turn, turn})
		if err != nil {
			return networkRow{}, fmt.Errorf("%s: %w", p.name, err)
		}
		base, judged = append(base, ns[0]), append(judged, ns[1])
	}
	r := newRow(comparison{name: p.name}, device, base, judged)
	return networkRow{Case: p.name, Device: device, Against: p.base, Base: r.Cpp / 1e3, Time: r.Kelvin / 1e3,
		Ratio: r.Ratio, Quartiles: r.Quartiles, Rounds: len(base), Difference: p.difference}, nil
}
