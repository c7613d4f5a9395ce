// Broken shows three broken models and what Diagnose says of each.
package main

import (
	"context"
	"fmt"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

func main() {
	x, zeros := torch.New([]float64{-2, -1, 1, 2}), torch.Zeros(4)
	show := func(name string, y []float64, law func(c *ppl.Ctx) dist.Distribution) {
		p := torch.Must(ppl.Compile(func(c *ppl.Ctx) { c.Observe("y", law(c), c.Data("y")) },
			infer.Batch{"x": x, "zeros": zeros, "y": torch.New(y)}))
		d := torch.Must(infer.Sample(context.Background(), p, hmc.NUTS{}, infer.Options{Seed: 1}))
		r := torch.Must(diag.Diagnose(d, diag.DiagnoseOptions{}))
		fmt.Printf("%s\n  %s\n", name, r.Of("endless")[0].Message)
	}
	show("x separates the outcomes", []float64{0, 0, 1, 1}, func(c *ppl.Ctx) dist.Distribution {
		return dist.BernoulliLogits(c.Data("x").Mul(c.Sample("b", dist.Flat())))
	})
	show("a covariate of zeros", []float64{1, 3, 2, 2}, func(c *ppl.Ctx) dist.Distribution {
		a, b := c.Sample("a", dist.Flat()), c.Sample("b", dist.Flat())
		return dist.Normal(c.Data("x").Mul(a).Add(c.Data("zeros").Mul(b)), 1)
	})
	show("a scale of data that do not vary", []float64{0, 0, 0, 0}, func(c *ppl.Ctx) dist.Distribution {
		return dist.Normal(0, c.Sample("s", dist.HalfNormal(1)))
	})
}
