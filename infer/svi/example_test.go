package svi_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/svi"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// A coin with 7 heads in 10, and a guide of its bias: a beta distribution whose parameters are learned.
func Example() {
	model := func(c *ppl.Ctx) {
		p := c.Sample("p", dist.Beta(2, 2))
		c.Observe("heads", dist.Binomial(10, p), c.Data("heads"))
	}
	guide := func(c *ppl.Ctx) {
		a := c.Param("a", 1, support.Positive)
		b := c.Param("b", 1, support.Positive)
		c.Sample("p", dist.Beta(a, b))
	}
	heads := torch.Scalar(7)
	program, err := ppl.Compile(model, infer.Batch{"heads": heads})
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := infer.Run(context.Background(), program, svi.SVI{Guide: guide, ELBO: svi.MeanField{}},
		infer.Options{Chains: 1, Draws: 4000, Seed: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	params, err := result.State.(svi.State).Params(0)
	if err != nil {
		fmt.Println(err)
		return
	}
	mean, err := result.Draws.Mean("p")
	if err != nil {
		fmt.Println(err)
		return
	}
	// The posterior is Beta(2 + 7, 2 + 3).
	fmt.Printf("Beta(%.0f, %.0f), mean of the draws %.2f\n", params["a"].Item(), params["b"].Item(),
		mean[0])
	// Output:
	// Beta(9, 5), mean of the draws 0.64
}

// A guide that does not fit the model is refused, with both names.
func ExampleCompile_mistake() {
	model := func(c *ppl.Ctx) { c.Observe("y", dist.Normal(c.Sample("mu", dist.Normal(0, 1)), 1), 0.5) }
	guide := func(c *ppl.Ctx) { c.Sample("mean", dist.Normal(c.Param("loc", 0, support.Real), 1)) }
	_, err := svi.Compile(model, guide, nil)
	fmt.Println(strings.Join(strings.SplitAfterN(err.Error(), ": ", 3)[:2], ""))
	// Output:
	// svi.Compile: the guide lacks ["mu"] of the model, and the guide has ["mean"], which the model does not have:
}
