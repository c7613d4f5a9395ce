package ppl_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// uneven are n numbers without a pattern.
func uneven(n int, seed uint64) []float64 {
	rng := rand.New(rand.NewPCG(seed, 1))
	x := make([]float64, n)
	for i := range x {
		x[i] = 1.5 * rng.NormFloat64()
	}
	return x
}

// twoMixtures are one normal mixture with a discrete variable for each number, and with its likelihood written out.
func twoMixtures() (discrete, written ppl.Model) {
	make := func(likelihood func(c *ppl.Ctx, weights, loc, scale torch.Tensor)) ppl.Model {
		return func(c *ppl.Ctx) {
			weights := c.Sample("weights", dist.Dirichlet(vec(1, 2, 3)))
			loc := c.Sample("loc", dist.Normal(0, 2).Expand(3))
			scale := c.Sample("scale", dist.LogNormal(0, 0.5).Expand(3))
			c.Plate("data", 0, func(c *ppl.Ctx) { likelihood(c, weights, loc, scale) })
		}
	}
	return make(func(c *ppl.Ctx, weights, loc, scale torch.Tensor) {
			z := c.Sample("z", dist.Categorical(weights))
			c.Observe("y", dist.Normal(loc.Take(z), scale.Take(z)), c.Data("y"))
		}), make(func(c *ppl.Ctx, weights, loc, scale torch.Tensor) {
			c.Observe("y", dist.MixtureSameFamily(dist.Categorical(weights), dist.Normal(loc, scale)), c.Data("y"))
		})
}

// twoChains are one hidden Markov model with a discrete variable for each step, and with the forward algorithm.
func twoChains(n int, states int) (discrete, written ppl.Model) {
	start := func(c *ppl.Ctx) (rows, loc torch.Tensor) {
		rows = c.Sample("rows", dist.Dirichlet(torch.Zeros(states, states).Add(1.5)))
		return rows, c.Sample("loc", dist.Normal(0, 2).Expand(states))
	}
	discrete = func(c *ppl.Ctx) {
		rows, loc := start(c)
		y := c.Data("y")
		var z torch.Tensor
		c.Markov(n, func(c *ppl.Ctx, t int) {
			if t == 0 {
				z = c.Sample("z", dist.Categorical(torch.Zeros(states).Add(1)))
			} else {
				z = c.Sample("z", dist.Categorical(rows.Take(z)))
			}
			c.Observe("y", dist.Normal(loc.Take(z), 0.8), y.At(t))
		})
	}
	written = func(c *ppl.Ctx) {
		rows, loc := start(c)
		emission := dist.Normal(loc, 0.8).LogProb(c.Data("y").Unsqueeze(-1))
		log := rows.Log()
		a := emission.At(0).Sub(math.Log(float64(states)))
		for t := 1; t < n; t++ {
			a = a.Unsqueeze(-1).Add(log).LogSumExp(0).Add(emission.At(t))
		}
		c.Factor("y", a.LogSumExp(0))
	}
	return discrete, written
}

// requireEqualDensities compares two models at several points, with several chains at once, eagerly and compiled.
func requireEqualDensities(t *testing.T, one, other ppl.Model, batch infer.Batch) {
	t.Helper()
	p, err := ppl.Compile(one, batch)
	require.NoError(t, err)
	q, err := ppl.Compile(other, batch)
	require.NoError(t, err)
	require.Equal(t, q.Layout().Dim(), p.Layout().Dim())
	x := uneven(3*p.Layout().Dim(), 5)
	have, haveGrad := evaluate(t, p, whole(p), batch, x...)
	want, wantGrad := evaluate(t, q, whole(q), batch, x...)
	near := func(want, have []float64) {
		t.Helper()
		require.Len(t, have, len(want))
		for i := range want {
			// Sums of the same terms in another order: a relative 1e-10 is far above rounding, and what is asked for.
			require.InDelta(t, want[i], have[i], 1e-10*max(1, math.Abs(want[i])))
		}
	}
	near(want, have)
	near(wantGrad, haveGrad)

	start, err := p.Start(batch, 1, 1)
	require.NoError(t, err)
	f, report, err := infer.Compile(p.Target(), start, batch, native.Options{Tier: native.VM})
	require.NoError(t, err)
	require.NotNil(t, f, report.Reason)
	t.Log(report)
	d, size := p.Layout().Dim(), p.Target().N()
	for k := range want {
		grad := make([]float64, d)
		value, err := f.Eval(x[k*d:(k+1)*d], 1/size, grad)
		require.NoError(t, err)
		for i := range grad {
			grad[i] *= size
		}
		near(want[k:k+1], []float64{value * size})
		near(wantGrad[k*d:(k+1)*d], grad)
	}
}

