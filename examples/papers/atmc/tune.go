package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/kelvin-ppl/kelvin/examples/internal/classify"
	"github.com/kelvin-ppl/kelvin/examples/internal/grid"
	"github.com/kelvin-ppl/kelvin/examples/internal/seeds"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/sugarme/gotch"
)

// heldOut is how many of the training images -tune scores on and does not train on: one in five.
func heldOut(images int) int { return max(1, images/5) }

// tried is a line of the table of -tune. Scores are of the images that were held out.
type tried struct {
	Method             string         `json:"method"`
	LR                 float64        `json:"learning_rate"`
	Momentum           float64        `json:"momentum"`
	NLL                seeds.Estimate `json:"nll"` // of one network
	Accuracy           seeds.Estimate `json:"accuracy"`
	PredictiveNLL      seeds.Estimate `json:"predictive_nll"` // of the average
	PredictiveAccuracy seeds.Estimate `json:"predictive_accuracy"`
	Unstable           int            `json:"unstable"` // seeds most of whose updates were not finite
	Best               bool           `json:"best"`     // the lowest NLL of the average, of this method
}

// tune runs each method at each learning rate and momentum, and says which are best on training images that are held
// out. The test images are not looked at.
func tune(ctx context.Context, w io.Writer, o options, s settings, device gotch.Device) error {
	rates, err := numbers("rates", o.rates)
	if err != nil {
		return err
	}
	momenta, err := numbers("momenta", o.momenta)
	if err != nil {
		return err
	}
	if s.Images < 2 {
		return fmt.Errorf("-images is %d: with -tune it must be at least 2: one is held out", s.Images)
	}
	train, _, err := images(o.data, s)
	if err != nil {
		return err
	}
	s.LR, s.Momentum = nil, nil
	first := s.Images - heldOut(s.Images)
	fitted, scored := train.Part(0, first), train.Part(first, s.Images)
	t, err := newTask(s, device, fitted, scored)
	if err != nil {
		return err
	}
	s = s.with(fitted, scored)
	g := &grid.Grid[*result]{Settings: s, Dir: filepath.Join(o.dir, "tune"), Workers: o.workers}
	var table []*tried
	for _, m := range s.methods() {
		momenta := momenta
		if m == psgld {
			momenta = []float64{0}
		}
		for _, lr := range rates {
			for _, momentum := range momenta {
				if err := checkStep(m, "rates", lr, "momenta", momentum); err != nil {
					return err
				}
				table = append(table, &tried{Method: m, LR: lr, Momentum: momentum})
				for i := range o.seeds {
					seed := s.Seed + uint64(i)
					g.Cells = append(g.Cells, orUnstable(t.cell(setting{m, lr, momentum}, fmt.Sprintf("%s-%g-%g-%d", m, lr,
						momentum, seed), seed)))
				}
			}
		}
	}
	all, err := g.Run(ctx)
	if err != nil {
		return err
	}
	best := map[string]*tried{}
	for i, row := range table {
		if row.score(all[i*o.seeds : (i+1)*o.seeds]); row.Unstable > 0 {
			continue
		}
		if best[row.Method] == nil || row.PredictiveNLL.Mean < best[row.Method].PredictiveNLL.Mean {
			best[row.Method] = row
		}
	}
	for _, row := range best {
		row.Best = true
	}
	if o.json {
		return json.NewEncoder(w).Encode(table)
	}
	return printTried(w, s, o.seeds, table)
}

// orUnstable is a cell whose result says so where most of the updates were not finite: one step that is too large does
// not end the whole table.
func orUnstable(c grid.Cell[*result]) grid.Cell[*result] {
	run := c.Run
	c.Run = func(ctx context.Context, dir, identity string, observer infer.Observer) (*result, error) {
		r, err := run(ctx, dir, identity, observer)
		if errors.Is(err, infer.ErrNonFinite) {
			return &result{Unstable: true}, nil
		}
		return r, err
	}
	return c
}

// numbers reads a list of numbers with commas.
func numbers(flag, list string) (x []float64, err error) {
	seen := map[float64]bool{}
	for _, text := range strings.Split(list, ",") {
		v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if err != nil || seen[v] {
			return nil, fmt.Errorf("-%s is %q: it must be different numbers with commas, such as 0.1,0.3", flag, list)
		}
		seen[v] = true
		x = append(x, v)
	}
	return x, nil
}

// score are the means over the seeds, of which there are none where a run was not stable.
func (t *tried) score(runs []*result) {
	for _, r := range runs {
		if r.Unstable {
			t.Unstable++
		}
	}
	if t.Unstable > 0 {
		return
	}
	of := func(value func(*result) float64) seeds.Estimate {
		x := make([]float64, len(runs))
		for i, r := range runs {
			x[i] = value(r)
		}
		return seeds.Over(x)
	}
	for _, kind := range []struct {
		nll, accuracy *seeds.Estimate
		of            func(*result) classify.Metrics
	}{{&t.NLL, &t.Accuracy, func(r *result) classify.Metrics { return r.Single }},
		{&t.PredictiveNLL, &t.PredictiveAccuracy, func(r *result) classify.Metrics { return r.Predictive }}} {
		*kind.nll = of(func(r *result) float64 { return kind.of(r).NLL })
		*kind.accuracy = of(func(r *result) float64 { return kind.of(r).Accuracy })
	}
}

// printTried prints the table, with a star at the best of each method.
func printTried(w io.Writer, s settings, n int, table []*tried) (err error) {
	f := func(format string, args ...any) {
		if err == nil {
			_, err = fmt.Fprintf(w, format, args...)
		}
	}
	held := heldOut(s.Images)
	f("Scores on %d training images that are held out, after %d epochs of the other %d; means ± standard errors over %d "+
		"seeds.\n\n", held, s.Epochs, s.Images-held, n)
	f("%-6s %6s %8s  %-16s %-11s %-16s %-11s\n", "", "lr", "momentum", "NLL, one", "accuracy %", "NLL, average",
		"accuracy %")
	for _, t := range table {
		if t.Unstable > 0 {
			f("%-6s %6g %8g  not stable with %d of the seeds\n", t.Method, t.LR, t.Momentum, t.Unstable)
			continue
		}
		f("%-6s %6g %8g  %6.4f ± %-7.4f %-11.2f %6.4f ± %-7.4f %.2f%s\n", t.Method, t.LR, t.Momentum, t.NLL.Mean, t.NLL.SE,
			100*t.Accuracy.Mean, t.PredictiveNLL.Mean, t.PredictiveNLL.SE, 100*t.PredictiveAccuracy.Mean,
			map[bool]string{true: " *"}[t.Best])
	}
	f("\n* the lowest NLL of the average, of a method\n")
	return err
}
