package ppl_test

import (
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/infer/path"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/require"
)

// twoSources has a latent variable, two sets of observations and a factor.
func twoSources(c *ppl.Ctx) {
	mu := c.Sample("mu", dist.Normal(0, 2))
	c.Plate("first", 0, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(mu, 1), c.Data("y")) })
	c.Observe("z", dist.Normal(mu, 0.5), 1.5)
	c.Factor("f", mu.Mul(0.1))
}

// Named sites are the likelihood and all others the prior, in closed form: whole, tempered, and along a path.
func TestWithLikelihood(t *testing.T) {
	y := []float64{0.3, -1, 2}
	batch := infer.Batch{"y": vec(y...)}
	p, err := ppl.Compile(twoSources, batch)
	require.NoError(t, err)
	const at = 0.7
	parts := map[string]float64{"mu": normal(at, 0, 2), "y": sumNormal(y, at, 1), "z": normal(1.5, at, 0.5), "f": 0.1 * at}
	all := parts["mu"] + parts["y"] + parts["z"] + parts["f"]
	for _, names := range [][]string{{"y"}, {"z", "f"}, {"f"}, {"mu", "z"}, {"y", "z", "f"}, {}} {
		q, err := p.WithLikelihood(names...)
		require.NoError(t, err)
		want := 0.0
		for _, name := range names {
			want += parts[name]
		}
		value := func(w infer.Weights) float64 {
			v, _ := evaluate(t, q, q.Target().Weigh(w), batch, at)
			return v[0]
		}
		require.InDelta(t, want, value(infer.Weights{Likelihood: 1}), 1e-13, "%v", names)
		require.InDelta(t, all-want, value(infer.Weights{Prior: 1}), 1e-13, "%v", names)

		tempered, err := infer.TemperLikelihood(q.Target(), 4)
		require.NoError(t, err)
		v, _ := evaluate(t, q, tempered.Weigh(infer.Weights{Prior: 1, Likelihood: 1, Jacobian: 1}), batch, at)
		require.InDelta(t, all-want+want/4, v[0], 1e-13, "%v", names)

		for _, tier := range []native.Tier{native.VM, native.Eager} {
			e, err := path.Path{}.On(q, tier)
			require.NoError(t, err)
			var points path.Points
			require.NoError(t, e.Eval([]float64{at}, []float64{0.3}, &points))
			require.InDelta(t, all-0.7*want, points.LogP[0], 1e-13, "%v %v", names, tier)
			require.InDelta(t, want, points.Slope[0], 1e-13, "%v %v", names, tier)
		}
	}
	// The program is as before, and so are its prior draws where the names are those of all data.
	v, _ := evaluate(t, p, p.Target().Weigh(infer.Weights{Likelihood: 1}), batch, at)
	require.InDelta(t, all-parts["mu"], v[0], 1e-13)
	q, err := p.WithLikelihood("y", "z", "f")
	require.NoError(t, err)
	require.NoError(t, torch.Do(func(*torch.Scope) error {
		want := torch.Must(p.Target().Prior(batch, torch.NewStreams(3, 2)))
		got := torch.Must(q.Target().Prior(batch, torch.NewStreams(3, 2)))
		require.Equal(t, torch.Must(want.Values()), torch.Must(got.Values()))
		return nil
	}))
}

// Where the prior is no longer that of the latent variables, drawing from it is an error that names the site.
func TestWithLikelihoodHasNoPrior(t *testing.T) {
	batch := infer.Batch{"y": vec(1, 2)}
	p, err := ppl.Compile(twoSources, batch)
	require.NoError(t, err)
	for want, names := range map[string][]string{
		`site "z" has data and is in the prior`:         {"y", "f"},
		`the latent variable "mu" is in the likelihood`: {"mu", "y", "z", "f"},
	} {
		q, err := p.WithLikelihood(names...)
		require.NoError(t, err)
		e, err := path.Path{}.On(q, native.Eager)
		require.NoError(t, err)
		_, err = e.Start(1, 0, 0)
		require.ErrorContains(t, err, want)
		require.ErrorIs(t, err, infer.ErrConfig)
	}
	_, err = p.WithLikelihood("x")
	require.ErrorContains(t, err, `ppl.WithLikelihood: the model has no density of the name "x"; it has mu, y, z, f`)
	_, err = new(ppl.Program).WithLikelihood("y")
	require.ErrorContains(t, err, "Compile has not made the program")
}

