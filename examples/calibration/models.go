package main

import (
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/laplace"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// problem is a model that simulates, one that is fitted, and what is ranked.
type problem struct {
	name            string
	simulates, fits ppl.Model
	covariates      func() (infer.Batch, error)
	ranked          []string // of a variable with several elements the first
	wrong           bool     // fits is not the model that simulates
}

// normal is ten observations of a normal law.
func normal(c *ppl.Ctx) {
	mu := c.Sample("mu", dist.Normal(0, 1))
	sigma := c.Sample("sigma", dist.Exponential(1))
	c.Plate("data", 10, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(mu, sigma), c.Data("y")) })
}

// mistaken is normal with a variance in the place of a standard deviation, which no compiler sees.
func mistaken(c *ppl.Ctx) {
	mu := c.Sample("mu", dist.Normal(0, 1))
	sigma := c.Sample("sigma", dist.Exponential(1))
	c.Plate("data", 10, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(mu, sigma.Square()), c.Data("y")) })
}

// poisson is a regression of twelve counts.
func poisson(c *ppl.Ctx) {
	a := c.Sample("a", dist.Normal(1, 0.5))
	b := c.Sample("b", dist.Normal(0, 0.5))
	c.Plate("data", 12, func(c *ppl.Ctx) {
		c.Observe("y", dist.PoissonLog(c.Data("x").Mul(b).Add(a)), c.Data("y"))
	})
}

// groups are five observations, each of a mean of its own.
var groups = ppl.Reparam(func(c *ppl.Ctx) {
	mu := c.Sample("mu", dist.Normal(0, 2))
	tau := c.Sample("tau", dist.HalfNormal(1))
	c.Plate("groups", 5, func(c *ppl.Ctx) {
		theta := c.Sample("theta", dist.Normal(mu, tau))
		c.Observe("y", dist.Normal(theta, 0.7), c.Data("y"))
	})
}, map[string]ppl.Reparameterisation{"theta": ppl.NonCentred})

func none() (infer.Batch, error) { return infer.Batch{}, nil }

func doses() (infer.Batch, error) {
	x, err := torch.FromSlice([]float64{-1.5, -1, -0.7, -0.3, -0.1, 0, 0.2, 0.4, 0.8, 1.1, 1.3, 1.9})
	return infer.Batch{"x": x}, err
}

var problems = []problem{
	{name: "normal", simulates: normal, fits: normal, covariates: none, ranked: []string{"mu", "sigma"}},
	{name: "Poisson", simulates: poisson, fits: poisson, covariates: doses, ranked: []string{"a", "b"}},
	{name: "groups", simulates: groups, fits: groups, covariates: none, ranked: []string{"mu", "tau", "theta"}},
	{name: "mistaken", simulates: normal, fits: mistaken, covariates: none, ranked: []string{"mu", "sigma"}, wrong: true},
}

// way is a method that is looked at. A biased one is an approximation.
type way struct {
	name   string
	method infer.Method
	biased bool
}

var ways = []way{
	{"NUTS", hmc.NUTS{}, false},
	{"HMC", hmc.HMC{Jitter: 0.5}, false},
	{"MAMS", hmc.MAMS{}, false},
	{"Laplace", laplace.DenseHessian{}, true},
}
