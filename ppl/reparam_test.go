package ppl_test

import (
	"testing"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/bijector"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/stretchr/testify/require"
)

// Non-centred eight schools: z ~ N(0, 1) takes theta's place, theta = mu + tau z is recorded, and the change of
// variables accounts for the whole difference of the densities: log p(z) = log p(theta) + 8 log tau.
func TestNonCentred(t *testing.T) {
	batch := schoolData(t)
	free, f := compiled(t, ppl.Reparam(schools, map[string]ppl.Reparameterisation{"theta": ppl.NonCentred}), batch)
	require.Equal(t, "mu[] tau[] theta_decentred[8]", free.Layout().String())
	_, centred := compiled(t, schools, batch)
	z := []float64{0.3, -1, 0.5, 2, 0.7, -0.4, 1, 0.6}
	const mu, logTau = 1.5, 0.4
	point, err := infer.NewParams(free.Layout(), append([]float64{mu, logTau}, z...))
	require.NoError(t, err)
	values, err := free.Constrain(point, batch)
	require.NoError(t, err)
	theta, tau := floats(t, values["theta"]), floats(t, values["tau"])[0]
	for i := range z {
		require.InDelta(t, mu+tau*z[i], theta[i], 1e-14)
	}
	require.InDelta(t, centred(batch, append([]float64{mu, logTau}, theta...)...)+8*logTau, f(batch,
		append([]float64{mu, logTau}, z...)...), 1e-11)
	require.InDelta(t, wanted(mu, logTau, theta)+8*logTau, f(batch, append([]float64{mu, logTau}, z...)...), 1e-11)

	// The new variable can be conditioned on like any other.
	given := ppl.Condition(ppl.Reparam(schools, map[string]ppl.Reparameterisation{"theta": ppl.NonCentred}),
		ppl.Values{"theta_decentred": vec(z...)})
	_, g := compiled(t, given, batch)
	require.InDelta(t, f(batch, append([]float64{mu, logTau}, z...)...), g(batch, mu, logTau), 1e-11)

	// In the prior predictive nothing has changed but the names.
	prior, err := ppl.Predictive{Model: ppl.Reparam(schools,
		map[string]ppl.Reparameterisation{"theta": ppl.NonCentred}), Batch: batch}.Prior(10)
	require.NoError(t, err)
	require.Contains(t, prior, "theta")
	require.Contains(t, prior, "theta_decentred")
}

// Every location-scale family: x = loc + scale z, so log p(z) = log p(x) + log scale.
func TestNonCentredFamilies(t *testing.T) {
	const loc, scale, z = 0.7, 2.5, 0.9
	for name, d := range map[string]dist.Distribution{
		"Normal": dist.Normal(loc, scale), "StudentT": dist.StudentT(4, loc, scale), "Cauchy": dist.Cauchy(loc, scale),
		"Laplace": dist.Laplace(loc, scale), "Logistic": dist.Logistic(loc, scale), "Gumbel": dist.Gumbel(loc, scale),
	} {
		m := func(c *ppl.Ctx) { c.Sample("x", d) }
		_, free := compiled(t, ppl.Reparam(m, map[string]ppl.Reparameterisation{"x": ppl.NonCentred}), nil)
		_, f := compiled(t, m, nil)
		require.InDelta(t, f(nil, loc+scale*z)+0.9162907318741551, free(nil, z), 1e-13, name) // log 2.5
	}
	_, err := ppl.Compile(ppl.Reparam(func(c *ppl.Ctx) { c.Sample("x", dist.Gamma(1, 1)) },
		map[string]ppl.Reparameterisation{"x": ppl.NonCentred}), nil)
	require.ErrorContains(t, err, "location-scale")
	require.ErrorContains(t, err, `"x"`)
}

// A transformed distribution in terms of its base.
func TestThroughBijector(t *testing.T) {
	m := func(c *ppl.Ctx) {
		c.Sample("x", dist.Transformed(dist.Normal(0, 1), bijector.Affine(3, 2), bijector.Exp()))
	}
	p, f := compiled(t, ppl.Reparam(m, map[string]ppl.Reparameterisation{"x": ppl.ThroughBijector}), nil)
	require.Equal(t, "x_base[]", p.Layout().String())
	require.InDelta(t, normal(0.4, 0, 1), f(nil, 0.4), 1e-14)
	point, err := infer.NewParams(p.Layout(), []float64{0.4})
	require.NoError(t, err)
	values, err := p.Constrain(point, nil)
	require.NoError(t, err)
	require.InEpsilon(t, 44.70118449330082, floats(t, values["x"])[0], 1e-14) // exp(3.8)
	_, err = ppl.Compile(ppl.Reparam(chain, map[string]ppl.Reparameterisation{"x": ppl.ThroughBijector}), nil)
	require.ErrorContains(t, err, "transformed")
}

// The elements of an event have a variable each.
func TestNonCentredEvents(t *testing.T) {
	m := func(c *ppl.Ctx) {
		mu := c.Sample("mu", dist.Normal(0, 1).Expand(3))
		c.Sample("w", dist.Independent(dist.Normal(mu, 2), 1))
	}
	p, f := compiled(t, ppl.Reparam(m, map[string]ppl.Reparameterisation{"w": ppl.NonCentred}), nil)
	require.Equal(t, "mu[3] w_decentred[3]", p.Layout().String())
	x := []float64{0.1, 0.2, 0.3, 1, -2, 0.5}
	require.InDelta(t, sumNormal(x, 0, 1), f(nil, x...), 1e-13)
	point, err := infer.NewParams(p.Layout(), x)
	require.NoError(t, err)
	values, err := p.Constrain(point, nil)
	require.NoError(t, err)
	require.InDeltaSlice(t, []float64{2.1, -3.8, 1.3}, floats(t, values["w"]), 1e-14)
}

// A name that is observed, or that the model does not have, is no request that can be met.
func TestReparamOfWhatIsNotLatent(t *testing.T) {
	m := func(c *ppl.Ctx) {
		mu := c.Sample("mu", dist.Normal(0, 1))
		c.Observe("y", dist.Normal(mu, 1), 0.5)
	}
	reparam := func(m ppl.Model, name string) error {
		_, err := ppl.Compile(ppl.Reparam(m, map[string]ppl.Reparameterisation{name: ppl.NonCentred}), nil)
		return err
	}
	require.ErrorContains(t, reparam(m, "y"), `site "y"`)
	require.ErrorContains(t, reparam(m, "y"), "it is observed")
	require.ErrorContains(t, reparam(m, "mo"), `site "mo": Reparam names it, and the model has no such site`)
	two := func(c *ppl.Ctx) { m(c); c.Sample("x", dist.Normal(0, 1)) }
	require.ErrorContains(t, reparam(ppl.Condition(two, ppl.Values{"x": scalar(1)}), "x"), "it is observed")
	require.NoError(t, reparam(ppl.Substitute(two, ppl.Values{"x": scalar(1)}), "x"), "as in predictions")
	require.NoError(t, reparam(m, "mu"))
}
