package svi_test

import (
	"context"
	"testing"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/svi"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/require"
)

// Minibatches of a model of svi.Compile whose rows depend on each other are refused as those of ppl.Compile are, with
// the site and the tensor: observed variables, and variables of single data, whose draws are those of a guide.
func TestDependentRows(t *testing.T) {
	x := []float64{0.3, 1, -2, 4, 0.5, 2, -1, 0.1, 3, -0.7, 1.3, 0.9}
	y := []float64{1, 0, 2, -1, 0, 3, 1, 0.5, -2, 4, 0.2, 0.6}
	data := infer.Batch{"x": torch.Of(infertest.Vector(x)), "y": torch.Of(infertest.Vector(y))}
	part := infer.Batch{"x": torch.Of(infertest.Vector(x[:4])), "y": torch.Of(infertest.Vector(y[:4]))}
	normal := func(c *ppl.Ctx, name string) torch.Tensor {
		return c.Sample(name, dist.Normal(c.Param(name+"_loc", 0.5, support.Real), 0.7))
	}
	// A weight w of all data, and a switch z and a shift u of each.
	model := func(mean func(x, u torch.Tensor) torch.Tensor, prior func(x torch.Tensor) torch.Tensor) ppl.Model {
		return func(c *ppl.Ctx) {
			w := c.Sample("w", dist.Normal(0, 2))
			c.Plate("rows", 12, func(c *ppl.Ctx) {
				x := c.Data("x")
				u := c.Sample("u", dist.Normal(prior(x), 1))
				z := c.Sample("z", dist.Bernoulli(0.3))
				c.Observe("y", dist.Normal(mean(x, u).Mul(w).Add(z), 1), c.Data("y"))
			}, ppl.Minibatch)
		}
	}
	local := func(c *ppl.Ctx) {
		normal(c, "w")
		slope := c.Param("slope", 0.1, support.Real)
		p := c.Param("p", 0.4, support.UnitInterval)
		c.Plate("rows", 12, func(c *ppl.Ctx) {
			c.Sample("u", dist.Normal(c.Data("x").Mul(slope), 1))
			c.Sample("z", dist.Bernoulli(p.Expand(c.Data("x").Shape()...)))
		}, ppl.Minibatch)
	}
	zero := func(x torch.Tensor) torch.Tensor { return x.Mul(0) }
	global := func(mean func(x torch.Tensor) torch.Tensor) ppl.Model {
		return func(c *ppl.Ctx) {
			w := c.Sample("w", dist.Normal(0, 2))
			z := c.Sample("z", dist.Poisson(3))
			c.Plate("rows", 0, func(c *ppl.Ctx) {
				c.Observe("y", dist.Normal(mean(c.Data("x")).Mul(w).Add(z), 1), c.Data("y"))
			})
		}
	}
	whole := func(c *ppl.Ctx) {
		normal(c, "w")
		c.Sample("z", dist.Poisson(c.Param("rate", 2, support.Positive)))
	}
	for name, c := range map[string]struct {
		model, guide ppl.Model
		on           infer.Batch
		says         string
	}{
		"mean": {global(func(x torch.Tensor) torch.Tensor { return x.Sub(x.Mean()) }), whole, data,
			`site "y" of one row depends on the other rows of its batch, by "x"`},
		"order": {global(func(x torch.Tensor) torch.Tensor { return x.CumSum(0) }), whole, data,
			`site "y" of one row depends on the order of the rows in its batch, by "x"`},
		"number": {global(func(x torch.Tensor) torch.Tensor { return x.Div(x.Shape()[0]) }), whole, data,
			`site "y" of one row depends on the number of rows in its batch`},
		"none": {global(func(x torch.Tensor) torch.Tensor { return x.Square() }), whole, data, ""},
		"mean, of single data": {model(func(x, u torch.Tensor) torch.Tensor { return x.Sub(x.Mean()).Add(u) }, zero),
			local, part, `site "y" of one row depends on the other rows of its batch`},
		"mean of variables": {model(func(_, u torch.Tensor) torch.Tensor { return u.Sub(u.Mean()) }, zero), local, part,
			`site "y" of one row depends on the other rows of its batch`},
		"a prior": {model(func(_, u torch.Tensor) torch.Tensor { return u },
			func(x torch.Tensor) torch.Tensor { return x.Sub(x.Mean()) }), local, part,
			`site "u" of one row depends on the other rows of its batch`},
		"none, of single data": {model(func(x, u torch.Tensor) torch.Tensor { return x.Add(u) }, zero), local, part, ""},
	} {
		t.Run(name, func(t *testing.T) {
			program, err := svi.Compile(c.model, c.guide, c.on)
			require.NoError(t, err)
			for _, size := range []int{3, 4, 5} {
				for _, told := range []bool{false, true} {
					batches, err := infer.Minibatches(data, infer.MinibatchOptions{Size: size, Seed: 3})
					require.NoError(t, err)
					_, err = infer.Sample(context.Background(), program, svi.SVI{}, infer.Options{Chains: 1, Warmup: 3, Draws: 3,
						Batches: batches, DependentRows: told, Observer: infer.Silent})
					if told || c.says == "" {
						require.NoError(t, err)
						continue
					}
					require.ErrorIs(t, err, infer.ErrConfig)
					require.ErrorContains(t, err, c.says)
				}
			}
		})
	}
}
