package guide_test

import (
	"context"
	"fmt"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/svi"
	"github.com/kelvin-ppl/kelvin/infer/svi/guide"
	"github.com/kelvin-ppl/kelvin/ppl"
)

// A guide that is made from the model: a normal distribution with any covariance, on unconstrained space.
func Example() {
	model := func(c *ppl.Ctx) {
		x := c.Sample("x", dist.Normal(0, 1))
		c.Sample("y", dist.Normal(x.Mul(0.8), 0.6))
	}
	program, err := ppl.Compile(model, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	q, err := guide.Dense{}.Build(model, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	draws, err := infer.Sample(context.Background(), program, svi.SVI{Guide: q}, infer.Options{Draws: 5000, Seed: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	sd, err := draws.SD("y")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("sd of y: %.1f\n", sd[0]) // √(0.8² + 0.6²)
	// Output:
	// sd of y: 1.0
}
