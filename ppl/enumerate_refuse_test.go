package ppl_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// What cannot be summed out is refused with the names, the sizes and what would be right.
func TestEnumerateRefuses(t *testing.T) {
	a := func(c *ppl.Ctx) torch.Tensor { return c.Sample("a", dist.Normal(0, 1)) }
	for name, c := range map[string]struct {
		model ppl.Model
		want  []string
	}{
		"a support without end": {func(c *ppl.Ctx) {
			n := c.Sample("n", dist.Poisson(a(c).Exp()))
			c.Observe("y", dist.Normal(n, 1), 2)
		}, []string{`"n"`, "Poisson", "not finite", "dist.Truncated(d, 0, n)"}},
		"a vector": {func(c *ppl.Ctx) {
			n := c.Sample("n", dist.Multinomial(4, vec(0.2, 0.8)))
			c.Observe("y", dist.Normal(n.Sum().Add(a(c)), 1), 2)
		}, []string{`"n"`, "Multinomial", "plate"}},
		"a batch without a plate": {func(c *ppl.Ctx) {
			z := c.Sample("z", dist.Bernoulli(vec(0.2, 0.8)))
			c.Observe("y", dist.Normal(z.Add(a(c)), 1), vec(1, 2))
		}, []string{`"z"`, "[2]", "plate"}},
		"a part of the data inside a sum": {func(c *ppl.Ctx) {
			mean := c.Sample("z", dist.Bernoulli(0.5)).Add(a(c))
			c.Plate("data", 6, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(mean, 1), vec(1, 2)) }, ppl.Minibatch)
		}, []string{`"y"`, `"z"`, `"data"`, "2 of 6", "all of the data"}},
		"a sum over the data of a minibatch": {func(c *ppl.Ctx) {
			mean := a(c)
			c.Plate("data", 6, func(c *ppl.Ctx) {
				z := c.Sample("z", dist.Bernoulli(0.5))
				c.Observe("y", dist.Normal(z.Mean(-1).Unsqueeze(-1).Add(mean), 1), vec(1, 2))
			}, ppl.Minibatch)
		}, []string{`"y"`, "elementwise"}},
		"a table that is too large": {func(c *ppl.Ctx) {
			sum := a(c)
			for i := range 30 {
				sum = sum.Add(c.Sample(fmt.Sprintf("z%d", i), dist.Bernoulli(0.5)))
			}
			c.Observe("y", dist.Normal(sum, 1), 2)
		}, []string{`"y"`, "1.07e+09", "z7 (2 values)", "16777216"}},
		"too many variables": {func(c *ppl.Ctx) {
			mean := a(c)
			for i := range 50 {
				z := c.Sample(fmt.Sprintf("z%d", i), dist.Bernoulli(0.5))
				c.Observe(fmt.Sprintf("y%d", i), dist.Normal(mean.Add(z), 1), 2)
			}
		}, []string{"40", "Markov", "plate"}},
		"plates that cross": {func(c *ppl.Ctx) {
			var u, v torch.Tensor
			a := a(c)
			c.Plate("rows", 30, func(c *ppl.Ctx) { u = c.Sample("u", dist.Bernoulli(0.5)) }, ppl.Dim(-1))
			c.Plate("columns", 40, func(c *ppl.Ctx) {
				v = c.Sample("v", dist.Bernoulli(0.5))
				c.Plate("rows", 30, func(c *ppl.Ctx) {
					c.Observe("y", dist.Normal(u.Add(v).Add(a), 1), torch.Zeros(40, 30))
				}, ppl.Dim(-1))
			}, ppl.Dim(-2))
		}, []string{`"y"`, "rows (30)", "columns (40)", "v (2 values), u (2 values)", "cross", `plate "rows"`, "2.15e+09"}},
		"a part of the data in plates that cross": {func(c *ppl.Ctx) {
			var u, v torch.Tensor
			a := a(c)
			c.Plate("rows", 4, func(c *ppl.Ctx) { u = c.Sample("u", dist.Bernoulli(0.5)) }, ppl.Dim(-1), ppl.Minibatch)
			c.Plate("columns", 6, func(c *ppl.Ctx) {
				v = c.Sample("v", dist.Bernoulli(0.5))
				c.Plate("rows", 4, func(c *ppl.Ctx) {
					c.Observe("y", dist.Normal(u.Add(v).Add(a), 1), torch.Zeros(6, 2))
				}, ppl.Dim(-1), ppl.Minibatch)
			}, ppl.Dim(-2))
		}, []string{`"y"`, `"rows"`, "2 of 4"}},
		"a use outside of the plate": {func(c *ppl.Ctx) {
			var z torch.Tensor
			a := a(c)
			c.Plate("data", 2, func(c *ppl.Ctx) { z = c.Sample("z", dist.Bernoulli(0.5)) })
			c.Observe("y", dist.Normal(z.Add(a), 1), 2)
		}, []string{`"y"`, `"z"`, `"data"`, "outside"}},
		"a sum over all": {func(c *ppl.Ctx) {
			a := a(c)
			c.Plate("data", 3, func(c *ppl.Ctx) {
				z := c.Sample("z", dist.Bernoulli(0.5))
				c.Observe("y", dist.Normal(z.Sum().Add(a), 1), vec(1, 2, 3))
			})
		}, []string{`"y"`, "elementwise"}},
		"a sum over a plate": {func(c *ppl.Ctx) {
			a := a(c)
			c.Plate("data", 3, func(c *ppl.Ctx) {
				z := c.Sample("z", dist.Bernoulli(0.5))
				c.Observe("y", dist.Normal(z.Mean(-1).Unsqueeze(-1).Add(a), 1), vec(1, 2, 3))
			})
		}, []string{`"y"`, "elementwise"}},
		"a step of two before": {func(c *ppl.Ctx) {
			a := a(c)
			past := []torch.Tensor{torch.Of(0), torch.Of(0)}
			c.Markov(6, func(c *ppl.Ctx, t int) {
				past = append(past, c.Sample("z", dist.BernoulliLogits(past[t].Mul(2).Sub(1))))
				c.Observe("y", dist.Normal(past[t].Add(a), 1), 0.5)
			})
		}, []string{`"z[4]"`, "last one"}},
		"no steps": {func(c *ppl.Ctx) { c.Markov(0, func(*ppl.Ctx, int) {}) }, []string{"0 steps"}},
		"no body":  {func(c *ppl.Ctx) { c.Markov(3, nil) }, []string{"function is nil"}},
		"a density": {func(c *ppl.Ctx) {
			z := c.Sample("z", dist.Bernoulli(0.5))
			c.Density("f", func(x, grad [][]float64) float64 { return x[0][0] }, z.Mul(a(c)))
		}, []string{`"f"`, "Density", "Factor"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ppl.Compile(c.model, nil)
			require.Error(t, err)
			for _, w := range c.want {
				assert.Contains(t, err.Error(), w)
			}
		})
	}
}

