package gibbs_test

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/gibbs"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// spikes is a regression on 20 columns, of which each counts or does not.
func spikes(c *ppl.Ctx) {
	var w torch.Tensor
	c.Plate("columns", 20, func(c *ppl.Ctx) {
		g := c.Sample("g", dist.Bernoulli(0.2)) // the column counts
		b := c.Sample("b", dist.Normal(0, 1))   // so much, if it does
		w = g.Mul(b)
	})
	sigma := c.Sample("sigma", dist.HalfNormal(1))
	c.Plate("rows", 0, func(c *ppl.Ctx) {
		c.Observe("y", dist.Normal(c.Data("x").MatMul(w), sigma), c.Data("y"))
	})
}

// spikesData are 100 rows, where columns 2, 7 and 11 count.
func spikesData() infer.Batch {
	r := rand.New(rand.NewPCG(1, 2))
	x, y := make([]float64, 100*20), make([]float64, 100)
	for i := range x {
		x[i] = r.NormFloat64()
	}
	for i := range y {
		y[i] = x[20*i+2] - 0.8*x[20*i+7] + 0.6*x[20*i+11] + 0.7*r.NormFloat64()
	}
	return infer.Batch{"x": torch.New(x, 100, 20), "y": torch.New(y)}
}

// Which columns of a regression count: spike and slab.
func Example() {
	ctx := context.Background()
	program, err := ppl.CompileDiscrete(spikes, spikesData())
	if err != nil {
		fmt.Println(err)
		return
	}
	draws, err := infer.Sample(ctx, program, gibbs.Blocks{
		{Sites: []string{"g"}, Method: gibbs.Discrete{}},
		{Sites: []string{gibbs.Rest}, Method: hmc.NUTS{}},
	}, infer.Options{Warmup: 300, Draws: 500, Seed: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	counts, _ := draws.Mean("g") // the posterior probability that a column counts
	for column, probability := range counts {
		if probability > 0.5 {
			fmt.Printf("column %d counts: %.2f\n", column, probability)
		}
	}
	// Output:
	// column 2 counts: 1.00
	// column 7 counts: 1.00
	// column 11 counts: 1.00
}
