// Command pathfinder measures Pathfinder on posteriors of posteriordb.
//
//	go run ./bench/pathfinder -path DIR [-models a,b] [-seeds 4]
//
// DIR is a checkout of github.com/stan-dev/posteriordb, or a part of one; without -path it is the environment variable
// POSTERIORDB. The table has the distance of 4000 draws to the reference draws: the 1-Wasserstein distance of
// each parameter in standard deviations of the reference, its mean over parameters and seeds; of single-path
// Pathfinder, of multi-path Pathfinder with Pareto-smoothed importance weights, and of NUTS, whose distance is
// Monte-Carlo error. Beside it are the gradients of a chain, and the median Pareto k.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/kelvin-ppl/kelvin/bench/internal/command"
	"github.com/kelvin-ppl/kelvin/bench/internal/posteriors"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/pathfinder"
)

func main() { command.Main("pathfinder", run) }

func run(ctx context.Context, args []string, out io.Writer) error {
	f := flag.NewFlagSet("pathfinder", flag.ContinueOnError)
	var of posteriors.Flags
	of.Add(f)
	seeds := f.Uint64("seeds", 4, "runs with different seeds")
	if err := f.Parse(args); err != nil {
		return err
	}
	if *seeds < 1 {
		return fmt.Errorf("-seeds %d: there must be at least 1 seed", *seeds)
	}
	db, chosen, err := of.Open()
	if err != nil {
		return err
	}
	return distances(ctx, db, chosen, *seeds, out)
}

// distances makes the table.
func distances(ctx context.Context, db posteriors.Database, chosen []posteriors.Entry, seeds uint64,
	out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "posterior\tsingle\tmulti\tNUTS\tPareto k\tgradients: single\tmulti\tNUTS")
	for _, e := range chosen {
		p, program, reference, err := e.Compile(db)
		if err != nil {
			return err
		}
		ways := []infer.Method{pathfinder.Pathfinder{Paths: 1, Plain: true}, pathfinder.Pathfinder{}, p.Method}
		distance, gradients, ks := make([]float64, len(ways)), make([]float64, len(ways)), []float64{}
		for i, way := range ways {
			for seed := range seeds {
				r, err := infer.Run(ctx, program, way, infer.Options{Seed: seed, Observer: infer.Silent})
				if err != nil {
					return fmt.Errorf("%s: %w", e.Name, err)
				}
				far, err := reference.Distance(r.Draws)
				if err != nil {
					return err
				}
				distance[i] += far / float64(seeds)
				gradients[i] += float64(r.Gradients) / 4 / float64(seeds)
				if detail, ok := r.Detail.(*pathfinder.Detail); ok && i == 1 {
					ks = append(ks, detail.ParetoK...)
				}
			}
		}
		slices.Sort(ks)
		fmt.Fprintf(w, "%s\t%.3f\t%.3f\t%.3f\t%.2f\t%.0f\t%.0f\t%.0f\n", e.Name, distance[0], distance[1], distance[2],
			ks[len(ks)/2], gradients[0], gradients[1], gradients[2])
		if err := w.Flush(); err != nil {
			return err
		}
	}
	return nil
}
