package main

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/kelvin-ppl/kelvin/bench/internal/peer"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/models/nn"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// stepRow is the time of a step of SGHMC of all chains.
type stepRow struct {
	Case    string  `json:"case"`
	Side    string  `json:"side"`
	US      float64 `json:"us_per_step"`
	Compile float64 `json:"compile_s"`
	Error   string  `json:"error,omitempty"`
}

// stepCase is a target of SGHMC. All chains have the same batches.
type stepCase struct {
	name, target  string
	chains, batch int // batch 0: all data
}

var stepCases = []stepCase{
	{"Pima, all data, 1 chain", "logistic", 1, 0},
	{"Pima, batches of 32, 1 chain", "logistic", 1, 32},
	{"Pima, all data, 64 chains", "logistic", 64, 0},
	{"Pima, batches of 32, 64 chains", "logistic", 64, 32},
	{"MLP 784-200-200-10, batches of 128, float32", "mlp", 1, 128},
}

const (
	stepLR    = 1e-3
	stepAlpha = 1.0
)

// steps measures one case on all sides, which take turns; the fastest round counts.
func (b *benchmark) steps(ctx context.Context, c stepCase, p posterior) ([]stepRow, error) {
	type turn struct {
		stepRow
		run func() (us, compile float64, err error)
	}
	turns := []*turn{{stepRow: stepRow{Case: c.name, Side: "Kelvin"}}}
	run, err := kelvinSteps(ctx, c, p, b.seconds)
	if err != nil {
		turns[0].Error = err.Error()
	}
	turns[0].run = run
	for _, side := range []struct{ name, group string }{{"BlackJAX", "jax"}, {"posteriors", "torch"}} {
		if b.missing[side.group] != nil || !b.wanted(side.name) {
			continue
		}
		t := &turn{stepRow: stepRow{Case: c.name, Side: side.name}}
		turns = append(turns, t)
		process, err := b.program(ctx, side.group)
		if err != nil {
			t.Error = err.Error()
			continue
		}
		t.run = func() (float64, float64, error) {
			r := peer.Request{"sampler": side.name, "target": c.target, "chains": c.chains, "batch": c.batch, "lr": stepLR,
				"alpha": stepAlpha, "seconds": b.seconds}
			if c.target == "logistic" {
				r["data"] = p.data
			}
			a, err := process.Ask("sghmc", r, 5*time.Minute)
			return a.US, a.Compiling, err
		}
	}
	for range b.rounds {
		for _, t := range turns {
			if t.Error != "" {
				continue
			}
			us, compile, err := t.run()
			if err != nil {
				t.Error = err.Error()
				continue
			}
			if t.US == 0 || us < t.US {
				t.US = us
			}
			t.Compile = max(t.Compile, compile)
		}
	}
	var rows []stepRow
	for _, t := range turns {
		rows = append(rows, t.stepRow)
	}
	return rows, ctx.Err()
}

// kelvinSteps is Kelvin's side: what a longer run takes beyond a shorter one, for each step.
func kelvinSteps(ctx context.Context, c stepCase, p posterior, seconds float64) (
	measure func() (us, compile float64, err error), err error) {
	var program infer.Program
	var data infer.Batch
	var start infer.Params
	if c.target == "mlp" {
		net, err := perceptron(c.batch)
		if err != nil {
			return nil, err
		}
		program, data, start = net.program, net.data, net.start
	} else {
		compiled, err := ppl.Compile(p.model, p.batch)
		if err != nil {
			return nil, err
		}
		program, data = compiled, p.batch
		if start, err = infer.Zeros(compiled.Layout()); err != nil {
			return nil, err
		}
	}
	var made []infer.Batch
	if c.batch > 0 {
		var err error
		if made, err = epoch(data, c.batch); err != nil {
			return nil, err
		}
	}
	once := func(n int) (float64, error) {
		o := infer.Options{Chains: c.chains, Warmup: n, Draws: infer.None, Start: start, Seed: 1, Observer: infer.Silent}
		if made != nil {
			o.Batches = &prepared{batches: made}
		}
		began := time.Now()
		result, err := infer.Run(ctx, program, sgmcmc.SGHMC{LR: infer.Constant(stepLR), Alpha: infer.Constant(stepAlpha)},
			o)
		if err != nil {
			return 0, err
		}
		infer.Free(result.State)
		if result.Held > 0 {
			return 0, fmt.Errorf("%d updates were not finite", result.Held)
		}
		return time.Since(began).Seconds(), nil
	}
	return func() (us, compile float64, err error) {
		n := 50
		if _, err := once(n); err != nil { // what is compiled is there afterwards
			return 0, 0, err
		}
		least := [2]float64{math.Inf(1), math.Inf(1)} // of n steps and of 5n
		for end := time.Now().Add(time.Duration(4 * seconds * float64(time.Second))); ; {
			for i, steps := range []int{n, 5 * n} {
				took, err := once(steps)
				if err != nil {
					return 0, 0, err
				}
				least[i] = min(least[i], took)
			}
			if least[1]-least[0] < seconds/4 && time.Now().Before(end) {
				n, least = 3*n, [2]float64{math.Inf(1), math.Inf(1)} // too short to tell
			} else if time.Now().After(end) {
				return 1e6 * (least[1] - least[0]) / float64(4*n), 0, nil
			}
		}
	}, nil
}

