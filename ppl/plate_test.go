package ppl_test

import (
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/stretchr/testify/require"
)

// Two crossed plates: the log density is that of the double loop.
func TestNestedPlatesAreLoops(t *testing.T) {
	y := []float64{0.1, -2, 3, 0.4, 5, -0.6} // [2, 3]
	model := func(c *ppl.Ctx) {
		c.Plate("columns", 3, func(c *ppl.Ctx) {
			a := c.Sample("a", dist.Normal(1, 2)) // [3]
			c.Plate("rows", 2, func(c *ppl.Ctx) {
				b := c.Sample("b", dist.Normal(a, 0.5)) // [2, 3]
				c.Observe("y", dist.Normal(b, 1.5), c.Data("y"))
			})
		})
	}
	batch := infer.Batch{"y": matrix(2, 3, y...)}
	p, f := compiled(t, model, batch)
	require.Equal(t, "a[3] b[2 3]", p.Layout().String())
	require.Equal(t, []string{"columns"}, p.Dims("a"))
	require.Equal(t, []string{"rows", "columns"}, p.Dims("b"))
	require.EqualValues(t, 6, p.Data())
	a, b := []float64{0.3, -1, 2}, []float64{1, 2, 3, -1, -2, -3}
	want := sumNormal(a, 1, 2)
	for i := range 2 {
		for j := range 3 {
			want += normal(b[3*i+j], a[j], 0.5) + normal(y[3*i+j], b[3*i+j], 1.5)
		}
	}
	require.InDelta(t, want, f(batch, append(a, b...)...), 1e-12)
}

// Dim puts a plate where it is told, whatever the order.
func TestPlateDim(t *testing.T) {
	model := func(c *ppl.Ctx) {
		c.Plate("rows", 2, func(c *ppl.Ctx) {
			a := c.Sample("a", dist.Normal(0, 1)) // [2, 1]
			c.Plate("columns", 3, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(a, 1), c.Data("y")) })
		}, ppl.Dim(-2))
	}
	y := []float64{1, 2, 3, 4, 5, 6}
	p, f := compiled(t, model, infer.Batch{"y": matrix(2, 3, y...)})
	require.Equal(t, "a[2 1]", p.Layout().String())
	require.InDelta(t, sumNormal([]float64{0.5, -1}, 0, 1)+sumNormal(y[:3], 0.5, 1)+sumNormal(y[3:], -1, 1),
		f(infer.Batch{"y": matrix(2, 3, y...)}, 0.5, -1), 1e-12)
}

// A minibatch of n counts size/n times: also one of a single datum, one that comes by Condition, and one whose likelihood is a
// factor; a factor that is the same for all counts size times.
func TestMinibatchScale(t *testing.T) {
	const size = 12
	prior := normal(0.7, 0, 1)
	observe := func(c *ppl.Ctx) {
		mu := c.Sample("mu", dist.Normal(0, 1))
		c.Plate("data", size, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(mu, 0.5), c.Data("y")) })
	}
	factor := func(c *ppl.Ctx) {
		mu := c.Sample("mu", dist.Normal(0, 1))
		c.Plate("data", size, func(c *ppl.Ctx) {
			c.Factor("y", dist.Normal(mu, 0.5).LogProb(c.Data("y")))
			c.Factor("all", mu)
		})
	}
	whole := infer.Batch{"y": vec(make([]float64, size)...)}
	for _, y := range [][]float64{{1}, {1, 2}, {1, 2, 3, -4, 5}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}} {
		likelihood := sumNormal(y, 0.7, 0.5) * size / float64(len(y))
		batch := infer.Batch{"y": vec(y...)}
		_, g := compiled(t, observe, whole)
		require.InEpsilon(t, prior+likelihood, g(batch, 0.7), 1e-13, "observed %v", y)
		p, f := compiled(t, factor, whole)
		require.EqualValues(t, size, p.Data())
		require.InEpsilon(t, prior+likelihood+size*0.7, f(batch, 0.7), 1e-13, "factor %v", y)

		free := func(c *ppl.Ctx) {
			mu := c.Sample("mu", dist.Normal(0, 1))
			c.Plate("data", size, func(c *ppl.Ctx) { c.Sample("y", dist.Normal(mu, 0.5)) })
		}
		_, f = compiled(t, ppl.Condition(free, ppl.Values{"y": vec(y...)}), nil)
		require.InEpsilon(t, prior+likelihood, f(nil, 0.7), 1e-13, "conditioned %v", y)
	}
}

// Nested plates are scaled each by itself.
func TestNestedMinibatchScale(t *testing.T) {
	model := func(c *ppl.Ctx) {
		mu := c.Sample("mu", dist.Normal(0, 1))
		c.Plate("columns", 6, func(c *ppl.Ctx) {
			c.Plate("rows", 10, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(mu, 1), c.Data("y")) })
		})
	}
	y := []float64{0.1, -2, 3, 0.4, 5, -0.6} // 2 of 10 rows, 3 of 6 columns
	batch := infer.Batch{"y": matrix(2, 3, y...)}
	p, f := compiled(t, model, batch)
	require.EqualValues(t, 60, p.Data())
	require.InDelta(t, normal(0.7, 0, 1)+sumNormal(y, 0.7, 1)*10, f(batch, 0.7), 1e-11)
	mean, _ := evaluate(t, p, p.MeanLogPosterior(), batch, 0.7)
	require.InDelta(t, f(batch, 0.7)/60, mean[0], 1e-13)
}

// The short sums that a compiled model uses, with what they keep from the data, follow the data: when a batch comes again, when
// another comes, and when one is changed in place.
func TestKeptDataAreNotStale(t *testing.T) {
	model := func(c *ppl.Ctx) {
		a := c.Sample("a", dist.Normal(0, 1))
		c.Plate("data", 6, func(c *ppl.Ctx) {
			c.Observe("k", dist.PoissonLog(a), c.Data("k"))
			c.Observe("y", dist.Normal(a, c.Data("s")), c.Data("y"))
		})
	}
	want := func(a float64, k, y, s []float64) float64 {
		v := 0.0
		for i := range k {
			lg, _ := math.Lgamma(k[i] + 1)
			v += k[i]*a - math.Exp(a) - lg + normal(y[i], a, s[i])
		}
		return normal(a, 0, 1) + v*6/float64(len(k))
	}
	k, y, s := []float64{3, 0, 7}, []float64{0.1, 0.2, -0.3}, []float64{1, 2, 3}
	one := infer.Batch{"k": vec(k...), "y": vec(y...), "s": vec(s...)}
	_, f := compiled(t, model, one)
	k2, y2, s2 := []float64{1200, 5}, []float64{-1, 1}, []float64{0.5, 0.1}
	two := infer.Batch{"k": vec(k2...), "y": vec(y2...), "s": vec(s2...)}
	for range 4 {
		require.InEpsilon(t, want(0.3, k, y, s), f(one, 0.3), 1e-12)
	}
	for range 4 {
		require.InEpsilon(t, want(0.4, k2, y2, s2), f(two, 0.4), 1e-12)
		require.InEpsilon(t, want(0.3, k, y, s), f(one, 0.3), 1e-12)
	}
	one["s"].MustMulScalar_(scalarOf(2))
	one["k"].MustAddScalar_(scalarOf(1))
	for i := range s {
		s[i] *= 2
		k[i]++
	}
	for range 4 {
		require.InEpsilon(t, want(0.3, k, y, s), f(one, 0.3), 1e-12)
	}
}
