// Command pathfinder measures Pathfinder on posteriors of posteriordb.
//
//	go run ./bench/pathfinder -path DIR [-models a,b] [-seeds 4] [-only fit|warm-up]
//
// DIR is a checkout of github.com/stan-dev/posteriordb, or a part of one; without -path it is the environment variable
// POSTERIORDB. The first table has the distance of 4000 draws to the reference draws: the 1-Wasserstein distance of
// each parameter in standard deviations of the reference, its mean over parameters and seeds; of single-path
// Pathfinder, of multi-path Pathfinder with Pareto-smoothed importance weights, and of NUTS, whose distance is
// Monte-Carlo error. Beside it are the gradients of a chain, and the median Pareto k.
//
// The second table has what a warm-up takes. Of warm-ups of 25 to 1000 transitions the needed one is the shortest from
// which on an effective draw costs at most 1.25 times the gradients that it costs without Pathfinder after 1000: the
// table has the gradients of a chain in it, with Pathfinder's own, without and with Pathfinder, and their ratio.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"

	"github.com/kelvin-ppl/kelvin/bench/internal/command"
	"github.com/kelvin-ppl/kelvin/bench/internal/posteriors"
	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/pathfinder"
)

func main() { command.Main("pathfinder", run) }

func run(ctx context.Context, args []string, out io.Writer) error {
	f := flag.NewFlagSet("pathfinder", flag.ContinueOnError)
	var of posteriors.Flags
	of.Add(f)
	seeds := f.Uint64("seeds", 4, "runs with different seeds")
	only := f.String("only", "", "fit or warm-up; by default both tables")
	if err := f.Parse(args); err != nil {
		return err
	}
	if *seeds < 1 || !slices.Contains([]string{"", "fit", "warm-up"}, *only) {
		return fmt.Errorf("-seeds %d -only %q: there must be at least 1 seed, and a table fit or warm-up", *seeds, *only)
	}
	db, chosen, err := of.Open()
	if err != nil {
		return err
	}
	for _, t := range []struct {
		name string
		make func(context.Context, posteriors.Database, []posteriors.Entry, uint64, io.Writer) error
	}{{"fit", distances}, {"warm-up", warmups}} {
		if *only != "" && *only != t.name {
			continue
		}
		if err := t.make(ctx, db, chosen, *seeds, out); err != nil {
			return err
		}
		fmt.Fprintln(out)
	}
	return nil
}

// distances is the first table.
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

// lengths of warm-ups, and the factor on the cost of an effective draw that is allowed.
var lengths = []int{5, 10, 15, 20, 25, 50, 75, 100, 150, 200, 300, 500, 1000}

const allowed = 1.25

// warmups is the second table.
func warmups(ctx context.Context, db posteriors.Database, chosen []posteriors.Entry, seeds uint64,
	out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "posterior\tlength\tgradients\twith: length\tgradients\tratio\tratio at 100\tat 1000\tcost at 100\t"+
		"with, at 100")
	fewer, worse := 0, 0
	for _, e := range chosen {
		p, program, _, err := e.Compile(db)
		if err != nil {
			return err
		}
		var costs [2][]cost
		for i := range costs {
			p.Method.Pathfinder = i == 1
			for _, n := range lengths {
				c, err := measure(ctx, program, p.Method, n, seeds)
				if err != nil {
					return fmt.Errorf("%s, warm-up of %d: %w", e.Name, n, err)
				}
				costs[i] = append(costs[i], c)
			}
		}
		last, hundred := len(lengths)-1, slices.Index(lengths, 100)
		goal := allowed * costs[0][last].effective
		a, b := needed(costs[0], goal), needed(costs[1], goal)
		ratio := costs[1][b].warmup / costs[0][a].warmup
		if ratio <= 0.7 {
			fewer++
		}
		if ratio > 1.1 {
			worse++
		}
		fmt.Fprintf(w, "%s\t%d\t%.0f\t%d\t%.0f\t%.2f\t%.2f\t%.2f\t%.1f\t%.1f\n", e.Name, lengths[a], costs[0][a].warmup,
			lengths[b], costs[1][b].warmup, ratio, costs[1][hundred].warmup/costs[0][hundred].warmup,
			costs[1][last].warmup/costs[0][last].warmup, costs[0][hundred].effective, costs[1][hundred].effective)
		if err := w.Flush(); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "at least 30 %% fewer on %d of %d, more than 10 %% more on %d\n", fewer, len(chosen), worse)
	return nil
}

// cost is what a warm-up costs, in gradients of a chain, and an effective draw after it.
type cost struct{ warmup, effective float64 }

// needed is the first length from which on no cost is above the goal; the last one if the goal is never met.
func needed(costs []cost, goal float64) int {
	i := len(costs) - 1
	for i > 0 && costs[i-1].effective <= goal {
		i--
	}
	return i
}

// measure runs a posterior with a warm-up. An effective draw is of the free parameter with the fewest, by the bulk.
func measure(ctx context.Context, program infer.Program, m hmc.NUTS, warmup int, seeds uint64) (cost, error) {
	const chains = 4
	var c cost
	sampling, ess := 0.0, 0.0
	for seed := range seeds {
		r, err := infer.Run(ctx, program, m, infer.Options{Seed: seed, Chains: chains, Warmup: warmup,
			Observer: infer.Silent})
		if err != nil {
			return c, err
		}
		own := 0.0
		for k := range r.Draws.Chains() {
			leapfrogs, err := r.Draws.Stat(draws.StatLeapfrog, k)
			if err != nil {
				return c, err
			}
			for _, v := range leapfrogs {
				own += v
			}
		}
		least := math.Inf(1)
		for i := range r.Unconstrained.Dim() {
			element := make([][]float64, chains)
			for k := range element {
				element[k] = r.Unconstrained.Element(k, i)
			}
			least = math.Min(least, diag.ESSBulk(element))
		}
		sampling, ess = sampling+own, ess+least
		c.warmup += (float64(r.Gradients) - own) / chains / float64(seeds)
	}
	c.effective = sampling / ess
	return c, nil
}
