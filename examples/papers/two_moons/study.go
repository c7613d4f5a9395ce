package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"time"

	cells "github.com/kelvin-ppl/kelvin/examples/internal/grid"
	"github.com/kelvin-ppl/kelvin/infer"
)

// seedResult is what all methods give on one seed.
type seedResult struct {
	Seed    uint64    `json:"seed"`
	Methods []rowJSON `json:"methods"`
	Claims  []claim   `json:"claims"`
	Notes   []string  `json:"notes"`
	Seconds float64   `json:"seconds"`
}

// study runs all methods over seeds, and prints the tables. The first seed draws the pictures.
func study(ctx context.Context, w io.Writer, o options) error {
	s, mlp, tau := o.problem()
	g := &cells.Grid[*seedResult]{Dir: o.dir(), Workers: o.workers, Settings: map[string]any{"version": 1, "tau": tau,
		"sizes": mlp.Sizes, "run": fmt.Sprintf("%+v", s)}}
	for i := range o.seeds {
		seed := o.seed + uint64(i)
		g.Cells = append(g.Cells, cells.Cell[*seedResult]{Name: fmt.Sprintf("seed%d", seed),
			Run: func(ctx context.Context, _, _ string, _ infer.Observer) (*seedResult, error) {
				t, err := newTask(s, mlp, seed, tau)
				if err != nil {
					return nil, err
				}
				dir := ""
				if i == 0 {
					dir = o.dir()
				}
				return t.all(ctx, dir)
			}})
	}
	all, err := g.Run(ctx)
	if err != nil {
		return err
	}
	sum := summarise(all)
	sum.Settings, sum.Tau = s.tuned, tau
	if o.json {
		return json.NewEncoder(w).Encode(sum)
	}
	if err := sum.print(w); err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "\nThe pictures in %s are those of one seed: decision.png, uncertainty.png, entropy.png, "+
		"reliability.png.\n", o.dir())
	return err
}

// all runs all methods on one seed, and draws the pictures into a folder if there is one.
func (t *task) all(ctx context.Context, dir string) (*seedResult, error) {
	began := time.Now()
	var outcomes []outcome
	for _, m := range methods {
		result, err := t.run(ctx, m)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.title, err)
		}
		if m.name == nameMAP {
			t.modeSeconds = result.seconds
		}
		outcomes = append(outcomes, result)
	}
	claims, err := t.claims(outcomes)
	if err != nil {
		return nil, err
	}
	for i, c := range claims {
		if math.IsNaN(c.Margin) || math.IsInf(c.Margin, 0) {
			claims[i].Margin = 0 // nothing to compare, as after a run that diverged: the claim does not hold
		}
	}
	if dir != "" {
		if err := t.pictures(dir, outcomes); err != nil {
			return nil, err
		}
	}
	out := &seedResult{Seed: t.seed, Claims: claims, Notes: t.notes, Seconds: time.Since(began).Seconds()}
	for _, o := range outcomes {
		out.Methods = append(out.Methods, o.row)
	}
	return out, nil
}
