package mcmc_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/mcmc"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// counts are Poisson counts whose log rate is a latent Gaussian process with mean 1 and a squared-exponential kernel.
func counts(t *testing.T) *ppl.Program {
	y := []float64{1, 0, 3, 4, 9, 6, 11, 7, 3, 2, 2, 1}
	n := len(y)
	k := make([]float64, n*n)
	for i := range n {
		for j := range n {
			e := float64(i-j) / 2
			if k[i*n+j] = math.Exp(-e * e / 2); i == j {
				k[i*n+j] += 1e-4
			}
		}
	}
	program, err := ppl.Compile(func(c *ppl.Ctx) {
		f := c.Sample("f", dist.MultivariateNormal(1, c.Data("k")))
		c.Observe("y", dist.PoissonLog(f), c.Data("y"))
	}, infer.Batch{"y": torch.Of(infertest.Vector(y)), "k": torch.Of(infertest.Vector(k, n, n))})
	require.NoError(t, err)
	return program
}

// summaries are the rows of a run, with the attribute of who evaluated.
func summaries(t *testing.T, p infer.Program, m infer.Method, o infer.Options) ([]diag.Row, *draws.Draws) {
	o.Observer = infer.Silent
	d, err := infer.Sample(context.Background(), p, m, o)
	require.NoError(t, err)
	table, err := diag.Summary(d, diag.SummaryOptions{})
	require.NoError(t, err)
	return table.Rows, d
}

// A latent Gaussian process with counts has the posterior that NUTS finds, at two temperatures and in each tier. Values
// are code without a gradient.
func TestEllipticalBesideNUTS(t *testing.T) {
	p := counts(t)
	for _, temperature := range []infer.Schedule{nil, infer.Constant(2)} {
		want, _ := summaries(t, p, hmc.NUTS{Temperature: temperature}, infer.Options{Draws: 4000})
		for _, tier := range []native.Tier{native.VM, native.Eager} {
			o := infer.Options{Draws: 4000, Thin: 3, Native: tier}
			if tier == native.Eager {
				o.Draws, o.Thin = 800, 1
			}
			have, d := summaries(t, p, mcmc.Elliptical{Temperature: temperature}, o)
			assert.True(t, strings.HasPrefix(d.Attrs()["gradient"], string(tier)), d.Attrs()["gradient"])
			for i, row := range have {
				se := math.Hypot(row.MCSEMean, want[i].MCSEMean)
				assert.Less(t, math.Abs(row.Mean-want[i].Mean)/se, 4.5, "%s %s: %v, NUTS %v", tier, row.Name, row.Mean,
					want[i].Mean)
				se = math.Hypot(row.MCSESD, want[i].MCSESD)
				assert.Less(t, math.Abs(row.SD-want[i].SD)/se, 4.5, "sd of %s: %v, NUTS %v", row.Name, row.SD, want[i].SD)
				assert.Greater(t, row.ESSBulk, 60., row.Name)
			}
		}
	}
}

// The statistic lp is the log density that NUTS has at the same point.
func TestLogDensity(t *testing.T) {
	p := counts(t)
	for _, temperature := range []float64{1, 3} {
		heat := infer.Constant(temperature)
		for what, m := range map[string]infer.Method{"Elliptical": mcmc.Elliptical{Temperature: heat},
			"Slice": mcmc.Slice{Temperature: heat}, "Barker": mcmc.Barker{Temperature: heat}} {
			r, err := infer.Run(context.Background(), p, m, infer.Options{Chains: 2, Draws: 3, Warmup: 5,
				Observer: infer.Silent})
			require.NoError(t, err)
			lp, err := r.Unconstrained.Stat(draws.StatLP, 1)
			require.NoError(t, err)
			var at []float64
			for i := range lp {
				point, err := infer.NewParams(p.Layout(), r.Unconstrained.Row(1, i))
				require.NoError(t, err)
				e, err := infer.NewEvaluator(p.Target(), false)
				require.NoError(t, err)
				e, err = e.On(point, p.Batch())
				require.NoError(t, err)
				v := make([]float64, 1)
				require.NoError(t, e.Eval(r.Unconstrained.Row(1, i), temperature, v, nil))
				at = append(at, v[0]-lp[i])
			}
			for _, v := range at { // at temperatures other than 1 Elliptical has the normalized prior, a constant
				assert.InDelta(t, at[0], v, 1e-4, what)
			}
			if temperature == 1 || what != "Elliptical" {
				assert.InDelta(t, 0, at[0], 1e-4, what)
			}
		}
	}
}

// eight is the model of the eight schools, whose scale is positive and whose prior is not normal.
func eight(t *testing.T) *ppl.Program {
	program, err := ppl.Compile(func(c *ppl.Ctx) {
		tau := c.Sample("tau", dist.HalfNormal(5))
		mu := c.Sample("mu", dist.Normal(0, 5))
		z := c.Sample("z", dist.Normal(torch.Zeros(8), 1))
		c.Observe("y", dist.Normal(z.Mul(tau).Add(mu), c.Data("sigma")), c.Data("y"))
	}, infer.Batch{"y": torch.Of(infertest.Vector([]float64{28, 8, -3, 7, -1, 1, 18, 12})),
		"sigma": torch.Of(infertest.Vector([]float64{15, 10, 16, 11, 9, 11, 10, 18}))})
	require.NoError(t, err)
	return program
}

// A model with a constrained variable has the posterior that NUTS finds.
func TestModelBesideNUTS(t *testing.T) {
	p := eight(t)
	want, _ := summaries(t, p, hmc.NUTS{}, infer.Options{Draws: 4000})
	for what, m := range map[string]infer.Method{"Slice": mcmc.Slice{}, "RandomWalk": mcmc.RandomWalk{},
		"Barker": mcmc.Barker{}, "Stretch": mcmc.Stretch{}, "DifferentialEvolution": mcmc.DifferentialEvolution{}} {
		o := infer.Options{Draws: 2000, Native: native.VM, Chains: 4, Thin: 10}
		if what == "Stretch" || what == "DifferentialEvolution" {
			o.Chains, o.Draws = 24, 500
		}
		have, d := summaries(t, p, m, o)
		assert.Contains(t, d.Attrs()["gradient"], "vm", what)
		for i, row := range have {
			z := (row.Mean - want[i].Mean) / math.Hypot(row.MCSEMean, want[i].MCSEMean)
			assert.Less(t, math.Abs(z), 4.5, "%s %s: %v, NUTS %v", what, row.Name, row.Mean, want[i].Mean)
		}
	}
	_, err := infer.Sample(context.Background(), p, mcmc.Elliptical{}, infer.Options{Observer: infer.Silent})
	require.ErrorContains(t, err, "the prior is no normal distribution: its log density is not quadratic in tau")
}
