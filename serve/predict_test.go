//go:build cgo

package serve_test

import (
	"slices"
	"testing"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
	"github.com/kelvin-ppl/kelvin/models"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/require"
)

// at is the first of two.
func at[T, U any](first T, _ U) T { return first }

// rowsOf has the rows of a batch again and again, so many in all.
func rowsOf(t *testing.T, batch infer.Batch, n int) infer.Batch {
	out, index := infer.Batch{}, make([]int64, n)
	for name, x := range batch {
		for i := range index {
			index[i] = int64(i % x.Shape()[0])
		}
		var err error
		out[name], err = torch.Copy(x.IndexSelect(0, torch.New(index)))
		require.NoError(t, err)
	}
	return out
}

// kinds observes what draws random numbers of each kind, and two of them depend on each other.
func kinds(c *ppl.Ctx) {
	x := c.Data("x")
	m, s := c.Sample("m", dist.Normal(0, 1)), c.Sample("s", dist.HalfNormal(1))
	w := c.Sample("w", dist.Dirichlet(torch.New([]float64{1, 2, 3})))
	c.Plate("data", 0, func(c *ppl.Ctx) {
		eta := c.Deterministic("eta", x.Mul(m))
		positive := eta.Exp()
		c.Observe("normal", dist.Normal(eta, s), c.Data("x"))
		c.Observe("gamma", dist.Gamma(positive, s), c.Data("p"))
		c.Observe("bernoulli", dist.BernoulliLogits(eta), c.Data("b"))
		c.Observe("poisson", dist.Poisson(positive.Mul(9)), c.Data("k"))
		c.Observe("negative", dist.NegativeBinomial(positive, 0.4), c.Data("k"))
		c.Observe("binomial", dist.BinomialLogits(40, eta), c.Data("k"))
		c.Observe("betabinomial", dist.BetaBinomial(7, positive, s.Add(1)), c.Data("k"))
		c.Observe("category", dist.Categorical(w), c.Data("c"))
		c.Observe("angle", dist.VonMises(eta, positive), c.Data("x"))
		c.Observe("student", dist.StudentT(4, eta, s), c.Data("x"))
		c.Observe("beta", dist.Beta(positive, 2), c.Data("q"))
		c.Observe("many", dist.Multinomial(9, w), c.Data("m"))
		c.Observe("zeros", dist.ZeroInflated(0.3, dist.Poisson(positive)), c.Data("k"))
	})
}

// The numbers are the same for any number of rows, of each kind of random numbers.
func TestPredictionsOfAnyRows(t *testing.T) {
	vec := func(v ...float64) torch.Tensor {
		x, err := torch.FromSlice(v)
		require.NoError(t, err)
		torch.Detach(x)
		return x
	}
	m, err := torch.FromSlice(slices.Repeat([]float64{2, 3, 4}, 4), 4, 3)
	require.NoError(t, err)
	torch.Detach(m)
	p, err := ppl.Compile(kinds, infer.Batch{"x": vec(-1, 0.5, 2, 3), "p": vec(1, 2, 3, 4), "b": vec(0, 1, 1, 0),
		"k": vec(1, 2, 3, 4), "c": vec(0, 1, 2, 1), "q": vec(0.1, 0.2, 0.3, 0.4), "m": m})
	require.NoError(t, err)
	posterior := at(infertest.PosteriorAt(t, p, 600))
	loaded := at(infertest.Exported(t, p, posterior))
	require.True(t, loaded.FreeRows())
	inputs, known, err := loaded.PredictInputs(4)
	require.NoError(t, err)
	require.Len(t, inputs, 1)
	require.Equal(t, []bool{true}, known)
	for _, n := range []int{1, 2, 4, 7, 100} {
		require.Less(t, infertest.Predicted(t, loaded, kinds, posterior, rowsOf(t, p.Batch(), n), n), 1e-12, n)
	}
	_, err = loaded.Predict(nil, 3, nil, 1)
	require.ErrorContains(t, err, `have no "x", of shape [3]`)
	_, err = loaded.Predict(nil, 3, map[string][]float64{"x": {1, 2}}, 1)
	require.ErrorContains(t, err, `"x" have 2 numbers, expected 3`)
	_, err = loaded.Predict(nil, 0, nil, 1)
	require.ErrorContains(t, err, "0 rows")
	_, err = loaded.Predict(nil, 4, nil, 1, "nope")
	require.ErrorContains(t, err, `no "nope"`)
}

// Draws without the variables of a plate predict for new ones, any number of them.
func TestPredictionsOfNewPlates(t *testing.T) {
	schools := func(c *ppl.Ctx) {
		mu, tau := c.Sample("mu", dist.Normal(0, 5)), c.Sample("tau", dist.HalfCauchy(5))
		c.Plate("schools", 0, func(c *ppl.Ctx) {
			theta := c.Sample("theta", dist.Normal(mu, tau))
			c.Observe("y", dist.Normal(theta, c.Data("sigma")), c.Data("y"))
		})
	}
	m, err := models.EightSchools()
	require.NoError(t, err)
	p, err := ppl.Compile(schools, m.Batch)
	require.NoError(t, err)
	whole := at(infertest.PosteriorAt(t, p, 100))
	posterior, err := whole.Select("mu", "tau")
	require.NoError(t, err)
	loaded := at(infertest.Exported(t, p, posterior))
	require.True(t, loaded.FreeRows())
	for _, n := range []int{1, 3, 8, 20} {
		require.Less(t, infertest.Predicted(t, loaded, schools, posterior, rowsOf(t, p.Batch(), n), n), 1e-12, n)
	}
	_, err = at(infertest.Exported(t, p, whole)).Predict(nil, 3, nil, 1)
	require.ErrorContains(t, err, "predicts its 8 alone")
	require.ErrorContains(t, err, "Draws.Select")
}
