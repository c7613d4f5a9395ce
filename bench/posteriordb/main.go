// Command posteriordb runs posteriors of posteriordb with NUTS and compares every parameter with the reference draws.
//
//	go run ./bench/posteriordb -path DIR [-models a,b] [-chains 4] [-warmup 1000] [-draws 1000] [-seed 1] [-seeds 20]
//		[-json] [-list]
//
// DIR is a checkout of github.com/stan-dev/posteriordb, or a part of one; without -path it is the environment variable
// POSTERIORDB. Means and standard deviations differ from the reference's by z combined Monte-Carlo standard errors. The
// program exits with 1 when a posterior misses its mark (see compare.go) or could not be run, and says which and why.
// With -seeds each posterior runs with as many seeds from -seed on: a row for each run, then one for each posterior
// with its worst figures, and z of the averages over seeds, which finds a bias that is small beside the error of one
// run.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"text/tabwriter"
	"time"

	"github.com/kelvin-ppl/kelvin/bench/internal/command"
	"github.com/kelvin-ppl/kelvin/bench/internal/posteriors"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is the program; it returns its exit status.
func run(ctx context.Context, args []string, out, messages io.Writer) int {
	f := flag.NewFlagSet("posteriordb", flag.ContinueOnError)
	f.SetOutput(messages)
	var of posteriors.Flags
	of.Add(f)
	chains := f.Int("chains", 4, "chains")
	warmup := f.Int("warmup", 1000, "transitions of each chain that adapt")
	draws := f.Int("draws", 1000, "draws kept of each chain")
	seed := f.Uint64("seed", 1, "of the random numbers")
	seeds := f.Int("seeds", 1, "runs of each posterior, with seeds that follow each other")
	asJSON := f.Bool("json", false, "print one JSON object instead of a table")
	list := f.Bool("list", false, "print the names of the posteriors and stop")
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	err := func() error {
		if f.NArg() > 0 {
			return fmt.Errorf("%q is not a flag", f.Arg(0))
		}
		if *list {
			for _, e := range posteriors.Registry {
				fmt.Fprintln(out, e.Name)
			}
			return nil
		}
		if *chains < 1 || *warmup < 1 || *draws < 4 || *seeds < 1 {
			return fmt.Errorf("-chains %d -warmup %d -draws %d -seeds %d: there must be at least 1, 1, 4 and 1", *chains,
				*warmup, *draws, *seeds)
		}
		db, chosen, err := of.Open()
		if err != nil {
			return err
		}
		options := infer.Options{Chains: *chains, Warmup: *warmup, Draws: *draws, Seed: *seed}
		return bench(ctx, db, chosen, options, *seeds, *asJSON, out)
	}()
	if err != nil {
		fmt.Fprintln(messages, "posteriordb:", err)
		return 1
	}
	return 0
}

// bench runs the posteriors one after the other. What one misses does not keep the others from being run; all of it is
// the error.
func bench(ctx context.Context, db posteriors.Database, chosen []posteriors.Entry, options infer.Options, seeds int,
	asJSON bool, out io.Writer) error {
	rows, errs := []row{}, []error{}
	for _, e := range chosen {
		own := options
		for range seeds {
			r, err := measure(ctx, db, e, own)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s, seed %d: %w", e.Name, own.Seed, err))
				if ctx.Err() != nil {
					return errors.Join(append(errs, report(out, rows, asJSON))...)
				}
			} else {
				rows = append(rows, r)
			}
			for _, m := range r.misses {
				errs = append(errs, fmt.Errorf("%s misses its mark with seed %d: %s", r.Name, r.Seed, m))
			}
			own.Seed++
		}
	}
	return errors.Join(append(errs, report(out, rows, asJSON))...)
}

// measure runs one posterior and compares its draws with the reference.
func measure(ctx context.Context, db posteriors.Database, e posteriors.Entry, options infer.Options) (row, error) {
	p, program, reference, err := e.Compile(db)
	if err != nil {
		return row{}, err
	}
	start := time.Now()
	result, err := infer.Run(ctx, program, p.Method, options)
	if err != nil {
		return row{}, err
	}
	r := row{Name: e.Name, Seed: options.Seed, Gradients: result.Gradients, Seconds: time.Since(start).Seconds()}
	for c := range result.Draws.Chains() {
		diverged, err := result.Draws.Stat(draws.StatDivergent, c)
		if err != nil {
			return row{}, err
		}
		for _, v := range diverged {
			r.Divergences += int(v)
		}
	}
	r.parameters, err = compare(result.Draws, reference)
	if err != nil {
		return row{}, err
	}
	r.judge(result.Draws.Chains())
	return r, nil
}

// report writes the rows as a table, or as {"posteriors": [...]}.
func report(w io.Writer, rows []row, asJSON bool) error {
	if asJSON {
		for _, r := range rows {
			for _, v := range []float64{r.MaxZMean, r.MaxZSD, r.MaxRHat, r.MinESSBulk} {
				if math.IsNaN(v) || math.IsInf(v, 0) {
					return fmt.Errorf("%s: a figure is %v, which JSON cannot hold", r.Name, v)
				}
			}
		}
		return command.JSON(w, map[string]any{"posteriors": rows})
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "posterior\tseed\tparameters\tz of means\tof sds\tR-hat\tbulk ESS\tdivergences\t"+
		"gradients\tseconds\tmarks")
	for _, r := range rows {
		marks := "met"
		if len(r.misses) > 0 {
			marks = "missed"
		}
		fmt.Fprintf(t, "%s\t%d\t%d\t%.2f\t%.2f\t%.4f\t%.0f\t%d\t%d\t%.1f\t%s\n", r.Name, r.Seed, len(r.parameters),
			r.MaxZMean, r.MaxZSD, r.MaxRHat, r.MinESSBulk, r.Divergences, r.Gradients, r.Seconds, marks)
	}
	if all := overSeeds(rows); len(all) < len(rows) {
		fmt.Fprintln(t, "\nposterior\truns\tmissed\tworst z of means\tof sds\tworst R-hat\tleast bulk ESS\tdivergences\t"+
			"|z| of average means\tof average sds")
		for _, s := range all {
			fmt.Fprintf(t, "%s\t%d\t%d\t%.2f\t%.2f\t%.4f\t%.0f\t%d\t%.2f\t%.2f\n", s.worst.Name, s.runs, s.missed,
				s.worst.MaxZMean, s.worst.MaxZSD, s.worst.MaxRHat, s.worst.MinESSBulk, s.worst.Divergences,
				s.averageMean, s.averageSD)
		}
	}
	return t.Flush()
}