// InferDiscrete refuses what it cannot use.
func TestInferDiscreteRefuses(t *testing.T) {
	_, err := ppl.InferDiscrete{}.Mode(nil)
	require.ErrorContains(t, err, "program is nil")
	plain, err := ppl.Compile(func(c *ppl.Ctx) { c.Sample("a", dist.Normal(0, 1)) }, nil)
	require.NoError(t, err)
	_, err = ppl.InferDiscrete{Program: plain}.Mode(twice(t, 1, 0, 0))
	require.ErrorContains(t, err, "no discrete variable")
	p, err := ppl.Compile(factorial(3), infer.Batch{"y": vec(1, 2, 3)})
	require.NoError(t, err)
	_, err = ppl.InferDiscrete{Program: p}.Marginals(nil)
	require.ErrorContains(t, err, "nil")
	_, err = ppl.InferDiscrete{Program: plain}.Sample(nil)
	require.Error(t, err)
}

// A model with discrete variables predicts with them drawn anew: the mean of the predictions of a mixture is that of
// its components, within four standard errors.
func TestEnumeratePredicts(t *testing.T) {
	batch := infer.Batch{"y": vec(uneven(5, 1)...)}
	p, err := ppl.Compile(func(c *ppl.Ctx) {
		a, b := c.Sample("a", dist.Normal(0, 1)), c.Sample("b", dist.Normal(0, 1))
		loc := torch.Stack(0, a, b)
		c.Plate("data", 0, func(c *ppl.Ctx) {
			z := c.Sample("z", dist.Categorical(vec(0.25, 0.75)))
			c.Observe("y", dist.Normal(loc.Take(z), 1), c.Data("y"))
		})
	}, batch)
	require.NoError(t, err)
	posterior := twice(t, 2000, -2, 2)
	predicted, err := p.Predict(posterior, 1)
	require.NoError(t, err)
	x, err := predicted.Values("y")
	require.NoError(t, err)
	sum := 0.0
	for _, row := range x[0] {
		require.Len(t, row, 5)
		for _, v := range row {
			sum += v
		}
	}
	// Mean 0.25·(−2) + 0.75·2 = 1, variance 1 + 16·0.25·0.75 = 4, of 10,000 independent numbers.
	assert.InDelta(t, 1, sum/10000, 4*2/100.0)

	// The log likelihood of a datum is the mixture's.
	logs, err := p.LogLikelihood(twice(t, 1, -2, 2))
	require.NoError(t, err)
	for i, y := range floats(t, batch["y"]) {
		want := logSumExp([]float64{normal(y, -2, 1) + math.Log(0.25), normal(y, 2, 1) + math.Log(0.75)})
		assert.InDelta(t, want, first(t, logs, "y")[i], 1e-12)
	}
}

