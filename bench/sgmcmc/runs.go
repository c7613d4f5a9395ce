package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/kelvin-ppl/kelvin/bench"
	"github.com/kelvin-ppl/kelvin/bench/internal/command"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
)

// runs.go measures whole runs: what an update of all chains costs through infer.Run.

// problem is a program with a size of minibatches, 0 for all of the data.
type problem struct {
	name  string
	make  func() (infer.Program, infer.Batch, error)
	batch int
}

var problems = []problem{
	{"regression 768 x 8, all data", regression, 0},
	{"regression 768 x 8, batches of 32", regression, 32},
	{"network 784-200-200-10, batches of 128", network, 128},
}

// runRow is a method on a problem. Nanoseconds are of the processor, for an update of all chains.
type runRow struct {
	Problem  string  `json:"problem"`
	Sampler  string  `json:"sampler"`
	Chains   int     `json:"chains"`
	Nanos    float64 `json:"ns_per_update"`
	Segments int     `json:"segments"` // of which the fastest counts
	Gradient string  `json:"gradient"` // who evaluates it
}

// measureRuns prints the rows of all problems.
func measureRuns(w io.Writer, asJSON, quick bool, seconds float64, only string) error {
	var rows []runRow
	for _, p := range problems {
		for _, s := range samplers {
			if s.name != "SGHMC" && s.name != "SGLD" || !strings.Contains(s.name, only) {
				continue
			}
			for _, chains := range []int{1, 64} {
				if chains > 1 && strings.HasPrefix(p.name, "network") {
					continue
				}
				row, err := p.time(s, chains, quick, time.Duration(seconds*float64(time.Second)))
				if err != nil {
					return fmt.Errorf("%s, %s, %d chains: %w", p.name, s.name, chains, err)
				}
				rows = append(rows, row)
			}
		}
	}
	if asJSON {
		return command.JSON(w, rows)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "problem\tsampler\tK\tns/update\tgradient")
	for _, r := range rows {
		fmt.Fprintf(t, "%s\t%s\t%d\t%.4g\t%s\n", r.Problem, r.Sampler, r.Chains, r.Nanos, r.Gradient)
	}
	return t.Flush()
}

// processor is the time that this process has had of the machine's processors.
func processor() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// time makes runs of segments and takes the fastest segment: a run hands its draws out at the end of each.
func (p problem) time(s sampler, chains int, quick bool, budget time.Duration) (runRow, error) {
	program, data, err := p.make()
	if err != nil {
		return runRow{}, err
	}
	row := runRow{Problem: p.name, Sampler: s.name, Chains: chains, Nanos: math.Inf(1)}
	// The first run finds how many updates take a twentieth of the budget.
	segment := 16
	for {
		var last, took time.Duration
		ctx, cancel := context.WithCancel(context.Background())
		began := time.Now()
		row.Nanos, row.Segments = math.Inf(1), 0
		o := infer.Options{Chains: chains, Warmup: infer.None, Draws: 40, Thin: segment, SaveEvery: segment,
			Observer: infer.Silent, Seed: 1}
		o.Save = func(string, []int, *draws.Draws) error {
			now := processor()
			if last > 0 {
				took = now - last
				row.Nanos = min(row.Nanos, float64(took.Nanoseconds())/float64(segment))
				row.Segments++
			}
			last = processor()
			if row.Segments > 2 && (took < budget/40 || time.Since(began) > 4*budget) {
				cancel()
			}
			return nil
		}
		if p.batch > 0 {
			if o.Batches, err = infer.Minibatches(data, infer.MinibatchOptions{Size: p.batch}); err != nil {
				cancel()
				return row, err
			}
		}
		r, err := infer.Run(ctx, program, s.method, o)
		stopped := ctx.Err() != nil
		cancel()
		if err != nil && !stopped {
			return row, err
		}
		row.Gradient = r.Unconstrained.Attrs()["gradient"]
		if !stopped || quick || took >= budget/40 {
			return row, nil
		}
		segment *= max(2, int(float64(budget)/20/float64(max(took, budget/2000))))
	}
}

// regression is a logistic regression of the size of the Pima data, as a mean over the data.
func regression() (infer.Program, infer.Batch, error) {
	m, err := bench.NewLogistic(768, 8, torch.CPU)
	if err != nil {
		return nil, nil, err
	}
	x, err := torch.FromSlice(m.X, 768, 8)
	if err != nil {
		return nil, nil, err
	}
	sign, err := torch.FromSlice(m.Sign)
	if err != nil {
		return nil, nil, err
	}
	batch := infer.Batch{"x": x, "sign": sign}
	layout, err := infer.NewLayout(infer.Shapes{"w": {8}})
	if err != nil {
		return nil, nil, err
	}
	start, err := infer.NewParams(layout, m.Start())
	target := infer.Mean(func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		w := p.Get("w")
		return b.Get("x").MatMul(w).Mul(b.Get("sign")).LogSigmoid().Mean().Sub(w.Square().Sum().Mul(0.5 / 768)), nil
	}, 768)
	return infer.Handwritten(target, start, batch), batch, err
}

// network is a classifier of 784 features into 10 classes with two hidden layers of 200, in float32, on made-up data.
func network() (infer.Program, infer.Batch, error) {
	const n = 1280
	streams := torch.NewStreams(7, 1)
	x, err := streams.Normal([]int{n, 784}, gotch.Float, torch.CPU)
	if err != nil {
		return nil, nil, err
	}
	x = x.Reshape(n, 784)
	labels := make([]int, n)
	for i := range labels {
		labels[i] = i % 10
	}
	y, err := torch.FromSlice(labels)
	if err != nil {
		return nil, nil, err
	}
	batch := infer.Batch{"x": x, "y": y}
	layout, err := infer.NewLayout(infer.Shapes{"a": {784, 200}, "b": {200, 200}, "c": {200, 10}})
	if err != nil {
		return nil, nil, err
	}
	flat, err := streams.Normal([]int{layout.Dim()}, gotch.Float, torch.CPU)
	if err != nil {
		return nil, nil, err
	}
	flat = flat.Mul(0.05).Reshape(layout.Dim())
	target := infer.Mean(func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		h := b.Get("x").MatMul(p.Get("a")).Tanh().MatMul(p.Get("b")).Tanh().MatMul(p.Get("c"))
		nll := torch.Of(h.T().MustLogSoftmax(-1, gotch.Float, false)).T().
			MustGather(-1, b["y"].Unsqueeze(-1).T(), false, false)
		return torch.Of(nll).Mean().Sub(p.Flat.Square().Sum().Mul(0.5 / n)), nil
	}, n)
	return infer.Handwritten(target, infer.Params{Layout: layout, Flat: flat}, batch), batch, nil
}
