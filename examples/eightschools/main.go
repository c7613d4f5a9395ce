// Command eightschools is the first program to read: a model, its data, its posterior by NUTS, and whether to trust it.
//
//	go run ./examples/eightschools
package main

import (
	"context"
	"fmt"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/examples/internal/command"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

func schools(c *ppl.Ctx) {
	mu := c.Sample("mu", dist.Normal(0, 5))
	tau := c.Sample("tau", dist.HalfCauchy(5))
	c.Plate("schools", 0, func(c *ppl.Ctx) {
		z := c.Sample("z", dist.Normal(0, 1))
		theta := c.Deterministic("theta", mu.Add(tau.Mul(z)))
		c.Observe("y", dist.Normal(theta, c.Data("sigma")), c.Data("y"))
	})
}

func run(ctx context.Context) error {
	y := torch.New([]float64{28, 8, -3, 7, -1, 1, 18, 12})
	sigma := torch.New([]float64{15, 10, 16, 11, 9, 11, 10, 18})
	program, err := ppl.Compile(schools, infer.Batch{"y": y, "sigma": sigma})
	if err != nil {
		return err
	}
	draws, err := infer.Sample(ctx, program, hmc.NUTS{TargetAccept: 0.95}, infer.Options{})
	if err != nil {
		return err
	}
	report, err := diag.Diagnose(draws, diag.DiagnoseOptions{})
	if err != nil {
		return err
	}
	summary, err := diag.Summary(draws, diag.SummaryOptions{})
	if err == nil {
		fmt.Printf("%v%v", summary, report)
	}
	return err
}

func main() { command.Main("eightschools", run) }
