package ppl_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
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
	_, err := ppl.Compile(condition, infer.Batch{"d": torch.New([]int{0, 1}), "y": vec(1, 2)})
	require.ErrorContains(t, err, "must be of booleans: compare, as in d.Gt(0)")
	require.ErrorContains(t, err, "(at ppl/advice_test.go:")
	assert.NotContains(t, err.Error(), "float64 once")

	_, err = ppl.Compile(slope, infer.Batch{"x": vec(1, 2, 3), "y": vec(1)})
	require.ErrorContains(t, err, `along plate "data", at dimension -1, the value of shape [1] has size 1, and the `+
		`distribution of batch shape [3] has size 3: a single datum is not repeated`)

	empty := torch.New([]float64{}, 0)
	_, err = ppl.Compile(slope, infer.Batch{"x": empty, "y": empty})
	require.ErrorContains(t, err, `site "y" in plate data (Normal): plate "data" has no data, and neither has any other`)
	_, err = ppl.Compile(func(c *ppl.Ctx) {
		slope(c)
		c.Factor("prior", c.Sample("b", dist.Normal(0, 1)))
	}, infer.Batch{"x": empty, "y": empty})
	require.ErrorContains(t, err, `plate "data" has no data, and neither has any other`)
	_, err = ppl.Compile(func(c *ppl.Ctx) {
		c.Plate("data", 0, func(c *ppl.Ctx) {
			c.Observe("y", dist.Normal(c.Sample("z", dist.Normal(0, 1)), 1), c.Data("y"))
		})
	}, infer.Batch{"y": empty})
	require.ErrorContains(t, err, `the size of plate "data" cannot be inferred`)

	_, err = ppl.Compile(func(c *ppl.Ctx) {
		a := c.Sample("a", dist.Normal(0, 5))
		c.Plate("data", 3, func(c *ppl.Ctx) { c.Factor("y", dist.Normal(a, 1).LogProb(c.Data("y"))) })
	}, infer.Batch{"y": empty})
	require.ErrorContains(t, err, `site "y" in plate data: plate "data" has`)
	require.ErrorContains(t, err, "of its 3 in this run, and the site has batch shape [0]")

	// One plate of several may be empty, such as that of the censored data where there are none.
	two, err := ppl.Compile(func(c *ppl.Ctx) {
		a := c.Sample("a", dist.Normal(0, 1))
		c.Plate("seen", 0, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(a, 1), c.Data("y")) })
		c.Plate("censored", 0, func(c *ppl.Ctx) { c.Factor("tail", a.Sub(c.Data("c"))) })
		c.Plate("more", 0, func(c *ppl.Ctx) { c.Observe("z", dist.Normal(a, 1), c.Data("c")) })
	}, infer.Batch{"y": vec(1, 2, 3), "c": empty})
	require.NoError(t, err)
	e := must(infer.NewGradient(two.Target()))
	point := must(infer.NewParams(two.Layout(), []float64{1}))
	at := must(e.ValueAndGrad(point, two.Batch(), 0))
	assert.InDelta(t, (-1+0+1+2)/3.0, at.Grad.At(0).Item(), 1e-12) // of the prior and of y, for a datum
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
	// Libtorch's incomplete gamma function has no derivative in the shape.
	p, err := ppl.Compile(func(c *ppl.Ctx) {
		k := c.Sample("k", dist.HalfNormal(1))
		c.Factor("censored", torch.Of(k.T().MustSpecialGammaincc(torch.Of(3).T(), false)).Log())
	}, nil)
	require.NoError(t, err)
	_, err = p.Start(nil, 1, 1)
	for _, words := range []string{`site "censored"`,
		"its log density has no gradient: the derivative for 'igammac: input' is not implemented; fix",
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
	three := of([]draws.Site{{Name: "a", Shape: []int{3}, Size: 3}}, 1, 2, 3)
	_, err = ppl.Predictive{Model: groups, Batch: infer.Batch{"spread": vec(1, 1, 1, 1, 1)}}.Posterior(three)
	require.ErrorContains(t, err, `the draws have the variables in plate "groups" for 3: to predict for others `+
		`leave those variables out of the draws`)
	_, err = ppl.Predictive{Model: groups, Batch: infer.Batch{"spread": vec(1, 1, 1)}}.Posterior(three)
	require.NoError(t, err)
}

