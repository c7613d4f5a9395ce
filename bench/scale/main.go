// Command scale measures compiled gradients of models whose work is linear algebra or wide data, on one thread.
//
//	go run ./bench/scale [-models a,b] [-seconds S] [-rounds N] [-tier native|vm] [-threads N] [-peers] [-venv DIR]
//	    [-python FILE]
//
// A time is the least of value and gradient, in microseconds of CPU time, called from Go; the seconds are those of
// recording, checks and the C compiler, with an empty cache. With -peers other libraries run the same models beside it,
// in turns: JAX, value and gradient of NumPyro's log densities jitted in a loop, and Stan's C++, on the same data where
// they are few enough to go through JSON. Of the best is Kelvin's time as a share of the fastest peer's. bench/peers
// says where they are installed. With -threads N one thread and N take turns, call by call, and their times are the
// least by the clock on the wall; "bits" says whether value and gradient were the same on both at each call.
package main

import (
	"context"
	"embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
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

// programs are the models as Stan programs.
//
//go:embed stan
var programs embed.FS

// row is what was measured of a model.
type row struct {
	name        string
	us, seconds float64 // Kelvin's
	peers       []cost
	one, many   float64 // µs by the clock on the wall, on one thread and on several
	same        bool    // the bits on one thread and on several
}

// cost is what a peer takes: for value and gradient, and to compile; Inf for a model that it cannot run.
type cost struct{ us, seconds float64 }

// side is a peer.
type side struct {
	name string
	*peer.Process
	compile func(s side, m model) (seconds float64, err error) // before its turns, Inf for a model that it cannot run
	turn    func(s side, m model, seconds float64) (peer.Answer, error)
}

func run(ctx context.Context, args []string, out io.Writer) error {
	f := flag.NewFlagSet("scale", flag.ContinueOnError)
	chosen := f.String("models", "", "models, separated by commas; by default all")
	seconds := f.Float64("seconds", 0.5, "for each time")
	rounds := f.Int("rounds", 3, "turns of each side")
	tier := f.String("tier", string(native.C), "the tier: native or vm")
	threads := f.Int("threads", 1, "beside one thread")
	peers := f.Bool("peers", false, "run JAX and Stan too")
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
	var sides []side
	if *peers {
		if sides, err = startPeers(ctx, *venv, *python); err != nil {
			return err
		}
		for _, s := range sides {
			defer s.Close()
		}
	}
	t, header := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0), "model\tµs\tcompile s"
	if *threads > 1 {
		header += fmt.Sprintf("\twall µs, 1 thread\t%d threads\tratio\tbits", *threads)
	}
	for _, s := range sides {
		header += fmt.Sprintf("\tµs %s\tcompile s", s.name)
	}
	if len(sides) > 0 {
		header += "\tof the best"
	}
	fmt.Fprintln(t, header)
	var failed error // a compiler may take too long for one model
	for _, m := range models {
		r, err := m.measure(native.Tier(*tier), sides, *seconds, *rounds, *threads)
		if err != nil && ctx.Err() == nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", m.name, err))
			continue
		}
		if err != nil {
			return err
		}
		r.print(t, *threads > 1)
		if err := t.Flush(); err != nil {
			return err
		}
	}
	return failed
}

func (r row) print(out io.Writer, threads bool) {
	fmt.Fprintf(out, "%s\t%.4g\t%.2f", r.name, r.us, r.seconds)
	if threads {
		bits := map[bool]string{true: "same", false: "**differ**"}[r.same]
		fmt.Fprintf(out, "\t%.4g\t%.4g\t%.2f\t%s", r.one, r.many, r.one/r.many, bits)
	}
	best := math.Inf(1)
	for _, p := range r.peers {
		if best = min(best, p.us); math.IsInf(p.us, 1) {
			fmt.Fprint(out, "\t–\t–")
			continue
		}
		fmt.Fprintf(out, "\t%.4g\t%.2f", p.us, p.seconds)
	}
	if len(r.peers) > 0 {
		fmt.Fprintf(out, "\t%.2f", r.us/best)
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

// startPeers installs the peers where they are not there, and starts their programs.
func startPeers(ctx context.Context, venv, python string) (sides []side, err error) {
	e, err := peer.Prepare(ctx, venv, python, os.Stderr)
	if err != nil {
		return nil, err
	}
	for _, s := range []side{{name: "JAX", compile: side.jaxCompile, turn: side.jax},
		{name: "Stan", compile: side.stanCompile, turn: side.stan}} {
		g := peer.Groups[slices.IndexFunc(peer.Groups, func(g peer.Group) bool { return g.Name == strings.ToLower(s.name) })]
		if err = e.Install(ctx, g); err == nil {
			s.Process, err = e.Start(ctx, g)
		}
		if err != nil {
			for _, s := range sides {
				s.Close()
			}
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
		sides = append(sides, s)
	}
	return sides, nil
}

// patience is how long a peer may take to answer.
const patience = 30 * time.Minute

func (s side) jax(m model, seconds float64) (peer.Answer, error) {
	return s.Ask("scale", peer.Request{"model": m.peer, "sizes": m.sizes, "seconds": seconds}, patience)
}

func (s side) jaxCompile(m model) (float64, error) {
	a, err := s.jax(m, 0)
	return a.Compiling, err
}

func (s side) stan(_ model, seconds float64) (peer.Answer, error) {
	return s.Ask("gradient", peer.Request{"seconds": seconds}, patience)
}

// mostNumbers are as many data as go to Stan: it gets them as text.
const mostNumbers = 4e6

func (s side) stanCompile(m model) (float64, error) {
	_, batch, err := m.make(m.sizes)
	if err != nil {
		return 0, err
	}
	data := map[string]any{"n": m.sizes[0], "k": m.sizes[len(m.sizes)-1]}
	for name, t := range batch {
		x, err := torch.ToSlice[float64](t)
		if err != nil {
			return 0, err
		}
		if len(x) > mostNumbers {
			return math.Inf(1), nil
		}
		if shape := t.Shape(); len(shape) == 2 {
			data[name] = slices.Collect(slices.Chunk(x, shape[1]))
		} else {
			data[name] = x
		}
	}
	text, err := programs.ReadFile("stan/" + m.peer + ".stan")
	if err != nil {
		return 0, err
	}
	a, err := s.Ask("compile", peer.Request{"code": string(text), "data": data}, patience)
	return a.Seconds, err
}

// measure compiles a model with an empty cache, and lets all sides take turns.
func (m model) measure(tier native.Tier, sides []side, seconds float64, rounds, threads int) (row, error) {
	r := row{name: m.name, us: math.Inf(1), one: math.Inf(1), many: math.Inf(1), same: true}
	for _, s := range sides {
		took, err := s.compile(s, m)
		if err != nil {
			return r, fmt.Errorf("%s: %w", s.name, err)
		}
		r.peers = append(r.peers, cost{math.Inf(1), took})
	}
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
		for i, s := range sides {
			if math.IsInf(r.peers[i].seconds, 1) {
				continue
			}
			a, err := s.turn(s, m, seconds)
			if err != nil {
				return r, fmt.Errorf("%s: %w", s.name, err)
			}
			r.peers[i].us = min(r.peers[i].us, a.US)
		}
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