// A sum over a discrete variable has the densities of two observations: they go together, and have the sum's logarithm.
func TestWithLikelihoodOfSums(t *testing.T) {
	model := func(c *ppl.Ctx) {
		mu := c.Sample("mu", dist.Normal(0, 1))
		kind := c.Sample("kind", dist.Bernoulli(0.3))
		c.Observe("a", dist.Normal(mu.Add(kind), 1), 0.5)
		c.Observe("b", dist.Normal(mu.Sub(kind), 1), -0.5)
		c.Observe("rest", dist.Normal(mu, 1), 2)
	}
	p, err := ppl.Compile(model, infer.Batch{})
	require.NoError(t, err)
	_, err = p.WithLikelihood("a", "rest")
	require.ErrorContains(t, err, `"a" and "b" are in one sum over discrete variables: name both of them or none`)
	const mu = 0.2
	sum := math.Log(0.7*math.Exp(normal(0.5, mu, 1)+normal(-0.5, mu, 1)) +
		0.3*math.Exp(normal(0.5, mu+1, 1)+normal(-0.5, mu-1, 1)))
	for _, c := range []struct {
		names []string
		want  float64
	}{{[]string{"a", "b"}, sum}, {[]string{"rest"}, normal(2, mu, 1)}} {
		q, err := p.WithLikelihood(c.names...)
		require.NoError(t, err)
		v, _ := evaluate(t, q, q.Target().Weigh(infer.Weights{Likelihood: 1}), infer.Batch{}, mu)
		require.InDelta(t, c.want, v[0], 1e-13)
	}
}

// The name of a variable of a loop stands for all of its steps.
func TestWithLikelihoodOfSteps(t *testing.T) {
	p, err := ppl.Compile(func(c *ppl.Ctx) {
		mu := c.Sample("mu", dist.Normal(0, 1))
		c.Scan(3, []torch.Tensor{mu}, func(c *ppl.Ctx, t int, carry []torch.Tensor) ([]torch.Tensor, torch.Tensor) {
			c.Observe("y", dist.Normal(carry[0], 1), float64(t))
			return carry, carry[0]
		})
		c.Observe("z", dist.Normal(mu, 1), 5)
	}, infer.Batch{})
	require.NoError(t, err)
	q, err := p.WithLikelihood("y")
	require.NoError(t, err)
	v, _ := evaluate(t, q, q.Target().Weigh(infer.Weights{Likelihood: 1}), infer.Batch{}, 0.4)
	require.InDelta(t, sumNormal([]float64{0, 1, 2}, 0.4, 1), v[0], 1e-13)
}

