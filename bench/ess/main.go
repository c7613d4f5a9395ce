// Command ess measures what NUTS yields: effective draws per second and per gradient, on four posteriors and with 1 to
// 256 chains in one batch.
//
//	go run ./bench/ess [-json] [-quick] [-pima examples/internal/pima/pima.csv]
//
// The effective sample size is the least bulk ESS of all elements on unconstrained space, from the draws after the
// warm-up. Seconds and gradients are those of the whole run, warm-up included. With 16 chains and more, metric and
// step size are learnt from all chains.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"text/tabwriter"
	"time"

	"github.com/kelvin-ppl/kelvin/bench/internal/command"
	data "github.com/kelvin-ppl/kelvin/bench/internal/pima"
	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
)

func main() {
	asJSON := flag.Bool("json", false, "print one JSON object instead of a table")
	quick := flag.Bool("quick", false, "a tenth of the draws")
	pima := flag.String("pima", data.File, "the Pima data")
	flag.Parse()
	command.Main("ess", func(ctx context.Context, _ []string, out io.Writer) error {
		return run(ctx, out, *asJSON, *quick, *pima)
	})
}

// row is one run.
type row struct {
	Posterior      string  `json:"posterior"`
	Chains         int     `json:"chains"`
	ESS            float64 `json:"ess"`
	Seconds        float64 `json:"seconds"`
	Gradients      int     `json:"gradients"`
	ESSPerSecond   float64 `json:"ess_per_second"`
	ESSPerGradient float64 `json:"ess_per_gradient"`
	GradientsPerS  float64 `json:"gradients_per_second"`
}

func run(ctx context.Context, w io.Writer, asJSON, quick bool, pima string) error {
	targets, err := posteriors(pima)
	if err != nil {
		return err
	}
	var rows []row
	for _, t := range targets {
		for _, chains := range []int{1, 4, 64, 256} {
			r, err := measure(ctx, t, chains, quick)
			if err != nil {
				return fmt.Errorf("%s, %d chains: %w", t.name, chains, err)
			}
			rows = append(rows, r)
			fmt.Fprintf(os.Stderr, "%s, %d chains: %.0f effective draws in %.1f s\n", r.Posterior, r.Chains, r.ESS, r.Seconds)
		}
	}
	if asJSON {
		return command.JSON(w, map[string]any{"runs": rows})
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "posterior\tchains\tESS\tseconds\tESS/s\tESS/gradient\tgradients/s\t")
	for _, r := range rows {
		fmt.Fprintf(table, "%s\t%d\t%.0f\t%.1f\t%.0f\t%.3f\t%.0f\t\n", r.Posterior, r.Chains, r.ESS, r.Seconds,
			r.ESSPerSecond, r.ESSPerGradient, r.GradientsPerS)
	}
	return table.Flush()
}

// measure runs one posterior: 4000 draws in all from 1 and 4 chains, 12 800 from 64, 25 600 from 256.
func measure(ctx context.Context, t target, chains int, quick bool) (row, error) {
	draws := map[int]int{1: 4000, 4: 1000, 64: 200, 256: 100}[chains]
	o := infer.Options{Chains: chains, Warmup: 500, Seed: 1, Draws: draws}
	if quick {
		o.Draws, o.Warmup = max(o.Draws/10, 20), 100
	}
	began := time.Now()
	r, err := infer.Run(ctx, t.program, hmc.NUTS{Pooled: chains >= 16}, o)
	if err != nil {
		return row{}, err
	}
	seconds := time.Since(began).Seconds()
	ess, err := leastESS(r.Unconstrained)
	if err != nil {
		return row{}, err
	}
	g := float64(r.Gradients)
	return row{t.name, chains, ess, seconds, r.Gradients, ess / seconds, ess / g, g / seconds}, nil
}

// leastESS is the least bulk ESS of all elements.
func leastESS(d *draws.Draws) (float64, error) {
	least := math.Inf(1)
	for _, s := range d.Sites() {
		values, err := d.Values(s.Name)
		if err != nil {
			return 0, err
		}
		for i := range s.Size {
			x := make([][]float64, len(values))
			for c, chain := range values {
				for _, v := range chain {
					x[c] = append(x[c], v[i])
				}
			}
			least = min(least, diag.ESSBulk(x))
		}
	}
	return least, nil
}
