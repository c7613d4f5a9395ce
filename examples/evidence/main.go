// Command evidence compares three models of one data set, by evidence and by leave-one-out cross-validation.
//
//	go run ./examples/evidence
package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/evidence"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// regression is a logistic regression on the first columns of x. Its weights have the prior N(0, scale²), or a scale
// that is learnt where scale is 0.
func regression(columns int, scale float64) ppl.Model {
	return func(c *ppl.Ctx) {
		var s any = scale
		if scale == 0 {
			s = c.Sample("scale", dist.HalfNormal(1))
		}
		w := c.Sample("w", dist.Normal(0, s).Expand(columns))
		x := c.Data("x").Slice(-1, 0, columns)
		c.Plate("data", 0, func(c *ppl.Ctx) { c.Observe("y", dist.BernoulliLogits(x.MatMul(w)), c.Data("y")) })
	}
}

// data are 80 labels, whose log-odds are 1.5 times the first of six columns.
func data() (infer.Batch, error) {
	const n, d = 80, 6
	x, y := make([]float64, n*d), make([]float64, n)
	for i := range n {
		for j := range d {
			x[i*d+j] = 1.4 * math.Sin(float64((i+1)*(3*j+2))+0.5*float64(j*j))
		}
		u := math.Mod(float64(i+1)*math.Phi, 1)
		if u < 1/(1+math.Exp(-1.5*x[i*d])) {
			y[i] = 1
		}
	}
	xs, err := torch.FromSlice(x, n, d)
	if err != nil {
		return nil, err
	}
	ys, err := torch.FromSlice(y)
	return infer.Batch{"x": xs, "y": ys}, err
}

func compare(ctx context.Context, w io.Writer) error {
	batch, err := data()
	if err != nil {
		return err
	}
	names := []string{"one column", "six columns", "six columns, learnt scale"}
	var all []*evidence.Result
	for i, model := range []ppl.Model{regression(1, 1), regression(6, 1), regression(6, 0)} {
		program, err := ppl.Compile(model, batch)
		if err != nil {
			return err
		}
		z, err := evidence.Run(ctx, program, evidence.SMC{}, infer.Options{Observer: infer.Silent})
		if err != nil {
			return err
		}
		posterior, err := infer.Sample(ctx, program, hmc.NUTS{}, infer.Options{Observer: infer.Silent})
		if err != nil {
			return err
		}
		loo, err := program.LOO(posterior)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%-26s log Z %7.2f ± %.2f   elpd by LOO %7.2f ± %.2f\n", names[i], z.LogZ, z.SE, loo.ELPD, loo.SE)
		all = append(all, z)
	}
	p, se, err := evidence.Probabilities(all, nil)
	if err != nil {
		return err
	}
	for i, name := range names {
		fmt.Fprintf(w, "%-26s probability %.2f ± %.2f\n", name, p[i], se[i])
	}
	return nil
}

func main() {
	if err := compare(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "evidence:", err)
		os.Exit(1)
	}
}