// Data that no parameter can explain are named: the site, the element and the value.
func TestFailuresNameTheDatum(t *testing.T) {
	poisson := func(c *ppl.Ctx) {
		rate := c.Sample("rate", dist.Gamma(2, 1))
		c.Plate("weeks", 0, func(c *ppl.Ctx) { c.Observe("cases", dist.Poisson(rate), c.Data("cases")) })
	}
	_, err := ppl.Compile(poisson, infer.Batch{"cases": vec(3, 0, -1, 2)})
	require.ErrorContains(t, err, `model, site "cases" in plate weeks (Poisson): the observed value is outside the `+
		"support: element [2] of shape [4] is -1: it must be a whole number of at least 0")
	normalModel := func(c *ppl.Ctx) {
		mu := c.Sample("mu", dist.Normal(0, 1))
		c.Plate("rows", 0, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(mu.Mul(c.Data("x")), 1), c.Data("y")) })
	}
	_, err = ppl.Compile(normalModel, infer.Batch{"x": vec(1, 1, 1), "y": vec(1, math.NaN(), 2)})
	require.ErrorContains(t, err, `site "y" in plate rows (Normal): the observed value is outside the support: element `+
		"[1] of shape [3] is NaN")

	// A covariate is no variable: it is found by a parameter that depends on it, or where the density is not finite.
	batch := infer.Batch{"x": vec(1, 2, math.NaN(), 4), "y": vec(1, 2, 3, 4)}
	_, err = ppl.Compile(normalModel, batch)
	require.ErrorContains(t, err, `site "y" in plate rows (Normal): dist.Normal: loc is NaN at element 2 of shape [4]: `+
		"it must be finite")
	require.ErrorContains(t, err, `; the data "x" have NaN at element [2] of shape [4]`)
	p, err := ppl.Compile(normalModel, infer.Batch{"x": vec(1, 2, 3, 4), "y": vec(1, 2, 3, 4)})
	require.NoError(t, err)
	_, err = p.Start(batch, 1, 0)
	require.ErrorContains(t, err, `site "y" in plate rows (Normal): its log density is NaN at the last point tried for `+
		"chain 0 (start: uniform), first at element [2] of shape [4], where the observed value is 3: no starting point")
	require.ErrorContains(t, err, `the data "x" have NaN at element [2] of shape [4]: mask such data (ppl.Mask)`)

	// A support that depends on a latent variable is no fault of the data.
	uniform := func(c *ppl.Ctx) {
		top := c.Sample("top", dist.Uniform(0, 1))
		c.Plate("rows", 0, func(c *ppl.Ctx) { c.Observe("y", dist.Uniform(0, top), c.Data("y")) })
	}
	batch = infer.Batch{"y": vec(-1, 3, 0)}
	p, err = ppl.Compile(uniform, batch)
	require.NoError(t, err)
	_, err = p.Start(batch, 1, 0)
	require.ErrorContains(t, err, "first at element [0] of shape [3], where the observed value is -1: no starting point")
	require.NotContains(t, err.Error(), "mask such data")
}

// One datum for parameters of several sizes counts once for each of them, where the support depends on them too: the
// log density is the sum.
func TestOneDatumForManySupports(t *testing.T) {
	low := vec(1, 2)
	for name, d := range map[string]func(a torch.Tensor) dist.Distribution{
		"Pareto":    func(a torch.Tensor) dist.Distribution { return dist.Pareto(low, a) },
		"Binomial":  func(a torch.Tensor) dist.Distribution { return dist.Binomial(low.Add(4), a.Neg().Exp()) },
		"Truncated": func(a torch.Tensor) dist.Distribution { return dist.Truncated(dist.Normal(a, 1), low, 9) },
		"Uniform":   func(a torch.Tensor) dist.Distribution { return dist.Uniform(low, a.Add(9)) },
	} {
		model := func(c *ppl.Ctx) { c.Observe("y", d(c.Sample("a", dist.HalfNormal(1))), 3.0) }
		_, err := ppl.Compile(model, nil)
		require.NoError(t, err, name)
		trace, err := ppl.TraceModel(ppl.Substitute(model, ppl.Values{"a": torch.Of(0.7)}), nil, 1)
		require.NoError(t, err, name)
		got, err := torch.Item(trace.Sites["y"].LogProb())
		require.NoError(t, err, name)
		require.InDelta(t, d(torch.Of(0.7)).LogProb(torch.Of(3.0)).Sum().Item(), got, 1e-12, name)
	}
	outside := func(c *ppl.Ctx) { c.Observe("y", dist.Pareto(low, c.Sample("a", dist.HalfNormal(1))), 1.5) }
	_, err := ppl.Compile(outside, nil)
	require.ErrorContains(t, err, "element [1] of shape [2] is 1.5: it must be")
}
