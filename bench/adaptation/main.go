// Command adaptation compares ways to adapt NUTS on posteriors of posteriordb: how many gradients an effective draw
// costs.
//
//	go run ./bench/adaptation -path DIR [-models a,b] [-schedules a,b] [-chains 4] [-warmup 1000] [-draws 1000]
//	    [-seeds 4]
//
// DIR is a checkout of github.com/stan-dev/posteriordb, or a part of one; without -path it is the environment variable
// POSTERIORDB. For each posterior and schedule the table has, in all chains of all seeds,
//
//	warm-up     gradients of a chain's warm-up
//	a draw      gradients of a transition after it
//	an effective draw    gradients after the warm-up over the smallest bulk effective sample size of a parameter
//	all         gradients over that size, those of the warm-up included
//
// and below it the geometric mean, over the posteriors, of the ratio to the first schedule.
//
//	go run ./bench/adaptation -counts [...]
//
// needs no data: its posteriors are two hierarchical models of made-up counts.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/kelvin-ppl/kelvin/bench/internal/command"
	"github.com/kelvin-ppl/kelvin/bench/internal/posteriors"
	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/ppl"
)

// schedule is a way to adapt, as a change of what a posterior asks for.
type schedule struct {
	name  string
	apply func(m *hmc.NUTS)
}

var schedules = []schedule{
	{"windows", func(m *hmc.NUTS) { m.Windows, m.Metric = true, hmc.Diagonal }},
	{"windows-fisher", func(m *hmc.NUTS) { m.Windows, m.Metric, m.Fisher = true, hmc.Diagonal, true }},
	{"moving", func(m *hmc.NUTS) { m.Windows, m.Metric = false, hmc.Diagonal }},
	{"moving-0.8", func(m *hmc.NUTS) { m.Windows, m.Metric, m.TargetAccept = false, hmc.Diagonal, own(m, 0.8) }},
	{"moving-0.9", func(m *hmc.NUTS) { m.Windows, m.Metric, m.TargetAccept = false, hmc.Diagonal, own(m, 0.9) }},
	{"windows-lowrank", func(m *hmc.NUTS) { m.Windows, m.Metric = true, hmc.LowRank }},
	{"moving-lowrank", func(m *hmc.NUTS) { m.Windows, m.Metric = false, hmc.LowRank }},
}

// own is the target acceptance that a posterior asks for, else the given one, which is then not raised.
func own(m *hmc.NUTS, target float64) float64 { return cmp.Or(m.TargetAccept, target) }

// cost is what a schedule costs on a posterior.
type cost struct {
	warmup, sampling int64 // gradients of all chains
	draws            int   // of all chains
	ess              float64
	divergent        int
}

func (c cost) effective() float64 { return float64(c.sampling) / c.ess }
func (c cost) all() float64       { return float64(c.sampling+c.warmup) / c.ess }

func main() { command.Main("adaptation", run) }

