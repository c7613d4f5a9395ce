package ppl_test

import (
	"strings"
	"testing"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// slope is a straight line through the data.
func slope(c *ppl.Ctx) {
	a := c.Sample("a", dist.Normal(0, 5))
	c.Plate("data", 0, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(a.Mul(c.Data("x")), 1), c.Data("y")) })
}

// Mistakes in the data say what is wrong with them, and nothing that is not.
func TestAdviceOnData(t *testing.T) {
	condition := func(c *ppl.Ctx) {
		a := c.Sample("a", dist.Normal(0, 1))
		c.Plate("data", 0, func(c *ppl.Ctx) {
			c.Factor("f", torch.Where(c.Data("d"), dist.Normal(a, 1).LogProb(c.Data("y")), 0))
		})
	}
	_, err := ppl.Compile(condition, infer.Batch{"d": torch.Must(torch.FromSlice([]int64{0, 1})), "y": vec(1, 2)})
	require.ErrorContains(t, err, "must be of booleans: compare, as in d.Gt(0)")
	require.ErrorContains(t, err, "(at ppl/advice_test.go:")
	assert.NotContains(t, err.Error(), "float64 once")

	_, err = ppl.Compile(slope, infer.Batch{"x": vec(1, 2, 3), "y": vec(1)})
	require.ErrorContains(t, err, `along plate "data", at dimension -1, the value of shape [1] has size 1, and the `+
		`distribution of batch shape [3] has size 3: a single datum is not repeated`)

	empty := torch.Must(torch.FromSlice([]float64{}, 0))
	for name, m := range map[string]ppl.Model{"size 0": slope, "size 3": func(c *ppl.Ctx) {
		a := c.Sample("a", dist.Normal(0, 5))
		c.Plate("data", 3, func(c *ppl.Ctx) { c.Factor("y", dist.Normal(a, 1).LogProb(c.Data("y"))) })
	}, "latent variables": func(c *ppl.Ctx) {
		c.Plate("data", 0, func(c *ppl.Ctx) {
			c.Observe("y", dist.Normal(c.Sample("z", dist.Normal(0, 1)), 1), c.Data("y"))
		})
	}} {
		_, err = ppl.Compile(m, infer.Batch{"x": empty, "y": empty})
		require.ErrorContains(t, err, `plate "data" has no data: the site has batch shape`, name)
		require.ErrorContains(t, err, `site "y" in plate data`, name)
	}
}

// A mistake of a site that is found while a plate's size is looked for comes first.
func TestAdviceBeforeASizeIsKnown(t *testing.T) {
	m := ppl.Reparam(func(c *ppl.Ctx) {
		c.Plate("data", 0, func(c *ppl.Ctx) {
			c.Observe("y", dist.Normal(c.Sample("z", dist.Gamma(2, 1)), 1), c.Data("y"))
		})
	}, map[string]ppl.Reparameterisation{"z": ppl.NonCentred})
	_, err := ppl.Compile(m, infer.Batch{"y": vec(1, 2)})
	require.ErrorContains(t, err, `ppl.Compile: model, site "z" in plate data (Gamma): NonCentred needs a `+
		`location-scale family`)
	assert.Equal(t, 1, strings.Count(err.Error(), `site "z"`))
}

