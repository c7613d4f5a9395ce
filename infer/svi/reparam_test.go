package svi_test

import (
	"context"
	"testing"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/svi"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/require"
)

// A guide of a model that Reparam writes is that of the model written so: the draws of both fits are the same.
func TestReparameterisedModel(t *testing.T) {
	observe := func(c *ppl.Ctx, theta torch.Tensor) { c.Observe("y", dist.Normal(theta, 1), c.Data("y")) }
	centred := func(c *ppl.Ctx) {
		mu := c.Sample("mu", dist.Normal(0, 2))
		c.Plate("groups", 0, func(c *ppl.Ctx) { observe(c, c.Sample("theta", dist.Normal(mu, 0.5))) })
	}
	written := func(c *ppl.Ctx) {
		mu := c.Sample("mu", dist.Normal(0, 2))
		c.Plate("groups", 0, func(c *ppl.Ctx) {
			observe(c, c.Sample("theta_decentred", dist.Normal(0, 1)).Mul(0.5).Add(mu))
		})
	}
	batch := infer.Batch{"y": torch.New([]float64{1.5, -0.5, 0.25})}
	rows := func(m ppl.Model) [][]float64 {
		p, err := ppl.Compile(m, batch)
		require.NoError(t, err)
		r, err := infer.Run(context.Background(), p, svi.SVI{}, infer.Options{Chains: 1, Warmup: 50, Draws: 20, Seed: 3,
			Observer: infer.Silent})
		require.NoError(t, err)
		defer infer.Free(r.State)
		require.Equal(t, "mu[] theta_decentred[3]", p.Layout().String())
		return r.Unconstrained.Rows()
	}
	require.Equal(t, rows(written),
		rows(ppl.Reparam(centred, map[string]ppl.Reparameterisation{"theta": ppl.NonCentred})))
}
