// Command scale measures compiled gradients of models whose work is linear algebra or wide data, on one thread.
//
//	go run ./bench/scale [-models a,b] [-seconds S] [-rounds N] [-tier native|vm] [-peers] [-venv DIR] [-python FILE]
//
// A time is the least of value and gradient, in microseconds of CPU time, called from Go; the seconds are those of
// recording, checks and the C compiler, with an empty cache. With -peers JAX runs NumPyro's log densities of the same
// models beside it, in turns: value and gradient jitted in a loop. bench/peers says where JAX is installed.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/kelvin-ppl/kelvin/bench"
	"github.com/kelvin-ppl/kelvin/bench/internal/command"
	"github.com/kelvin-ppl/kelvin/bench/internal/peer"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

func main() { command.Main("scale", run) }

// row is what was measured of a model.
type row struct {
	name             string
	us, seconds      float64 // Kelvin's
	peer, peerSecond float64 // JAX's; 0 where it did not run
}

func run(ctx context.Context, args []string, out io.Writer) error {
	f := flag.NewFlagSet("scale", flag.ContinueOnError)
	chosen := f.String("models", "", "models, separated by commas; by default all")
	seconds := f.Float64("seconds", 0.5, "for each time")
	rounds := f.Int("rounds", 3, "turns of each side")
	tier := f.String("tier", string(native.C), "the tier: native or vm")
	peers := f.Bool("peers", false, "run JAX too")
	venv := f.String("venv", "", "folder of the virtual environments; by default kelvin/peers in the user's cache folder")
	python := f.String("python", "", "Python 3.12 or 3.13; by default the first that is found")
	if err := f.Parse(args); err != nil {
		return err
	}
	if *rounds < 1 || !(*seconds > 0) {
		return fmt.Errorf("-rounds %d -seconds %g: both must be greater than 0", *rounds, *seconds)
	}
	models, err := choose(*chosen)
	if err != nil {
		return err
	}
	if err := torch.SetThreads(1); err != nil {
		return err
	}
	var jax *peer.Process
	if *peers {
		if jax, err = startJAX(ctx, *venv, *python); err != nil {
			return err
		}
		defer jax.Close()
	}
	t, header := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0), "model\tµs\tcompile s"
	if jax != nil {
		header += "\tµs JAX\tcompile s\tKelvin/JAX"
	}
	fmt.Fprintln(t, header)
	for _, m := range models {
		r, err := m.measure(native.Tier(*tier), jax, *seconds, *rounds)
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		fmt.Fprintf(t, "%s\t%.4g\t%.2f", r.name, r.us, r.seconds)
		if jax != nil {
			fmt.Fprintf(t, "\t%.4g\t%.2f\t%.2f", r.peer, r.peerSecond, r.us/r.peer)
		}
		fmt.Fprintln(t)
		if err := t.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// choose is the models of a list separated by commas; "" for all.
func choose(list string) ([]model, error) {
	if list == "" {
		return models, nil
	}
	return command.Choose(list, models, func(x model) string { return x.name }, func(name string) error {
		return fmt.Errorf("-models: there is no %q", name)
	})
}

// startJAX installs JAX where it is not there, and starts its program.
func startJAX(ctx context.Context, venv, python string) (*peer.Process, error) {
	e, err := peer.Prepare(ctx, venv, python, os.Stderr)
	if err != nil {
		return nil, err
	}
	g := peer.Groups[slices.IndexFunc(peer.Groups, func(g peer.Group) bool { return g.Name == "jax" })]
	if err := e.Install(ctx, g); err != nil {
		return nil, err
	}
	return e.Start(ctx, g)
}

// measure compiles a model with an empty cache, and lets both sides take turns.
func (m model) measure(tier native.Tier, jax *peer.Process, seconds float64, rounds int) (row, error) {
	r := row{name: m.name, us: math.Inf(1), peer: math.Inf(1)}
	f, x, weight, report, err := m.compile(tier)
	if err != nil {
		return r, err
	}
	r.seconds = report.Seconds
	grad := make([]float64, len(x))
	for range rounds {
		us, err := bench.Least(seconds, func() error { _, err := f.Eval(x, weight, grad); return err })
		if err != nil {
			return r, err
		}
		r.us = min(r.us, us)
		if jax == nil {
			continue
		}
		a, err := jax.Ask("scale", peer.Request{"model": m.peer, "sizes": m.sizes, "seconds": seconds}, 10*time.Minute)
		if err != nil {
			return r, err
		}
		r.peer, r.peerSecond = min(r.peer, a.US), max(r.peerSecond, a.Compiling)
	}
	return r, nil
}

// compile compiles a model at its start, where x is.
func (m model) compile(tier native.Tier) (f *native.Func, x []float64, weight float64, r native.Report, err error) {
	dir, err := os.MkdirTemp("", "kelvin-scale")
	if err != nil {
		return nil, nil, 0, r, err
	}
	defer os.RemoveAll(dir)
	of, batch, err := m.make(m.sizes)
	if err != nil {
		return nil, nil, 0, r, err
	}
	program, err := ppl.Compile(of, batch)
	if err != nil {
		return nil, nil, 0, r, err
	}
	start, err := program.Start(batch, 1, 1)
	if err != nil {
		return nil, nil, 0, r, err
	}
	if x, err = start.Values(); err != nil {
		return nil, nil, 0, r, err
	}
	f, r, err = infer.Compile(program.Target(), start, batch, native.Options{Tier: tier, CacheDir: dir})
	return f, x, 1 / float64(max(1, program.Data())), r, err
}
