package ppl_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

func logSumExp(x []float64) float64 {
	top := math.Inf(-1)
	for _, v := range x {
		top = max(top, v)
	}
	sum := 0.0
	for _, v := range x {
		sum += math.Exp(v - top)
	}
	return top + math.Log(sum)
}

// bit is log p of a Bernoulli variable.
func bit(x int, p float64) float64 {
	if x == 1 {
		return math.Log(p)
	}
	return math.Log(1 - p)
}

// assignments calls f with every value of n variables of the given sizes.
func assignments(sizes []int, f func(z []int)) {
	z := make([]int, len(sizes))
	for {
		f(z)
		k := 0
		for ; k < len(z); k++ {
			if z[k]++; z[k] < sizes[k] {
				break
			}
			z[k] = 0
		}
		if k == len(z) {
			return
		}
	}
}

// requireBrute compares a program with two real latent variables, a and b, with a sum over all values of its discrete
// variables: of the density, and of its gradient by the differences of that.
func requireBrute(t *testing.T, m ppl.Model, batch infer.Batch, brute func(a, b float64) float64) {
	t.Helper()
	p, at := compiled(t, m, batch)
	for _, x := range [][]float64{{0.3, -0.8}, {-1.1, 0.6}} {
		require.InDelta(t, brute(x[0], x[1]), at(batch, x...), 1e-10)
		_, grad := evaluate(t, p, whole(p), batch, x...)
		const h = 1e-4
		for i := range x {
			d := func(k float64) float64 {
				y := append([]float64{}, x...)
				y[i] += k * h
				return brute(y[0], y[1])
			}
			// Differences of fourth order: off by h⁴ times a fifth derivative over 30, and by rounding, 1e-13/h.
			require.InDelta(t, (8*(d(1)-d(-1))-(d(2)-d(-2)))/(12*h), grad[i], 1e-8)
		}
	}
}

// A model with discrete variables outside and inside of three plates, each of which depends on those outside of it, has
// the density of the sum over all 2¹⁵ values.
func TestEnumerateThreePlates(t *testing.T) {
	y := uneven(8, 3)
	m := func(c *ppl.Ctx) {
		a, b := c.Sample("a", dist.Normal(0, 1)), c.Sample("b", dist.Normal(0, 1))
		u := c.Sample("u", dist.Bernoulli(0.4))
		c.Plate("i", 2, func(c *ppl.Ctx) {
			v := c.Sample("v", dist.BernoulliLogits(a.Mul(u).Add(0.5)))
			c.Plate("j", 2, func(c *ppl.Ctx) {
				w := c.Sample("w", dist.Bernoulli(v.Mul(0.4).Add(0.3)))
				c.Plate("k", 2, func(c *ppl.Ctx) {
					x := c.Sample("x", dist.BernoulliLogits(b.Mul(w).Add(u.Mul(0.3)).Sub(0.2)))
					c.Observe("y", dist.Normal(x.Add(a.Mul(w)), 1), c.Data("y"))
				})
			})
		})
	}
	sizes := make([]int, 15)
	for i := range sizes {
		sizes[i] = 2
	}
	requireBrute(t, m, infer.Batch{"y": torch.New(y, 2, 2, 2)}, func(a, b float64) float64 {
		var all []float64
		assignments(sizes, func(z []int) {
			u, v, w, x := z[0], z[1:3], z[3:7], z[7:15]
			lp := bit(u, 0.4)
			for i := range 2 {
				lp += bit(v[i], logistic(a*float64(u)+0.5))
				for j := range 2 {
					w := w[2*j+i]
					lp += bit(w, 0.3+0.4*float64(v[i]))
					for k := range 2 {
						x := x[4*k+2*j+i]
						lp += bit(x, logistic(b*float64(w)+0.3*float64(u)-0.2))
						lp += normal(y[4*k+2*j+i], float64(x)+a*float64(w), 1)
					}
				}
			}
			all = append(all, lp)
		})
		return logSumExp(all) + normal(a, 0, 1) + normal(b, 0, 1)
	})
}

