// Command digits is the program of docs/tutorials/mnist.md: a small network reads handwritten digits, and four methods
// say how sure they are of what it reads: one network at the mode (MAP), an ensemble of modes, SGHMC, and a Laplace
// approximation. Then the digits are turned, and things that are no digits are shown.
//
//	go run ./examples/digits                    digits of 8 by 8 pixels, which the repository carries
//	go run ./examples/digits -data DIR          the four IDX files of MNIST, plain or compressed
//	go run ./examples/digits -data DIR -outliers DIR2   and those of Fashion-MNIST, as things that are no digits
//
// It prints two tables and draws two pictures in -pictures. It takes about half a minute.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/kelvin-ppl/kelvin/examples/internal/classify"
	"github.com/kelvin-ppl/kelvin/examples/internal/command"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/models/nn"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
)

func main() {
	var o options
	flag.StringVar(&o.data, "data", "", "folder of MNIST; none are small digits that the repository carries")
	flag.StringVar(&o.outliers, "outliers", "", "folder of Fashion-MNIST, for things that are no digits; none is noise")
	flag.StringVar(&o.pictures, "pictures", filepath.Join("out", "digits"), "folder for the pictures")
	flag.IntVar(&o.images, "images", 1000, "training images")
	flag.IntVar(&o.tests, "tests", 500, "test images")
	flag.IntVar(&o.updates, "updates", 1500, "updates of each method")
	flag.Uint64Var(&o.seed, "seed", 1, "seed of the starts, the batches and the noise")
	command.Main("digits", func(ctx context.Context) error { return run(ctx, os.Stdout, o) })
}

type options struct {
	data, outliers, pictures string
	images, tests, updates   int
	seed                     uint64
}

func run(ctx context.Context, w io.Writer, o options) error {
	if o.images < 10 || o.tests < 10 || o.updates < 100 {
		return fmt.Errorf("%d images, %d tests and %d updates: at least 10, 10 and 100 are needed", o.images, o.tests,
			o.updates)
	}
	if err := torch.SetThreads(1); err != nil {
		return err
	}
	d, err := read(o)
	if err != nil {
		return err
	}
	t, err := newTask(d)
	if err != nil {
		return err
	}
	all, err := t.fit(ctx, o)
	if err != nil {
		return err
	}
	return t.report(w, all, d, o)
}

// newTask is the model.
func newTask(d *data) (*task, error) {
	net, err := nn.MLP{Sizes: []int{d.pixels(), 50, 10}}.Build()
	if err != nil {
		return nil, err
	}
	prior := nn.Same(nn.Normal(0.3)) // every weight and bias is N(0, 0.3²)
	t, err := classify.New(net, prior, d.train, d.test, gotch.Float)
	return &task{t}, err
}

const members = 10 // of the ensemble, and chains of SGHMC

// fit runs the methods. What each leaves is a function from images to probabilities.
func (t *task) fit(ctx context.Context, o options) ([]fitted, error) {
	start, err := t.Starts(nn.KaimingNormal(nn.GainReLU), o.seed+1000, members)
	if err != nil {
		return nil, err
	}
	run := func(method infer.Method, options infer.Options) (*infer.Result, error) {
		options.Chains, options.Seed = members, o.seed
		options.Batches, err = infer.Minibatches(t.Train, infer.MinibatchOptions{Size: min(100, t.N), Seed: o.seed})
		if err != nil {
			return nil, err
		}
		return infer.Run(ctx, t.Program(start), method, options)
	}

	// Ten networks at once: each is a mode, and the first of them is the MAP.
	adam := optim.Adam{LR: infer.Linear(0.01, 0, 0, o.updates)}
	modes, err := run(adam, infer.Options{Warmup: o.updates - 1, Draws: 1})
	if err != nil {
		return nil, err
	}

	// Ten chains that go on from the modes.
	start = modes.Last
	sghmc := sgmcmc.SymplecticSGHMC{LR: infer.Constant(0.03), Momentum: infer.Constant(0.95)}
	chains, err := run(sghmc, infer.Options{Warmup: o.updates / 2, Draws: 10, Thin: max(1, o.updates/20)})
	if err != nil {
		return nil, err
	}

	mode := modes.Draws.Row(0, 0)
	gaussian, err := t.laplace(mode, o.seed)
	if err != nil {
		return nil, err
	}
	one, err := modes.Draws.Chain(0)
	if err != nil {
		return nil, err
	}
	return []fitted{
		{"MAP", t.average(one)},
		{"ensemble of 10", t.average(modes.Draws)},
		{"SGHMC, 10 chains", t.average(chains.Draws)},
		{"Laplace", gaussian},
	}, nil
}