// Models that are functions of their sites and data, though the order of their sites, or that of a sum in float32, is
// that of a map.
func TestCompileTakesModelsInTheOrderOfAMap(t *testing.T) {
	const n = 1000
	b, places := infer.Batch{}, map[string]int{}
	var y [n]float64
	for j := range 8 {
		var x [n]float64
		for i := range x {
			x[i] = math.Sin(float64(i*(j+3))) * 3
		}
		name := fmt.Sprint("x", j)
		places[name], b[name] = j, torch.Of(vec(x[:]...).T().MustTotype(gotch.Float, false))
	}
	b["y"] = vec(y[:]...)
	for range 20 {
		_, err := ppl.Compile(func(c *ppl.Ctx) {
			w := c.Sample("w", dist.Normal(0, 1).Expand(8))
			c.Plate("n", 0, func(c *ppl.Ctx) {
				eta := torch.Of(0.0)
				for name, j := range places {
					eta = eta.Add(c.Data(name).Mul(w.At(j)))
				}
				c.Observe("y", dist.Normal(eta, 1), c.Data("y"))
			})
		}, b)
		require.NoError(t, err)
		_, err = ppl.Compile(func(c *ppl.Ctx) {
			sum := torch.Of(0.0)
			for name := range places {
				sum = sum.Add(c.Sample(name, dist.Normal(0, 1)))
			}
			c.Factor("bound", torch.Where(sum.Gt(30), 0.0, math.Inf(-1))) // not finite where Compile looks
		}, nil)
		require.NoError(t, err)
	}
	runs := 0
	_, err := ppl.Compile(func(c *ppl.Ctx) {
		runs++
		mu := c.Sample("mu", dist.Normal(0, 1))
		c.Factor("f", mu.Mul(3).Add([]float64{0, math.Inf(-1)}[runs%2]))
	}, nil)
	require.ErrorContains(t, err, `site "f"`)
	require.ErrorContains(t, err, "in one run of the model")
}

// Draws that another program has rounded to six digits are inside of an interval, and sizes that no plate of the draws
// has are not explained by them.
func TestAdviceOnDrawsOfOthers(t *testing.T) {
	d := must(draws.New([]draws.Site{{Name: "p", Size: 1}}, nil, 1))
	require.NoError(t, d.AppendChain(0, []float64{0.666667}, nil))
	require.NoError(t, d.AppendChain(0, []float64{0.666667}, nil))
	p, err := ppl.Compile(func(c *ppl.Ctx) {
		p := c.Sample("p", dist.Uniform(0, 2.0/3))
		c.Plate("n", 0, func(c *ppl.Ctx) { c.Observe("y", dist.Bernoulli(p), c.Data("y")) })
	}, infer.Batch{"y": vec(1, 1, 1)})
	require.NoError(t, err)
	_, err = p.Predict(d, 1)
	require.NoError(t, err)
	require.NoError(t, d.AppendChain(0, []float64{0.6668}, nil))
	_, err = p.Predict(d, 1)
	require.ErrorContains(t, err, "0.6668 is not from 0 to 0.666")

	groups := must(draws.New([]draws.Site{{Name: "a", Shape: []int{3}, Size: 3}}, nil, 1))
	require.NoError(t, groups.AppendChain(0, []float64{1, 2, 3}, nil))
	_, err = ppl.Predictive{Model: func(c *ppl.Ctx) {
		c.Plate("groups", 3, func(c *ppl.Ctx) { c.Sample("a", dist.Normal(0, 1)) })
		c.Plate("n", 0, func(c *ppl.Ctx) {
			c.Observe("y", dist.Normal(c.Data("x").Mul(c.Data("z")), 1), c.Data("y"))
		})
	}, Batch: infer.Batch{"x": vec(1, 2, 4, 4), "z": vec(1, 2, 4, 4, 5)}}.Posterior(groups)
	require.ErrorContains(t, err, "must match the size of tensor")
	require.NotContains(t, err.Error(), "groups")
}