// A mixture and a hidden Markov model with discrete variables are the models whose sums are written out.
func TestEnumerateByHand(t *testing.T) {
	discrete, written := twoMixtures()
	t.Run("mixture", func(t *testing.T) {
		requireEqualDensities(t, discrete, written, infer.Batch{"y": vec(uneven(50, 1)...)})
	})
	t.Run("minibatches", func(t *testing.T) {
		all, part := infer.Batch{"y": vec(uneven(50, 1)...)}, infer.Batch{"y": vec(uneven(10, 1)...)}
		p, at := compiled(t, discrete, all)
		_, want := compiled(t, written, all)
		x := uneven(p.Layout().Dim(), 5)
		require.InDelta(t, want(part, x...), at(part, x...), 1e-9)
	})
	t.Run("a program of a minibatch", func(t *testing.T) {
		// The mean over the minibatches of an epoch is the density of all data.
		declared := func(c *ppl.Ctx) {
			a := c.Sample("a", dist.Normal(0, 1))
			c.Plate("data", 6, func(c *ppl.Ctx) {
				z := c.Sample("z", dist.Bernoulli(0.3))
				c.Observe("y", dist.Normal(z.Mul(a), 0.7), c.Data("y"))
			}, ppl.Minibatch)
		}
		y, sum := uneven(6, 3), 0.0
		program, at := compiled(t, declared, infer.Batch{"y": vec(y[:2]...)})
		batches, err := infer.Minibatches(infer.Batch{"y": vec(y...)}, infer.MinibatchOptions{Size: 2})
		require.NoError(t, err)
		_, err = infer.Sample(context.Background(), program, sgmcmc.SGLD{LR: infer.Constant(0.01)}, infer.Options{
			Chains: 1, Warmup: infer.None, Draws: 2, Batches: batches, Observer: infer.Silent})
		require.NoError(t, err)
		for i := range 3 {
			sum += at(infer.Batch{"y": vec(y[2*i : 2*i+2]...)}, 0.4) / 3
		}
		want := normal(0.4, 0, 1)
		for _, v := range y {
			want += logSumExp([]float64{math.Log(0.7) + normal(v, 0, 0.7), math.Log(0.3) + normal(v, 0.4, 0.7)})
		}
		require.InDelta(t, want, sum, 1e-12*math.Abs(want))
	})
	t.Run("a minibatch inside a sum", func(t *testing.T) {
		outside := func(c *ppl.Ctx) {
			a, z := c.Sample("a", dist.Normal(0, 1)), c.Sample("z", dist.Bernoulli(0.3))
			c.Plate("data", 6, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(z.Mul(a), 0.7), c.Data("y")) })
		}
		p, _ := compiled(t, outside, infer.Batch{"y": vec(uneven(6, 3)...)})
		gradient, err := infer.NewGradient(p.Target())
		require.NoError(t, err)
		for _, n := range []int{1, 2} {
			_, err = gradient.ValueAndGrad(must(infer.Zeros(p.Layout())), infer.Batch{"y": vec(uneven(n, 3)...)}, 1)
			require.ErrorContains(t, err, fmt.Sprintf(`plate "data", of which the batch has %d of 6`, n))
		}
	})
	chain, forward := twoChains(40, 3)
	t.Run("hidden Markov", func(t *testing.T) {
		requireEqualDensities(t, chain, forward, infer.Batch{"y": vec(uneven(40, 2)...)})
	})
}
