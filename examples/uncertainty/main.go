// Command uncertainty is the program of docs/tutorials/5-a-network-with-uncertainty.md: what a small network knows
// between its data and beyond them.
//
//	go run ./examples/uncertainty [-pictures DIR]
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/examples/internal/command"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/infer/vi"
	"github.com/kelvin-ppl/kelvin/models/nn"
	"github.com/kelvin-ppl/kelvin/torch"
)

var pictures = flag.String("pictures", "", "a folder for the pictures; none are drawn without it")

const (
	n     = 40
	noise = 0.2
)

// simulate makes points of sin 4x with noise, from -1 to -0.4 and from 0.4 to 1.
func simulate(n int, seed uint64) (x, y []float64) {
	rng := rand.New(rand.NewPCG(seed, 5))
	for i := range n {
		at := 0.4 + 0.6*rng.Float64()
		if i%2 == 0 {
			at = -at
		}
		x, y = append(x, at), append(y, math.Sin(4*at)+noise*rng.NormFloat64())
	}
	return x, y
}

// build is the network, with its posterior as a program of 16 chains.
func build() (*nn.Network, infer.Program, error) {
	net, err := nn.Sequential{nn.Linear{Out: 20}, nn.Tanh{}, nn.Linear{Out: 1}}.Build(1)
	if err != nil {
		return nil, nil, err
	}
	prior, err := nn.NewPrior(net, nn.HePrior(1)) // weights N(0, 2/fan-in), biases N(0, 1)
	if err != nil {
		return nil, nil, err
	}
	logPosterior := func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		f := net.Forward(p, b.Get("x")).Squeeze(-1)
		return dist.Normal(f, noise).LogProb(b.Get("y")).Mean().Add(prior.LogDensity(p).Div(n)), nil
	}
	x, y := simulate(n, 1)
	xt, err := torch.FromSlice(x, n, 1)
	if err != nil {
		return nil, nil, err
	}
	yt, err := torch.FromSlice(y)
	if err != nil {
		return nil, nil, err
	}
	streams := torch.NewStreams(2, chains) // not the seed of the methods
	start, err := nn.Init(net, nn.KaimingNormal(nn.GainTanh), &streams)
	return net, infer.Handwritten(infer.Mean(logPosterior, n), start, infer.Batch{"x": xt, "y": yt}), err
}

const chains = 16

// ways are the methods, each with the options of its run.
var ways = []struct {
	name    string
	method  infer.Method
	options infer.Options
}{
	{"16 modes", optim.Adam{LR: infer.Constant(0.01)}, infer.Options{Warmup: 3000, Draws: 1}},
	{"VI, diagonal", vi.Diag{}, infer.Options{Warmup: 3000, Draws: 50}},
	{"BAOA", sgmcmc.BAOA{LR: infer.Constant(0.03)}, infer.Options{Warmup: 4000, Draws: 50, Thin: 200}},
}

func run(ctx context.Context) error {
	found, err := table(ctx, os.Stdout)
	if err != nil || *pictures == "" {
		return err
	}
	return pictured(*pictures, found)
}

// grid are the points at which predictions are made: -2 to 2.
func grid() []float64 {
	var x []float64
	for i := range 81 {
		x = append(x, -2+0.05*float64(i))
	}
	return x
}

// table prints how widely the functions of each method spread, and how well they predict new data, and returns the
// functions on the grid: for each method, chain, and draw.
func table(ctx context.Context, out io.Writer) ([][][][]float64, error) {
	net, program, err := build()
	if err != nil {
		return nil, err
	}
	var found [][][][]float64
	testX, testY := simulate(400, 3)
	fmt.Fprintln(out, "              spread in the data  between the data  beyond them    log score")
	for _, w := range ways {
		o := w.options
		o.Chains, o.Seed = chains, 1
		r, err := infer.Run(ctx, program, w.method, o)
		if err != nil {
			return nil, err
		}
		functions, err := predict(net, r, grid())
		if err != nil {
			return nil, err
		}
		tests, err := predict(net, r, testX)
		if err != nil {
			return nil, err
		}
		found = append(found, functions)
		fmt.Fprintf(out, "%-13s", w.name)
		for _, at := range []float64{0.7, 0, 2} {
			i := int(math.Round((at + 2) / 0.05))
			v, se := jackknife(functions, func(f [][]float64) float64 { return spread(f, i) })
			fmt.Fprintf(out, " %.3f ± %.3f     ", v, se)
		}
		v, se := jackknife(tests, func(f [][]float64) float64 { return logScore(f, testY) })
		fmt.Fprintf(out, "%.3f ± %.3f\n", v, se)
	}
	return found, nil
}

// predict is the network at x for each chain and draw.
func predict(net *nn.Network, r *infer.Result, x []float64) ([][][]float64, error) {
	out := make([][][]float64, r.Unconstrained.Chains())
	for c := range out {
		var flat []float64
		for s := range r.Unconstrained.Len(c) {
			flat = append(flat, r.Unconstrained.Row(c, s)...)
		}
		err := torch.Do(func(*torch.Scope) error {
			p := torch.Must(infer.NewParams(net.Layout(), flat))
			at := torch.New(x, len(x), 1)
			f := torch.Must(net.Predict(p, at, nil))
			values := f.Values()
			for i := 0; i < len(values); i += len(x) {
				out[c] = append(out[c], values[i:i+len(x)])
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// spread is the standard deviation of functions at a point.
func spread(f [][]float64, i int) float64 {
	sum, squares := 0.0, 0.0
	for _, values := range f {
		sum, squares = sum+values[i], squares+values[i]*values[i]
	}
	k := float64(len(f))
	return math.Sqrt(math.Max(0, (squares-sum*sum/k)/(k-1)))
}

// logScore is the mean log density of new data under the predictive distribution, the mean of N(f(x), noise²).
func logScore(f [][]float64, y []float64) float64 {
	total := 0.0
	for i, v := range y {
		density := 0.0
		for _, values := range f {
			z := (v - values[i]) / noise
			density += math.Exp(-z*z/2) / (noise * math.Sqrt(2*math.Pi)) / float64(len(f))
		}
		total += math.Log(density) / float64(len(y))
	}
	return total
}

// jackknife is a figure of all chains, and its standard error from leaving out each chain in turn.
func jackknife(f [][][]float64, figure func(f [][]float64) float64) (value, se float64) {
	all := func(without int) (out [][]float64) {
		for c := range f {
			if c != without {
				out = append(out, f[c]...)
			}
		}
		return out
	}
	k := float64(len(f))
	var parts []float64
	mean := 0.0
	for c := range f {
		v := figure(all(c))
		parts, mean = append(parts, v), mean+v/k
	}
	for _, v := range parts {
		se += (v - mean) * (v - mean) * (k - 1) / k
	}
	return figure(all(-1)), math.Sqrt(se)
}

func main() { command.Main("uncertainty", run) }