// A formula that fails on the dimension of a variable that is summed out, and not on one value, is an error that says
// so before what failed.
func TestEnumerateShapes(t *testing.T) {
	x := matrix(4, 3, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3)
	w := vec(0.1, 0.2, 0.3)
	table := matrix(2, 3, 1, 2, 3, 4, 5, 6)
	batch := infer.Batch{"y": vec(1, 2, 3, 4)}
	outside := func(f func(c *ppl.Ctx, z torch.Tensor)) ppl.Model {
		return func(c *ppl.Ctx) {
			c.Sample("a", dist.Normal(0, 1))
			f(c, c.Sample("z", dist.Bernoulli(0.4)))
		}
	}
	observe := func(mean func(z torch.Tensor) torch.Tensor) ppl.Model {
		return outside(func(c *ppl.Ctx, z torch.Tensor) {
			c.Plate("rows", 0, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(mean(z), 1), c.Data("y")) })
		})
	}
	for name, m := range map[string]ppl.Model{
		"MatMul": observe(func(z torch.Tensor) torch.Tensor { return x.MatMul(w.Mul(z)) }),
		"Take and MatMul": observe(func(z torch.Tensor) torch.Tensor {
			return x.MatMul(table.Take(z))
		}),
		"Reshape": observe(func(z torch.Tensor) torch.Tensor { return z.Reshape(1).Mul(2) }),
		"Cat": observe(func(z torch.Tensor) torch.Tensor {
			return torch.Cat(0, []torch.Tensor{z.Reshape(-1), vec(1, 2, 3)})
		}),
		"a value that does not fit": observe(func(z torch.Tensor) torch.Tensor { return z.Reshape(-1) }),
		"parameters that do not fit": outside(func(c *ppl.Ctx, z torch.Tensor) {
			c.Plate("rows", 0, func(c *ppl.Ctx) {
				c.Observe("y", dist.Normal(z.Reshape(-1), vec(1, 1, 1, 1)), c.Data("y"))
			})
		}),
	} {
		_, err := ppl.Compile(m, batch)
		require.ErrorContains(t, err, `site "z": it is a discrete variable that is summed out: its value has all of its 2 `+
			`values at once, in dimension -2, and the shape [2 1]`, name)
		require.ErrorContains(t, err, "What failed: ", name)
		require.ErrorContains(t, err, "enumerate_refuse_test.go:", name)
	}
	// What it says to write compiles.
	_, err := ppl.Compile(observe(func(z torch.Tensor) torch.Tensor { return x.Mul(table.Take(z)).Sum(-1) }), batch)
	require.NoError(t, err)
}
