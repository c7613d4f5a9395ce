package ppl_test

import (
	"context"
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/require"
)

// grouped is a hierarchy of eight groups with known standard errors.
func grouped(c *ppl.Ctx) {
	mu := c.Sample("mu", dist.Normal(0, 5))
	tau := c.Sample("tau", dist.HalfNormal(10))
	c.Plate("groups", 0, func(c *ppl.Ctx) {
		theta := c.Sample("theta", dist.Normal(mu, tau))
		c.Observe("y", dist.Normal(theta, c.Data("se")), c.Data("y"))
	})
}

var groupedY = []float64{28, 8, -3, 7, -1, 1, 18, 12}

// The density of the partly centred form is that of the model in other coordinates: with x = loc + s^(1-λ)(z - λ loc)
// its logarithm differs by that of the Jacobian, Σ (1 - λ) log s.
func TestPartlyCentred(t *testing.T) {
	batch := infer.Batch{"y": vec(groupedY...), "se": vec(15, 10, 16, 11, 9, 11, 10, 18)}
	plain, err := ppl.Compile(grouped, batch)
	require.NoError(t, err)
	share := []float64{0, 0.2, 0.5, 1, 0.7, 0, 1, 0.3}
	partly, err := ppl.Compile(ppl.PartlyCentred(grouped, map[string][]float64{"theta": share}), batch)
	require.NoError(t, err)
	require.Equal(t, "mu[] tau[] theta_decentred[8]", partly.Layout().String())
	z, mu, tau := []float64{1, -2, 0.5, 6, 2, -1, 3, 0.1}, 2.5, 4.0
	x, jacobian := make([]float64, 8), 0.0
	for i := range x {
		x[i] = mu + math.Pow(tau, 1-share[i])*(z[i]-share[i]*mu)
		jacobian += (1 - share[i]) * math.Log(tau)
	}
	at := func(p *ppl.Program, name string, v []float64) float64 {
		point, err := p.Unconstrain(ppl.Values{"mu": torch.Of(vec(mu).T().MustSqueeze(false)),
			"tau": torch.Of(vec(tau).T().MustSqueeze(false)),
			name:  vec(v...)}, p.Batch())
		require.NoError(t, err)
		value, _ := p.Target().LogPosterior(point, p.Batch())
		return value.Item() * p.Target().N()
	}
	require.InDelta(t, at(plain, "theta", x)+jacobian, at(partly, "theta_decentred", z), 1e-9)

	for name, share := range map[string][]float64{"mu ": {1}, "tau": {0.5}} {
		_, err := ppl.Compile(ppl.PartlyCentred(grouped, map[string][]float64{name: share}), batch)
		require.Error(t, err)
	}
	_, err = ppl.Compile(ppl.PartlyCentred(grouped, map[string][]float64{"theta": {0, 1}}), batch)
	require.ErrorContains(t, err, "2 shares, and it has shape [8]")
}

// cost is the gradients for an effective draw of the number that mixes worst.
func cost(t *testing.T, p *ppl.Program, seed uint64) float64 {
	t.Helper()
	r, err := infer.Run(context.Background(), p, hmc.NUTS{}, infer.Options{Seed: seed, Observer: infer.Silent})
	require.NoError(t, err)
	d, err := r.Draws.Select("mu", "tau", "theta")
	require.NoError(t, err)
	s, err := diag.Summary(d, diag.SummaryOptions{})
	require.NoError(t, err)
	return float64(r.Gradients) / s.MinESS()
}

// AutoReparam takes about the gradients of the better of both forms for an effective draw, or fewer, where data say
// little, where they say much, and where groups are of both kinds: there each group has the form that suits it. The
// mean of three logarithms has a standard error of about 0.09, and a difference of two 0.12: 1.5 is what 3.4 of them
// make.
func TestAutoReparam(t *testing.T) {
	for name, se := range map[string][]float64{
		"little": {15, 10, 16, 11, 9, 11, 10, 18},
		"much":   {1.5, 1, 1.6, 1.1, 0.9, 1.1, 1, 1.8},
		"both":   {0.1, 0.1, 0.1, 0.1, 30, 30, 30, 30},
	} {
		batch := infer.Batch{"y": vec(groupedY...), "se": vec(se...)}
		auto, err := ppl.AutoReparam(context.Background(), grouped, batch, hmc.NUTS{})
		require.NoError(t, err)
		var sums [3]float64
		for k, m := range []ppl.Model{auto.Model(), grouped,
			ppl.Reparam(grouped, map[string]ppl.Reparameterisation{"theta": ppl.NonCentred})} {
			p, err := ppl.Compile(m, batch)
			require.NoError(t, err)
			for seed := range uint64(3) {
				sums[k] += math.Log(cost(t, p, seed)) / 3
			}
		}
		for k := range sums {
			sums[k] = math.Exp(sums[k])
		}
		t.Logf("%s: auto %.1f, centred %.1f, non-centred %.1f", name, sums[0], sums[1], sums[2])
		require.Less(t, sums[0], 1.5*min(sums[1], sums[2]), name)
	}
	fixed, err := ppl.AutoReparam(context.Background(), func(c *ppl.Ctx) {
		c.Observe("y", dist.Normal(c.Sample("mu", dist.Normal(0, 1)), 1), torch.Of(1.0))
	}, nil, hmc.NUTS{})
	require.NoError(t, err)
	require.Equal(t, "mu[]", fixed.Layout().String())
}

// A run that diverged in a funnel names the variable whose scale is unknown, and what to write.
func TestAdviceNamesTheFunnel(t *testing.T) {
	p, err := ppl.Compile(func(c *ppl.Ctx) {
		tau := c.Sample("tau", dist.HalfCauchy(5))
		c.Sample("theta", dist.Normal(0, tau).Expand(8))
		c.Sample("other", dist.Normal(0, 2).Expand(8))
	}, nil)
	require.NoError(t, err)
	names, err := p.ScaledNormals()
	require.NoError(t, err)
	require.Equal(t, []string{"theta"}, names)
	d, err := infer.Sample(context.Background(), p, hmc.NUTS{}, infer.Options{Seed: 1, Observer: infer.Silent})
	require.NoError(t, err)
	report, err := diag.Diagnose(d, diag.DiagnoseOptions{})
	require.NoError(t, err)
	require.Contains(t, report.String(), "write theta non-centred (ppl.Reparam)")
}
