// Command swap is the program of docs/tutorials/3-methods-and-temperature.md: one model under many methods and
// temperatures, one argument each time.
//
//	go run ./examples/swap [-pictures DIR]
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/examples/internal/command"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/evidence"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/laplace"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/infer/pathfinder"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/infer/vi"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

var pictures = flag.String("pictures", "", "a folder for the picture; none is drawn without it")

// The experiment of Racine et al. (1986): how many of five animals died at each of four doses, the logarithm of g/ml.
var (
	doses  = []float64{-0.86, -0.30, -0.05, 0.73}
	deaths = []float64{0, 1, 3, 5}
)

// bioassay is a logistic regression of deaths on doses.
func bioassay(c *ppl.Ctx) {
	level := c.Sample("level", dist.Normal(0, 2))
	slope := c.Sample("slope", dist.Normal(10, 10))
	c.Plate("doses", 0, func(c *ppl.Ctx) {
		c.Observe("deaths", dist.BinomialLogits(5, level.Add(slope.Mul(c.Data("dose")))), c.Data("deaths"))
	})
}

func compile() (*ppl.Program, error) {
	dose, err := torch.FromSlice(doses)
	if err != nil {
		return nil, err
	}
	died, err := torch.FromSlice(deaths)
	if err != nil {
		return nil, err
	}
	return ppl.Compile(bioassay, infer.Batch{"dose": dose, "deaths": died})
}

// way is a method with its name in the tables.
type way struct {
	name   string
	method infer.Method
}

// ways are the methods of the first table.
var ways = []way{
	{"NUTS", hmc.NUTS{}},
	{"HMC", hmc.HMC{}},
	{"MAMS", hmc.MAMS{}},
	{"SMC", evidence.SMC{}},
	{"BAOA", sgmcmc.BAOA{LR: infer.Constant(1), Alpha: infer.Constant(0.3)}},
	{"Pathfinder", pathfinder.Pathfinder{}},
	{"VI, dense", vi.Dense{}},
	{"VI, diagonal", vi.Diag{}},
	{"Laplace", laplace.DenseHessian{}},
	{"LBFGS", optim.LBFGS{}},
}

// at are three methods at a temperature.
func at(t float64) []way {
	constant := infer.Constant(t)
	return []way{
		{"NUTS", hmc.NUTS{Temperature: constant}},
		{"BAOA", sgmcmc.BAOA{LR: infer.Constant(1), Alpha: infer.Constant(0.3), Temperature: constant}},
		{"Laplace", laplace.DenseHessian{Temperature: constant}},
	}
}

func run(ctx context.Context) error {
	posteriors, err := tables(ctx, os.Stdout)
	if err != nil || *pictures == "" {
		return err
	}
	return picture(*pictures, posteriors)
}

// tables prints both tables, and returns the draws of the first.
func tables(ctx context.Context, out io.Writer) (map[string]*draws.Draws, error) {
	program, err := compile()
	if err != nil {
		return nil, err
	}
	posteriors := map[string]*draws.Draws{}
	heading(out, "method")
	row(out, "exact", exact(1))
	for _, w := range ways {
		posterior, err := infer.Sample(ctx, program, w.method, infer.Options{Seed: 1})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", w.name, err)
		}
		if err := tell(out, w.name, posterior); err != nil {
			return nil, err
		}
		posteriors[w.name] = posterior
	}

	fmt.Fprintln(out)
	for _, w := range ways {
		if err := warn(out, w.name, posteriors[w.name]); err != nil {
			return nil, err
		}
	}
	fmt.Fprintln(out)
	heading(out, "temperature")
	for _, t := range []float64{0.25, 1, 4} {
		row(out, fmt.Sprintf("%v exact", t), exact(t))
		for _, w := range at(t) {
			posterior, err := infer.Sample(ctx, program, w.method, infer.Options{Seed: 1})
			if err != nil {
				return nil, fmt.Errorf("%s at %v: %w", w.name, t, err)
			}
			if err := tell(out, fmt.Sprintf("%v %s", t, w.name), posterior); err != nil {
				return nil, err
			}
		}
	}
	cold := sgmcmc.BAOA{LR: infer.Constant(1), Alpha: infer.Constant(0.3), Temperature: infer.Constant(0)}
	posterior, err := infer.Sample(ctx, program, cold, infer.Options{Seed: 1})
	if err != nil {
		return nil, err
	}
	return posteriors, tell(out, "0 BAOA", posterior)
}

// warn prints what a fit has noticed of itself.
func warn(out io.Writer, name string, posterior *draws.Draws) error {
	report, err := diag.Diagnose(posterior, diag.DiagnoseOptions{})
	if err != nil {
		return err
	}
	for _, f := range report.Of("far_from_posterior") {
		fmt.Fprintf(out, "%s: %v: %s\n  %s\n", name, f.Severity, f.Code, f.Advice) // f.Message has the figures
	}
	return nil
}

// law is what a row of a table has: mean and standard deviation of level and slope, with Monte-Carlo errors of the
// means and the deviations, 0 for none.
type law struct{ mean, sd, meanError, sdError [2]float64 }

// of is the law of draws.
func of(posterior *draws.Draws) (law, error) {
	table, err := diag.Summary(posterior, diag.SummaryOptions{})
	if err != nil {
		return law{}, err
	}
	var l law
	for j, r := range table.Rows { // level, then slope: sites are in the order of their names
		l.mean[j], l.sd[j], l.meanError[j], l.sdError[j] = r.Mean, r.SD, r.MCSEMean, r.MCSESD
	}
	return l, nil
}

func tell(out io.Writer, name string, posterior *draws.Draws) error {
	l, err := of(posterior)
	if err != nil {
		return err
	}
	if l.sd[0] < 1e-6 || posterior.Total() < 100 { // a point
		fmt.Fprintf(out, "%-13s %5.2f                        %5.2f\n", name, l.mean[0], l.mean[1])
		return nil
	}
	row(out, name, l)
	return nil
}

func heading(out io.Writer, first string) {
	fmt.Fprintf(out, "%-13s level          sd            slope          sd\n", first)
}

func row(out io.Writer, name string, l law) {
	fmt.Fprintf(out, "%-13s", name)
	for j := range 2 {
		for _, v := range [][2]float64{{l.mean[j], l.meanError[j]}, {l.sd[j], l.sdError[j]}} {
			if v[1] == 0 {
				fmt.Fprintf(out, " %5.2f        ", v[0])
			} else {
				fmt.Fprintf(out, " %5.2f ± %.2f ", v[0], v[1])
			}
		}
	}
	fmt.Fprintln(out)
}

func main() { command.Main("swap", run) }
