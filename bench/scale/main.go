// Command scale measures compiled gradients of models whose work is linear algebra or wide data, on one thread.
//
//	go run ./bench/scale [-models a,b] [-seconds S] [-rounds N] [-tier native|vm] [-threads N] [-peers] [-venv DIR]
//	    [-python FILE]
//
// A time is the least of value and gradient, in microseconds of CPU time, called from Go; the seconds are those of
// recording, checks and the C compiler, with an empty cache. With -peers JAX runs NumPyro's log densities of the same
// models beside it, in turns: value and gradient jitted in a loop. bench/peers says where JAX is installed. With
// -threads N one thread and N take turns, call by call, and their times are the least by the clock on the wall; "bits"
// says whether value and gradient were the same on both at each call.
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
	one, many        float64 // µs by the clock on the wall, on one thread and on several
	same             bool    // the bits on one thread and on several
}

func run(ctx context.Context, args []string, out io.Writer) error {
	f := flag.NewFlagSet("scale", flag.ContinueOnError)
	chosen := f.String("models", "", "models, separated by commas; by default all")
	seconds := f.Float64("seconds", 0.5, "for each time")
	rounds := f.Int("rounds", 3, "turns of each side")
	tier := f.String("tier", string(native.C), "the tier: native or vm")
	threads := f.Int("threads", 1, "beside one thread")
	peers := f.Bool("peers", false, "run JAX too")
	venv := f.String("venv", "", "folder of the virtual environments; by default kelvin/peers in the user's cache folder")
	python := f.String("python", "", "Python 3.12 or 3.13; by default the first that is found")
	if err := f.Parse(args); err != nil {
		return err
	}
	if *rounds < 1 || !(*seconds > 0) || *threads < 1 {
		return fmt.Errorf("-rounds %d -seconds %g -threads %d: all must be greater than 0", *rounds, *seconds, *threads)
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
	if *threads > 1 {
		header += fmt.Sprintf("\twall µs, 1 thread\t%d threads\tratio\tbits", *threads)
	}
	if jax != nil {
		header += "\tµs JAX\tcompile s\tKelvin/JAX"
	}
	fmt.Fprintln(t, header)
	for _, m := range models {
		r, err := m.measure(native.Tier(*tier), jax, *seconds, *rounds, *threads)
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		r.print(t, *threads > 1, jax != nil)
		if err := t.Flush(); err != nil {
			return err
		}
	}
	return nil
}

func (r row) print(out io.Writer, threads, peer bool) {
	fmt.Fprintf(out, "%s\t%.4g\t%.2f", r.name, r.us, r.seconds)
	if threads {
		bits := map[bool]string{true: "same", false: "**differ**"}[r.same]
		fmt.Fprintf(out, "\t%.4g\t%.4g\t%.2f\t%s", r.one, r.many, r.one/r.many, bits)
	}
	if peer {
		fmt.Fprintf(out, "\t%.4g\t%.2f\t%.2f", r.peer, r.peerSecond, r.us/r.peer)
	}
	fmt.Fprintln(out)
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
func (m model) measure(tier native.Tier, jax *peer.Process, seconds float64, rounds, threads int) (row, error) {
	r := row{name: m.name, us: math.Inf(1), peer: math.Inf(1), one: math.Inf(1), many: math.Inf(1), same: true}
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
		if threads > 1 {
			eval := func(grad []float64) (float64, error) { return f.Eval(x, weight, grad) }
			if err := r.turns(eval, len(x), seconds, threads); err != nil {
				return r, err
			}
		}
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

// turns lets one thread and several evaluate in turns.
func (r *row) turns(eval func(grad []float64) (float64, error), dim int, seconds float64, threads int) error {
	results := [2][]float64{make([]float64, dim+1), make([]float64, dim+1)}
	for end := time.Now().Add(time.Duration(seconds * float64(time.Second))); time.Now().Before(end); {
		for i, n := range []int{1, threads} {
			if err := torch.SetThreads(n); err != nil {
				return err
			}
			began := time.Now()
			value, err := eval(results[i][1:])
			took := float64(time.Since(began).Nanoseconds()) / 1e3
			if err != nil {
				return err
			}
			best := []*float64{&r.one, &r.many}[i]
			*best, results[i][0] = min(*best, took), value
		}
		r.same = r.same && slices.EqualFunc(results[0], results[1], func(a, b float64) bool {
			return math.Float64bits(a) == math.Float64bits(b)
		})
	}
	return torch.SetThreads(1)
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