func run(ctx context.Context, args []string, out io.Writer) error {
	f := flag.NewFlagSet("adaptation", flag.ContinueOnError)
	var of posteriors.Flags
	of.Add(f)
	made := f.Bool("counts", false, "hierarchical models of made-up counts in the place of posteriordb")
	ways := f.String("schedules", "windows,moving", "of "+strings.Join(names(), ", "))
	chains := f.Int("chains", 4, "chains")
	warmup := f.Int("warmup", 1000, "transitions of each chain that adapt")
	kept := f.Int("draws", 1000, "draws kept of each chain")
	seeds := f.Uint64("seeds", 4, "runs with different seeds")
	if err := f.Parse(args); err != nil {
		return err
	}
	if *chains < 1 || *warmup < 1 || *kept < 4 || *seeds < 1 {
		return fmt.Errorf("-chains %d -warmup %d -draws %d -seeds %d: there must be at least 1, 1, 4 and 1", *chains,
			*warmup, *kept, *seeds)
	}
	var compared []schedule
	for _, name := range strings.Split(*ways, ",") {
		i := slices.Index(names(), name)
		if i < 0 {
			return fmt.Errorf("-schedules: there is no %q; there are %s", name, strings.Join(names(), ", "))
		}
		compared = append(compared, schedules[i])
	}
	var all []problem
	var err error
	if *made {
		all, err = countsProblems()
	} else {
		all, err = published(of)
	}
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "posterior\tschedule\twarm-up\ta draw\tan effective draw\tall\tESS\tdivergent")
	ratios := make([][2]float64, len(compared)) // sums of logarithms
	for _, e := range all {
		var first cost
		for i, s := range compared {
			c, err := measure(ctx, e, s, *seeds, infer.Options{Chains: *chains, Warmup: *warmup, Draws: *kept,
				Observer: infer.Silent})
			if err != nil {
				return fmt.Errorf("%s, %s: %w", e.name, s.name, err)
			}
			if i == 0 {
				first = c
			}
			ratios[i][0] += math.Log(c.effective() / first.effective())
			ratios[i][1] += math.Log(c.all() / first.all())
			fmt.Fprintf(w, "%s\t%s\t%.0f\t%.1f\t%.2f\t%.2f\t%.0f\t%d\n", e.name, s.name,
				float64(c.warmup)/float64(*chains)/float64(*seeds), float64(c.sampling)/float64(c.draws), c.effective(),
				c.all(), c.ess, c.divergent)
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	for i, s := range compared {
		n := float64(len(all))
		fmt.Fprintf(w, "geometric mean\t%s\t\t\t%.3f\t%.3f\n", s.name, math.Exp(ratios[i][0]/n), math.Exp(ratios[i][1]/n))
	}
	return w.Flush()
}

func names() []string {
	var out []string
	for _, s := range schedules {
		out = append(out, s.name)
	}
	return out
}

// problem is a posterior with the sampler that it asks for.
type problem struct {
	name    string
	program *ppl.Program
	method  hmc.NUTS
}

// published are posteriors of posteriordb, and countsProblems those of made-up counts.
func published(of posteriors.Flags) ([]problem, error) {
	db, chosen, err := of.Open()
	if err != nil {
		return nil, err
	}
	var all []problem
	for _, e := range chosen {
		p, program, _, err := e.Compile(db)
		if err != nil {
			return nil, err
		}
		all = append(all, problem{e.Name, program, p.Method})
	}
	return all, nil
}

func countsProblems() ([]problem, error) {
	var all []problem
	for _, overdispersed := range []bool{false, true} {
		program, err := compileCounts(overdispersed)
		if err != nil {
			return nil, err
		}
		name := map[bool]string{false: "counts-poisson", true: "counts-negative_binomial"}[overdispersed]
		all = append(all, problem{name: name, program: program})
	}
	return all, nil
}

// measure runs one posterior with one schedule.
func measure(ctx context.Context, p problem, s schedule, seeds uint64, o infer.Options) (cost, error) {
	s.apply(&p.method)
	var total cost
	for o.Seed = range seeds {
		r, err := infer.Run(ctx, p.program, p.method, o)
		if err != nil {
			return cost{}, err
		}
		c, err := costOf(r)
		if err != nil {
			return cost{}, err
		}
		total.warmup += c.warmup
		total.sampling += c.sampling
		total.draws += c.draws
		total.ess += c.ess
		total.divergent += c.divergent
	}
	return total, nil
}

// costOf counts what a run cost. The effective sample size is the smallest of a free parameter's.
func costOf(r *infer.Result) (cost, error) {
	c := cost{ess: math.Inf(1), draws: r.Draws.Total()}
	for chain := range r.Draws.Chains() {
		for name, sum := range map[string]func(v float64){
			draws.StatLeapfrog:  func(v float64) { c.sampling += int64(v) },
			draws.StatDivergent: func(v float64) { c.divergent += int(v) },
		} {
			values, err := r.Draws.Stat(name, chain)
			if err != nil {
				return c, err
			}
			for _, v := range values {
				sum(v)
			}
		}
	}
	c.warmup = r.Gradients - c.sampling
	for i := range r.Unconstrained.Dim() {
		element := make([][]float64, r.Unconstrained.Chains())
		for chain := range element {
			element[chain] = r.Unconstrained.Element(chain, i)
		}
		c.ess = math.Min(c.ess, diag.ESSBulk(element))
	}
	return c, nil
}
