// Command continual_regression learns a function from five episodes, each on its own part of the inputs and seen once,
// with a network of 40,801 parameters. Sequential maximum a posteriori forgets what it saw; Laplace approximations and
// variational inference, whose posterior of one episode is the prior of the next, remember. Training on all data seen
// so far, offline, is the bound.
//
//	go run ./examples/continual_regression
//
// prints tables and writes pictures to out/continual_regression. Its flags are
//
//	-json                  one JSON object
//	-settings plain        no datum counts more than once: the diagonal methods remember less
//	-settings published    settings of the literature, with which variational inference may forget
//	-quick                 a small network and short runs: a look at the output, not at the methods
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/kelvin-ppl/kelvin/examples/internal/command"
)

func main() {
	var o options
	flag.BoolVar(&o.json, "json", false, "print one JSON object instead of tables")
	flag.BoolVar(&o.quick, "quick", false, "a small network, short runs and two seeds")
	flag.StringVar(&o.settings, "settings", tuned, "settings of the methods: "+tuned+", "+plain+" or "+published)
	flag.StringVar(&o.out, "out", filepath.Join("out", "continual_regression"), "folder for summary.json and the pictures")
	flag.Uint64Var(&o.seed, "seed", 1, "first seed: of the data, the start and the samples")
	flag.IntVar(&o.seeds, "seeds", 4, "number of seeds")
	command.Main("continual_regression", func(ctx context.Context) error { return run(ctx, os.Stdout, o) })
}

type options struct {
	json, quick   bool
	settings, out string
	seed          uint64
	seeds         int
}

// outcome is what all methods did with one seed.
type outcome struct {
	data      []series
	single    [episodes]float64
	histories []history // in the order of the methods
}

func run(ctx context.Context, w io.Writer, o options) error {
	if o.seeds < 1 {
		return fmt.Errorf("seeds is %d: it must be at least 1", o.seeds)
	}
	if o.quick {
		o.seeds = min(o.seeds, 2)
	}
	all, err := methods(o.settings, o.quick)
	if err != nil {
		return err
	}
	outcomes, err := runSeeds(ctx, o, all)
	if err != nil {
		return err
	}
	s := summarise(o, all, outcomes)
	if err := writeFiles(o.out, s, all, outcomes); err != nil {
		return err
	}
	if o.json {
		return json.NewEncoder(w).Encode(s)
	}
	printSummary(w, s)
	_, err = fmt.Fprintf(w, "\nWritten to %s: summary.json, fits.png, excess.png\n", o.out)
	return err
}

// runSeeds runs the seeds side by side, one on each processor.
func runSeeds(ctx context.Context, o options, all []method) ([]outcome, error) {
	outcomes := make([]outcome, o.seeds)
	err := command.SideBySide(o.seeds, func(i int) (err error) {
		began := time.Now()
		seed := o.seed + uint64(i)
		if outcomes[i], err = runSeed(ctx, all, seed, i == 0); err == nil && !o.json {
			fmt.Fprintf(os.Stderr, "seed %d: %.0f s\n", seed, time.Since(began).Seconds())
		}
		return err
	})
	return outcomes, err
}

func runSeed(ctx context.Context, all []method, seed uint64, fits bool) (r outcome, err error) {
	if r.data, err = observe(seed); err != nil {
		return r, err
	}
	if r.single, err = single(ctx, all[0], seed, r.data); err != nil {
		return r, err
	}
	for _, m := range all {
		h, err := follow(ctx, m, seed, r.data, fits)
		if err != nil {
			return r, err
		}
		r.histories = append(r.histories, h)
	}
	return r, nil
}
