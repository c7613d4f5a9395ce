// Command sampler is the program of docs/tutorials/6-your-own-sampler.md: a sampler that Kelvin does not have, in 60
// lines, on a model of the language.
//
//	go run ./examples/sampler
package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/examples/internal/command"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// schools are the eight schools of the README.
func schools(c *ppl.Ctx) {
	mu := c.Sample("mu", dist.Normal(0, 5))
	tau := c.Sample("tau", dist.HalfCauchy(5))
	c.Plate("schools", 0, func(c *ppl.Ctx) {
		z := c.Sample("z", dist.Normal(0, 1))
		c.Observe("y", dist.Normal(mu.Add(tau.Mul(z)), c.Data("sigma")), c.Data("y"))
	})
}

func compile() (*ppl.Program, error) {
	y, err := torch.FromSlice([]float64{28, 8, -3, 7, -1, 1, 18, 12})
	if err != nil {
		return nil, err
	}
	sigma, err := torch.FromSlice([]float64{15, 10, 16, 11, 9, 11, 10, 18})
	if err != nil {
		return nil, err
	}
	return ppl.Compile(schools, infer.Batch{"y": y, "sigma": sigma})
}

func run(ctx context.Context) error { return table(ctx, os.Stdout) }

// table is the posterior of mu and tau by Barker and by NUTS.
func table(ctx context.Context, out io.Writer) error {
	program, err := compile()
	if err != nil {
		return err
	}
	for _, w := range []struct {
		name   string
		method infer.Method
	}{{"Barker", Barker{LR: infer.Constant(0.7)}}, {"NUTS", hmc.NUTS{}}} {
		posterior, err := infer.Sample(ctx, program, w.method, infer.Options{Draws: 2000, Seed: 1})
		if err != nil {
			return err
		}
		summary, err := diag.Summary(posterior, diag.SummaryOptions{})
		if err != nil {
			return err
		}
		for _, r := range summary.Rows[:2] {
			fmt.Fprintf(out, "%-7s %-4s mean %.2f ± %.2f  sd %.2f ± %.2f  R-hat %.2f\n", w.name, r.Name, r.Mean, r.MCSEMean,
				r.SD, r.MCSESD, r.RHat)
		}
	}
	return nil
}

func main() { command.Main("sampler", run) }
