package ppl_test

import (
	"context"
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/diag/check"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/require"
)

// The sensitivities are those of the log prior and the log likelihood by their formulas, at each draw: without the
// Jacobian of log σ, and summed over the data.
func TestPowerScaling(t *testing.T) {
	y := []float64{3.1, 4.7, 2.2, 5.9, 4.4, 3.8}
	data, err := torch.FromSlice(y)
	require.NoError(t, err)
	program, err := ppl.Compile(func(c *ppl.Ctx) {
		mu := c.Sample("mu", dist.Normal(0, 1))
		sigma := c.Sample("sigma", dist.HalfNormal(2))
		c.Plate("data", 0, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(mu, sigma), c.Data("y")) })
		c.Deterministic("ratio", mu.Div(sigma))
	}, infer.Batch{"y": data})
	require.NoError(t, err)
	posterior, err := infer.Sample(context.Background(), program, hmc.NUTS{}, infer.Options{Chains: 2, Warmup: 300,
		Draws: 500, Observer: infer.Silent})
	require.NoError(t, err)

	var prior, likelihood []float64
	mus, err := posterior.Values("mu")
	require.NoError(t, err)
	sigmas, err := posterior.Values("sigma")
	require.NoError(t, err)
	for c := range mus {
		for i := range mus[c] {
			mu, sigma := mus[c][i][0], sigmas[c][i][0]
			prior = append(prior, -mu*mu/2-sigma*sigma/8)
			sum := 0.0
			for _, v := range y {
				sum -= (v-mu)*(v-mu)/(2*sigma*sigma) + math.Log(sigma)
			}
			likelihood = append(likelihood, sum)
		}
	}
	want, err := check.PowerScaling(posterior, prior, likelihood)
	require.NoError(t, err)
	got, err := program.PowerScaling(posterior)
	require.NoError(t, err)
	require.Len(t, got, 3)
	for i, w := range want {
		require.Equal(t, w.Name, got[i].Name)
		require.InEpsilon(t, w.Prior, got[i].Prior, 1e-6, w.Name)
		require.InEpsilon(t, w.Likelihood, got[i].Likelihood, 1e-6, w.Name)
		require.Equal(t, w.Diagnosis, got[i].Diagnosis)
	}
	require.Equal(t, "prior-data conflict", got[0].Diagnosis) // of mu: data at 4, prior N(0, 1)

	few, err := posterior.Select("sigma")
	require.NoError(t, err)
	_, err = program.PowerScaling(few)
	require.ErrorIs(t, err, draws.ErrUnknownName)
	require.ErrorContains(t, err, `ppl.PowerScaling: draw 0 of chain 0: they must have the latent variables`)
	_, err = program.PowerScaling(nil)
	require.ErrorIs(t, err, draws.ErrNoDraws)
}
