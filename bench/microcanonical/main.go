// Command microcanonical compares MAMS and MCLMC with NUTS: gradients for an effective draw.
//
//	go run ./bench/microcanonical -path DIR [-models a,b] [-seeds 2]
//
// DIR is a checkout of github.com/stan-dev/posteriordb, or a part of one; without -path it is the environment variable
// POSTERIORDB. The targets are the posteriors of posteriordb, Neal's funnel in 10 dimensions, and normal laws in 100,
// one of them correlated. Each chain of four makes 1000 draws after 1000 updates. For each method the table has the
// effective draws of a thousand gradients after the warm-up, by the free parameter with the fewest (bulk), and how far
// the draws are from the reference, as bench/pathfinder measures it; of the laws without a reference, how far the
// variance of the first coordinate is from the exact one, as a factor.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"text/tabwriter"

	"github.com/kelvin-ppl/kelvin/bench/internal/command"
	"github.com/kelvin-ppl/kelvin/bench/internal/posteriors"
	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/torch"
)

func main() { command.Main("microcanonical", run) }

// target is what the methods sample.
type target struct {
	name    string
	program infer.Program
	nuts    hmc.NUTS
	far     func(d *draws.Draws) (float64, error)
}

func run(ctx context.Context, args []string, out io.Writer) error {
	f := flag.NewFlagSet("microcanonical", flag.ContinueOnError)
	var of posteriors.Flags
	of.Add(f)
	seeds := f.Uint64("seeds", 2, "runs with different seeds")
	if err := f.Parse(args); err != nil {
		return err
	}
	if *seeds < 1 {
		return fmt.Errorf("-seeds %d: there must be at least 1", *seeds)
	}
	db, chosen, err := of.Open()
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "target\tdimensions\tNUTS\tMAMS\tMCLMC\tfar: NUTS\tMAMS\tMCLMC\tdivergent: NUTS\tMAMS\tMCLMC")
	row := func(t target) error {
		var yields, far [3]float64
		var divergent [3]int
		d := 0
		for i, m := range []infer.Method{t.nuts, hmc.MAMS{}, hmc.MCLMC{}} {
			gradients, ess := 0.0, 0.0
			for seed := range *seeds {
				r, err := infer.Run(ctx, t.program, m, infer.Options{Seed: seed, Observer: infer.Silent})
				if err != nil {
					return fmt.Errorf("%s: %w", t.name, err)
				}
				d = r.Unconstrained.Dim()
				g, e, bad, err := yield(r)
				if err != nil {
					return err
				}
				gradients, ess, divergent[i] = gradients+g, ess+e, divergent[i]+bad
				own, err := t.far(r.Draws)
				if err != nil {
					return err
				}
				far[i] += own / float64(*seeds)
			}
			yields[i] = 1000 * ess / gradients
		}
		fmt.Fprintf(w, "%s\t%d\t%.1f\t%.1f\t%.1f\t%.3f\t%.3f\t%.3f\t%d\t%d\t%d\n", t.name, d, yields[0], yields[1],
			yields[2], far[0], far[1], far[2], divergent[0], divergent[1], divergent[2])
		return w.Flush()
	}
	for _, e := range chosen {
		p, program, reference, err := e.Compile(db)
		if err != nil {
			return err
		}
		if err := row(target{e.Name, program, p.Method, reference.Distance}); err != nil {
			return err
		}
	}
	if of.Models != "" {
		return nil
	}
	laws, err := laws()
	if err != nil {
		return err
	}
	for _, t := range laws {
		if err := row(t); err != nil {
			return err
		}
	}
	return nil
}

// yield is what a run's draws took, and how many of them are effective.
func yield(r *infer.Result) (gradients, ess float64, divergent int, err error) {
	ess = math.Inf(1)
	for k := range r.Draws.Chains() {
		for name, sum := range map[string]func(float64){
			draws.StatLeapfrog:  func(v float64) { gradients += v },
			draws.StatDivergent: func(v float64) { divergent += int(v) },
		} {
			values, err := r.Draws.Stat(name, k)
			if err != nil {
				return 0, 0, 0, err
			}
			for _, v := range values {
				sum(v)
			}
		}
	}
	for i := range r.Unconstrained.Dim() {
		element := make([][]float64, r.Unconstrained.Chains())
		for k := range element {
			element[k] = r.Unconstrained.Element(k, i)
		}
		ess = math.Min(ess, diag.ESSBulk(element))
	}
	return gradients, ess, divergent, nil
}

// laws are targets with a first coordinate of known variance.
func laws() ([]target, error) {
	var out []target
	for _, l := range []struct {
		name     string
		d        int
		variance float64
		density  func(x torch.Tensor) torch.Tensor
	}{
		{"funnel", 10, 9, func(x torch.Tensor) torch.Tensor {
			v, y := x.Slice(0, 0, 1).Sum(), x.Slice(0, 1, 10)
			return v.Square().Div(-18).Sub(v.Mul(4.5)).Sub(y.Square().Sum().Mul(v.Neg().Exp()).Div(2))
		}},
		{"normal", 100, 1, func(x torch.Tensor) torch.Tensor { return x.Square().Sum().Div(-2) }},
		// The first value, and then differences of a random walk that returns: x_i = 0.9 x_(i−1) + √0.19 z.
		{"normal, correlated 0.9", 100, 1, func(x torch.Tensor) torch.Tensor {
			step := x.Slice(0, 1, 100).Sub(x.Slice(0, 0, 99).Mul(0.9))
			return x.Slice(0, 0, 1).Square().Sum().Add(step.Square().Sum().Div(0.19)).Div(-2)
		}},
	} {
		layout, err := infer.NewLayout(infer.Shapes{"x": {l.d}})
		if err != nil {
			return nil, err
		}
		density := l.density
		program := infer.Handwritten(infer.Sum(func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
			return density(p.Get("x")), nil
		}, 1), infer.Params{Layout: layout}, nil)
		variance := l.variance
		out = append(out, target{l.name, program, hmc.NUTS{}, func(d *draws.Draws) (float64, error) {
			sum, n := 0.0, 0.0
			for c := range d.Chains() {
				for _, v := range d.Element(c, 0) {
					sum, n = sum+v*v, n+1
				}
			}
			return sum / n / variance, nil
		}})
	}
	return out, nil
}