// factorial is a hidden Markov model with two chains, of 2 and 3 states, that are seen together.
func factorial(n int) ppl.Model {
	return func(c *ppl.Ctx) {
		a, b := c.Sample("a", dist.Normal(0, 1)), c.Sample("b", dist.Normal(0, 1))
		rows := matrix(3, 3, 0.7, 0.2, 0.1, 0, 0.6, 0.4, 0.5, 0.25, 0.25)
		z, w := torch.Of(0), torch.Of(0)
		c.Markov(n, func(c *ppl.Ctx, t int) {
			z = c.Sample("z", dist.BernoulliLogits(a.Mul(z).Sub(0.4)))
			if t == 0 {
				w = c.Sample("w", dist.Categorical(vec(0.2, 0.3, 0.5)))
			} else {
				w = c.Sample("w", dist.Categorical(rows.Take(w)))
			}
			c.Observe("y", dist.Normal(z.Mul(b).Add(w), 0.7), c.Data("y").At(t))
		})
	}
}

// weight is the log density of one joint value of the chains, without the priors of a and b.
func weight(y []float64, a, b float64, z []int) float64 {
	rows := [][]float64{{0.7, 0.2, 0.1}, {0, 0.6, 0.4}, {0.5, 0.25, 0.25}}
	lp := 0.0
	for t := range y {
		before := 0
		if t > 0 {
			before = z[2*t-2]
		}
		now, w := z[2*t], z[2*t+1]
		lp += bit(now, logistic(a*float64(before)-0.4)) + normal(y[t], float64(now)*b+float64(w), 0.7)
		if t == 0 {
			lp += math.Log([]float64{0.2, 0.3, 0.5}[w])
		} else {
			lp += math.Log(rows[z[2*t-1]][w])
		}
	}
	return lp
}

// A factorial hidden Markov model has the density of the sum over all 6⁵ paths, of which some are impossible.
func TestEnumerateFactorialChain(t *testing.T) {
	y := uneven(5, 4)
	requireBrute(t, factorial(5), infer.Batch{"y": vec(y...)}, func(a, b float64) float64 {
		var all []float64
		assignments([]int{2, 3, 2, 3, 2, 3, 2, 3, 2, 3}, func(z []int) { all = append(all, weight(y, a, b, z)) })
		return logSumExp(all) + normal(a, 0, 1) + normal(b, 0, 1)
	})
}

// at are n times the same draw of a and b.
func twice(t *testing.T, n int, a, b float64) *draws.Draws {
	t.Helper()
	d, err := draws.New([]draws.Site{{Name: "a", Size: 1}, {Name: "b", Offset: 1, Size: 1}}, nil, 1)
	require.NoError(t, err)
	for range n {
		require.NoError(t, d.Append([]float64{a, b}, nil))
	}
	return d
}

// The marginals and the mode of the discrete variables are those of the sum over all paths. The frequencies of joint
// draws are within four standard errors of the probabilities.
func TestInferDiscrete(t *testing.T) {
	const n, a, b = 3, 0.7, -1.2
	y := uneven(n, 6)
	p, err := ppl.Compile(factorial(n), infer.Batch{"y": vec(y...)})
	require.NoError(t, err)
	sizes := []int{2, 3, 2, 3, 2, 3}
	names := []string{"z[0]", "w[0]", "z[1]", "w[1]", "z[2]", "w[2]"}
	var paths [][]int
	var logs []float64
	assignments(sizes, func(z []int) {
		paths, logs = append(paths, append([]int{}, z...)), append(logs, weight(y, a, b, z))
	})
	total := logSumExp(logs)
	best := 0
	marginal := make([][]float64, len(sizes))
	for k, size := range sizes {
		marginal[k] = make([]float64, size)
	}
	for i, z := range paths {
		if logs[i] > logs[best] {
			best = i
		}
		for k := range z {
			marginal[k][z[k]] += math.Exp(logs[i] - total)
		}
	}
	q := ppl.InferDiscrete{Program: p, Seed: 3}
	one := twice(t, 1, a, b)
	have, err := q.Marginals(one)
	require.NoError(t, err)
	mode, err := q.Mode(one)
	require.NoError(t, err)
	for k, name := range names {
		assert.InDeltaSlice(t, marginal[k], first(t, have, name), 1e-12, name)
		assert.Equal(t, []float64{float64(paths[best][k])}, first(t, mode, name), name)
	}

	const many = 2000
	drawn, err := q.Sample(twice(t, many, a, b))
	require.NoError(t, err)
	counts := map[[6]int]float64{}
	for i := range many {
		var path [6]int
		for k, name := range names {
			x, err := drawn.Values(name)
			require.NoError(t, err)
			path[k] = int(x[0][i][0])
		}
		counts[path]++
	}
	for i, z := range paths {
		prob := math.Exp(logs[i] - total)
		assert.InDelta(t, prob, counts[[6]int(z)]/many, 4*math.Sqrt(prob*(1-prob)/many)+1.0/many, "%v", z)
	}
}

