package ppl_test

import (
	"context"
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/require"
)

// A covariate with missing rows and an outcome with others: with known parameters the missing values are normal, with
// closed forms. x ~ N(0.3, 1) and y ~ N(2 x, 0.5²), so that x given y has the precision 1 + 4/0.25 = 17.
func TestImpute(t *testing.T) {
	nan := math.NaN()
	batch := infer.Batch{"x": vec(0.5, nan, -1, nan), "y": vec(1, 3, nan, -2)}
	rows := map[string][]int{}
	for name := range batch {
		var err error
		rows[name], err = ppl.Missing(batch[name])
		require.NoError(t, err)
	}
	require.Equal(t, map[string][]int{"x": {1, 3}, "y": {2}}, rows)
	model := func(c *ppl.Ctx) {
		c.Plate("rows", 0, func(c *ppl.Ctx) {
			x := c.Impute("x", dist.Normal(0.3, 1), c.Data("x"), rows["x"])
			c.Impute("y", dist.Normal(x.Mul(2), 0.5), c.Data("y"), rows["y"])
		})
	}
	p, err := ppl.Compile(model, batch)
	require.NoError(t, err)
	require.Equal(t, "x_missing[2] y_missing[1]", p.Layout().String())
	mean := map[string][]float64{"x_missing": {(0.3 + 2*3/0.25) / 17, (0.3 - 2*2/0.25) / 17}, "y_missing": {-2}}
	sd := map[string]float64{"x_missing": math.Sqrt(1.0 / 17), "y_missing": 0.5}
	for _, tier := range []native.Tier{native.Auto, native.Eager} {
		for seed := range uint64(5) {
			d, err := infer.Sample(context.Background(), p, hmc.NUTS{}, infer.Options{Seed: seed, Native: tier, Draws: 500,
				Warmup: 500, Observer: infer.Silent})
			require.NoError(t, err)
			for name, want := range mean {
				got, err := d.Mean(name)
				require.NoError(t, err)
				spread, err := d.SD(name)
				require.NoError(t, err)
				for i := range want { // at least 500 of 2000 draws are effective
					require.InDelta(t, want[i], got[i], 4*sd[name]/math.Sqrt(500), "%s, seed %d", name, seed)
					require.InDelta(t, sd[name], spread[i], 4*sd[name]/math.Sqrt(1000), "%s, seed %d", name, seed)
				}
			}
			if seed == 0 { // missing rows are no observations
				loglik, err := p.LogLikelihood(d)
				require.NoError(t, err)
				site, err := loglik.Site("y")
				require.NoError(t, err)
				require.Zero(t, loglik.Row(0, 0)[site.Offset+2])
				require.NotZero(t, loglik.Row(0, 0)[site.Offset+1])
			}
		}
	}
}

// What cannot be imputed is an error that names the site.
func TestImputeRefuses(t *testing.T) {
	batch := infer.Batch{"x": vec(0.5, math.NaN(), -1)}
	for says, model := range map[string]ppl.Model{
		"it is discrete and cannot be imputed": func(c *ppl.Ctx) {
			c.Impute("x", dist.Poisson(3).Expand(3), c.Data("x"), []int{1})
		},
		"row 3 is missing, of 3 rows": func(c *ppl.Ctx) {
			c.Impute("x", dist.Normal(0, 1).Expand(3), c.Data("x"), []int{3})
		},
		"cannot be imputed: Impute takes numbers of shape [N]": func(c *ppl.Ctx) {
			c.Impute("x", dist.Normal(0, 1), torch.Zeros(2, 2), []int{1})
		},
	} {
		_, err := ppl.Compile(model, batch)
		require.ErrorContains(t, err, says)
	}
	part := func(c *ppl.Ctx) {
		mu := c.Sample("mu", dist.Normal(0, 1))
		c.Plate("rows", 6, func(c *ppl.Ctx) {
			c.Impute("x", dist.Normal(mu, 1), c.Data("x"), []int{1})
		}, ppl.Minibatch)
	}
	_, err := ppl.Compile(part, batch)
	require.ErrorContains(t, err, `plate "rows" has 3 of 6 data: Impute needs all of them`)
	_, err = ppl.Missing(torch.Zeros(2, 2))
	require.ErrorContains(t, err, "shape [2 2]")
}
