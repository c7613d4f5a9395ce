package main

import (
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// visits has what rows of the page's tables speak of: groups by index, and counts from means and their logarithms.
func visits(c *ppl.Ctx) {
	phi := c.Sample("phi", dist.Exponential(1))
	var z torch.Tensor
	c.Plate("groups", 2, func(c *ppl.Ctx) { z = c.Sample("z", dist.Normal(0, 1)) })
	c.Plate("data", 0, func(c *ppl.Ctx) {
		eta := z.Take(c.Data("g"))
		mu := eta.Exp()
		c.Observe("a", dist.PoissonLog(eta), c.Data("a"))
		c.Observe("b", dist.NegativeBinomial(mu, phi), c.Data("b"))
		c.Observe("d", dist.NegativeBinomialLogits(phi, eta.Sub(phi.Log())), c.Data("d"))
	})
}

// drawn is a model without data: what Condition makes of it is one with them.
func drawn(c *ppl.Ctx) {
	mu := c.Sample("mu", dist.Normal(0, 1))
	c.Plate("data", 0, func(c *ppl.Ctx) { c.Sample("y", dist.Normal(mu, c.Data("sd"))) })
}

// conditioned is that model with data.
func conditioned(y torch.Tensor) ppl.Model {
	m := drawn
	return ppl.Condition(m, ppl.Values{"y": y})
}

// elsewhere are predictions of y at new values of x, of shape [draws, data]: the model takes the size of its plate from
// them.
func elsewhere(m ppl.Model, x torch.Tensor, posterior *draws.Draws) (torch.Tensor, error) {
	later := infer.Batch{"x": x}
	predicted, err := ppl.Predictive{Model: m, Batch: later, Seed: 1, Sites: []string{"y"}}.Posterior(posterior)
	return predicted["y"], err
}