// Draws that are evaluated together are as those that are evaluated alone.
func TestInferDiscreteManyDraws(t *testing.T) {
	const n, many = 3, 9
	p, err := ppl.Compile(factorial(n), infer.Batch{"y": vec(uneven(n, 6)...)})
	require.NoError(t, err)
	posterior, err := draws.New([]draws.Site{{Name: "a", Size: 1}, {Name: "b", Offset: 1, Size: 1}}, nil, 2)
	require.NoError(t, err)
	for i := range many {
		x := 0.3 * float64(i)
		require.NoError(t, posterior.AppendChain(i%2, []float64{1 - x, x - 1.5}, nil))
	}
	q := ppl.InferDiscrete{Program: p}
	type method = func(*draws.Draws) (*draws.Draws, error)
	for name, infer := range map[string]method{"marginals": q.Marginals, "mode": q.Mode} {
		all, err := infer(posterior)
		require.NoError(t, err)
		for chain := range 2 {
			one, err := posterior.Chain(chain)
			require.NoError(t, err)
			require.Equal(t, one.Len(0), all.Len(chain))
			for i := range one.Len(0) {
				single, err := one.Slice(i, i+1)
				require.NoError(t, err)
				want, err := infer(single)
				require.NoError(t, err)
				assert.InDeltaSlice(t, want.Row(0, 0), all.Row(chain, i), 1e-12, "%s, draw %d of chain %d", name, i, chain)
			}
		}
	}
}

func first(t *testing.T, d *draws.Draws, name string) []float64 {
	t.Helper()
	x, err := d.Values(name)
	require.NoError(t, err)
	return x[0][0]
}

// The variables of a mixture have the probabilities of Bayes' rule, one for each number.
func TestInferDiscretePlate(t *testing.T) {
	y := uneven(7, 8)
	p, err := ppl.Compile(func(c *ppl.Ctx) {
		a, b := c.Sample("a", dist.Normal(0, 1)), c.Sample("b", dist.Normal(0, 1))
		c.Plate("data", 0, func(c *ppl.Ctx) {
			z := c.Sample("z", dist.Binomial(2, 0.3))
			c.Observe("y", dist.Normal(a.Add(b.Mul(z)), 1), c.Data("y"))
		})
	}, infer.Batch{"y": vec(y...)})
	require.NoError(t, err)
	have, err := ppl.InferDiscrete{Program: p}.Marginals(twice(t, 1, 0.4, 1.1))
	require.NoError(t, err)
	x := first(t, have, "z")
	require.Len(t, x, 21)
	for i, v := range y {
		var w [3]float64
		sum := 0.0
		for k, prior := range []float64{0.49, 0.42, 0.09} {
			w[k] = prior * math.Exp(normal(v, 0.4+1.1*float64(k), 1))
			sum += w[k]
		}
		for k := range w {
			assert.InDelta(t, w[k]/sum, x[3*i+k], 1e-12)
		}
	}
	assert.Contains(t, p.String(), "z (3 values)")
	assert.Contains(t, p.String(), "data (7)")
}

// A continuous variable whose parameters depend on a discrete one keeps its shape. Its density is the mixture's.
func TestEnumerateContinuousInside(t *testing.T) {
	requireBrute(t, func(c *ppl.Ctx) {
		z := c.Sample("z", dist.Categorical(vec(0.3, 0.7)))
		c.Sample("a", dist.Normal(vec(-1, 2).Take(z), 1))
		b := c.Sample("b", dist.Normal(0, vec(0.5, 2).Take(z)))
		c.Observe("y", dist.Normal(b, 1), 0.4)
	}, nil, func(a, b float64) float64 {
		return normal(0.4, b, 1) + logSumExp([]float64{
			math.Log(0.3) + normal(a, -1, 1) + normal(b, 0, 0.5),
			math.Log(0.7) + normal(a, 2, 1) + normal(b, 0, 2),
		})
	})
}
