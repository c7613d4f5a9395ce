package main

import (
	"fmt"
	"math/rand/v2"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// The made-up counts: of each group, and groups.
const (
	countsEach   = 16
	countsGroups = 5
)

// counts is a hierarchical regression of few groups in its non-centred form, whose posterior is stiff where tau is
// large:
//
//	a ~ N(0, 2), b ~ N(0, 1), tau ~ HalfNormal(1), z_g ~ N(0, 1)
//	y_i ~ Poisson(exp(a + b x_i + tau z_g[i]))
//
// or, overdispersed, with phi ~ Gamma(2, 0.5), the negative binomial law of the same mean μ and variance μ + μ²/phi.
func counts(overdispersed bool) ppl.Model {
	return func(c *ppl.Ctx) {
		a := c.Sample("a", dist.Normal(0, 2))
		b := c.Sample("b", dist.Normal(0, 1))
		tau := c.Sample("tau", dist.HalfNormal(1))
		var phi, z torch.Tensor
		if overdispersed {
			phi = c.Sample("phi", dist.Gamma(2, 0.5))
		}
		c.Plate("groups", countsGroups, func(c *ppl.Ctx) { z = c.Sample("z", dist.Normal(0, 1)) })
		c.Plate("data", 0, func(c *ppl.Ctx) {
			eta := a.Add(b.Mul(c.Data("x"))).Add(tau.Mul(z.Take(c.Data("g"))))
			if overdispersed {
				c.Observe("y", dist.NegativeBinomial(eta.Exp(), phi), c.Data("y"))
			} else {
				c.Observe("y", dist.PoissonLog(eta), c.Data("y"))
			}
		})
	}
}

// compileCounts compiles the model on data of the overdispersed one at a = 1, b = 0.5, tau = 0.5 and phi = 1.5.
func compileCounts(overdispersed bool) (*ppl.Program, error) {
	rng := rand.New(rand.NewPCG(1, 2))
	x, g := make([]float64, countsEach*countsGroups), make([]int64, countsEach*countsGroups)
	for i := range x {
		x[i], g[i] = rng.NormFloat64(), int64(i%countsGroups)
	}
	xs, err := torch.FromSlice(x)
	if err != nil {
		return nil, err
	}
	gs, err := torch.FromSlice(g)
	if err != nil {
		return nil, err
	}
	data := infer.Batch{"x": xs, "g": gs}
	truth := ppl.Values{"a": torch.Of(1.0).T(), "b": torch.Of(0.5).T(), "tau": torch.Of(0.5).T(), "phi": torch.Of(1.5).T()}
	made, err := ppl.Predictive{Model: ppl.Condition(counts(true), truth), Batch: data, Seed: 3}.Prior(1)
	if err != nil {
		return nil, fmt.Errorf("counts: %w", err)
	}
	values, err := torch.ToSlice[float64](made["y"])
	if err != nil {
		return nil, err
	}
	if data["y"], err = torch.FromSlice(values); err != nil {
		return nil, err
	}
	return ppl.Compile(counts(overdispersed), data)
}
