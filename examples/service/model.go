package main

import (
	"context"
	"math/rand/v2"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// regression is y = a + bx + noise.
func regression(c *ppl.Ctx) {
	a, b := c.Sample("a", dist.Normal(0, 10)), c.Sample("b", dist.Normal(0, 10))
	s := c.Sample("s", dist.HalfNormal(5))
	c.Plate("data", 0, func(c *ppl.Ctx) {
		c.Observe("y", dist.Normal(b.Mul(c.Data("x")).Add(a), s), c.Data("y"))
	})
}

// fit samples the posterior of a hundred made-up data with a = 1, b = 2 and s = 0.5.
func fit(ctx context.Context) (*draws.Draws, error) {
	rng := rand.New(rand.NewPCG(1, 2))
	x, y := make([]float64, 100), make([]float64, 100)
	for i := range x {
		x[i] = 4 * rng.Float64()
		y[i] = 1 + 2*x[i] + 0.5*rng.NormFloat64()
	}
	xs, err := torch.FromSlice(x)
	if err != nil {
		return nil, err
	}
	ys, err := torch.FromSlice(y)
	if err != nil {
		return nil, err
	}
	program, err := ppl.Compile(regression, infer.Batch{"x": xs, "y": ys})
	if err != nil {
		return nil, err
	}
	return infer.Sample(ctx, program, hmc.NUTS{}, infer.Options{Draws: 250, Seed: 1, Observer: infer.Silent})
}