// prepared gives batches that are there already, in turn, as the peers' programs do.
type prepared struct {
	batches []infer.Batch
	at      int
}

func (p *prepared) Next() (infer.Batch, error) {
	b := p.batches[p.at%len(p.batches)]
	p.at++
	return b, nil
}

func (p *prepared) Position() infer.Position { return infer.Position{Index: p.at} }

func (p *prepared) Seek(at infer.Position) error {
	p.at = at.Index
	return nil
}

func (p *prepared) Fingerprint() (string, error) { return "prepared", nil }

// epoch is all data in batches of a size.
func epoch(data infer.Batch, size int) ([]infer.Batch, error) {
	n, err := data.Size()
	if err != nil {
		return nil, err
	}
	source, err := infer.Minibatches(data, infer.MinibatchOptions{Size: size, Seed: 1, DropLast: true})
	if err != nil {
		return nil, err
	}
	var out []infer.Batch
	err = torch.Do(func(scope *torch.Scope) error {
		for range n / size {
			b, err := source.Next()
			if err != nil {
				return err
			}
			for _, t := range b {
				scope.Keep(t)
			}
			out = append(out, b)
		}
		return nil
	})
	return out, err
}

// network is a perceptron on random data.
type network struct {
	program infer.Program
	data    infer.Batch
	start   infer.Params
}

// perceptron has the sizes of a small classifier of images. Eight batches are enough: what is measured is time.
func perceptron(batch int) (network, error) {
	const total = 60000
	net, err := nn.MLP{Sizes: []int{784, 200, 200, 10}}.Build()
	if err != nil {
		return network{}, err
	}
	prior, err := nn.NewPrior(net, nn.Same(nn.Normal(1)))
	if err != nil {
		return network{}, err
	}
	out := network{data: infer.Batch{}}
	n := 8 * batch
	streams := torch.NewStreams(1, 1)
	err = torch.Do(func(scope *torch.Scope) error {
		x, err := streams.Uniform([]int{n, 784}, gotch.Float, torch.CPU)
		if err != nil {
			return err
		}
		u, err := streams.Uniform([]int{n}, gotch.Float, torch.CPU)
		if err != nil {
			return err
		}
		x = x.Reshape(n, 784)
		y := u.Reshape(n).T().MustMulScalar(ts.FloatScalar(10), false).MustTotype(gotch.Int64, false)
		scope.Keep(x, torch.Of(y))
		out.data["x"], out.data["y"] = x, torch.Of(y)
		return nil
	})
	if err != nil {
		return network{}, err
	}
	first := torch.NewStreams(2, 1)
	start, err := nn.Init(net, nn.KaimingNormal(nn.GainReLU), &first)
	if err != nil {
		return network{}, err
	}
	if out.start, err = start.To(torch.CPU, gotch.Float); err != nil {
		return network{}, err
	}
	density := func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		fit := dist.CategoricalLogits(net.Forward(p, b.Get("x"))).LogProb(b.Get("y")).Mean()
		return fit.Add(prior.LogDensity(p).Div(total)), nil
	}
	out.program = infer.Handwritten(infer.Mean(density, total), out.start, nil)
	return out, nil
}