// What cannot be differentiated is named with its site, when the model is compiled or a start is looked for.
func TestAdviceOnGradients(t *testing.T) {
	data := infer.Batch{"y": vec(0.7, 1, 2)}
	for family, d := range map[string]func(k torch.Tensor) dist.Distribution{
		"Gamma":        func(k torch.Tensor) dist.Distribution { return dist.Gamma(k, 1) },
		"InverseGamma": func(k torch.Tensor) dist.Distribution { return dist.InverseGamma(k, 1) },
		"Chi2":         func(k torch.Tensor) dist.Distribution { return dist.Chi2(k) },
	} {
		_, err := ppl.Compile(func(c *ppl.Ctx) {
			k := c.Sample("k", dist.HalfNormal(1))
			c.Plate("data", 0, func(c *ppl.Ctx) { c.Observe("y", dist.Truncated(d(k), 0.5, 3), c.Data("y")) })
		}, data)
		for _, words := range []string{`site "y" in plate data`, "has no gradient in the", " of " + family + ",",
			"or truncate another family", "(at ppl/advice_test.go:"} {
			require.ErrorContains(t, err, words, family)
		}
	}
	_, err := ppl.Compile(func(c *ppl.Ctx) {
		b := c.Sample("b", dist.HalfNormal(1))
		c.Plate("data", 0, func(c *ppl.Ctx) { c.Observe("y", dist.Truncated(dist.Gamma(2, b), 0.5, 3), c.Data("y")) })
	}, data)
	require.NoError(t, err)

	// A censored observation: the same function in a Factor.
	p, err := ppl.Compile(func(c *ppl.Ctx) {
		k := c.Sample("k", dist.HalfNormal(1))
		c.Factor("censored", torch.Of(1).Sub(dist.Gamma(k, 1).(dist.CDFer).CDF(torch.Of(3))).Log())
	}, nil)
	require.NoError(t, err)
	_, err = p.Start(nil, 1, 1)
	for _, words := range []string{`site "censored"`,
		"its log density has no gradient: the derivative for 'igamma: input' is not implemented; fix",
		"(at ppl/advice_test.go:"} {
		require.ErrorContains(t, err, words)
	}

	p, err = ppl.Compile(func(c *ppl.Ctx) {
		a := c.Sample("a", dist.Normal(0, 1))
		q := c.Sample("q", dist.Normal(0, 1))
		c.Observe("z", dist.Normal(a, 1), 0)
		c.Factor("root", q.Sub(q).Sqrt())
	}, nil)
	require.NoError(t, err)
	_, err = p.Start(nil, 1, 1)
	require.ErrorIs(t, err, infer.ErrNonFinite)
	for _, words := range []string{`site "root"`, `its log density is finite and its gradient in "q" is NaN`,
		"no starting point with a finite log density and gradient was found for chain 0", "look for a Sqrt, Abs, Pow",
		"(at ppl/advice_test.go:"} {
		require.ErrorContains(t, err, words)
	}
}

// Predictions say what is missing, and what the draws fix.
func TestAdviceOnPredictions(t *testing.T) {
	of := func(sites []draws.Site, values ...float64) *draws.Draws {
		d, err := draws.New(sites, nil, 1)
		require.NoError(t, err)
		require.NoError(t, d.AppendChain(0, values, nil))
		return d
	}
	_, err := ppl.Predictive{Model: slope}.Posterior(of([]draws.Site{{Name: "a", Size: 1}}, 2))
	require.ErrorContains(t, err, `the batch has no ["x"]`)
	assert.NotContains(t, err.Error(), "freed")
	assert.Equal(t, 1, strings.Count(err.Error(), "(at ppl/advice_test.go:"))

	groups := func(c *ppl.Ctx) {
		c.Plate("groups", 0, func(c *ppl.Ctx) {
			a := c.Sample("a", dist.Normal(0, 1))
			c.Observe("y", dist.Normal(a, c.Data("spread")), c.Data("y"))
		})
	}
	three := of([]draws.Site{{Name: "a", Shape: []int64{3}, Size: 3}}, 1, 2, 3)
	_, err = ppl.Predictive{Model: groups, Batch: infer.Batch{"spread": vec(1, 1, 1, 1, 1)}}.Posterior(three)
	require.ErrorContains(t, err, `the draws have the variables in plate "groups" for 3: to predict for others `+
		`leave those variables out of the draws`)
	_, err = ppl.Predictive{Model: groups, Batch: infer.Batch{"spread": vec(1, 1, 1)}}.Posterior(three)
	require.NoError(t, err)
}
