package ppl_test

import (
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
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

// A minibatch of n counts size/n times: also one of a single datum, one that comes by Condition, and one whose
// likelihood is a factor; a factor that is the same for all counts size times.
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
			c.Plate("data", size, func(c *ppl.Ctx) { c.Sample("y", dist.Normal(mu, 0.5)) }, ppl.Minibatch)
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
			c.Plate("rows", 10, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(mu, 1), c.Data("y")) }, ppl.Minibatch)
		}, ppl.Minibatch)
	}
	y := []float64{0.1, -2, 3, 0.4, 5, -0.6} // 2 of 10 rows, 3 of 6 columns
	batch := infer.Batch{"y": matrix(2, 3, y...)}
	p, f := compiled(t, model, batch)
	require.EqualValues(t, 60, p.Data())
	require.InDelta(t, normal(0.7, 0, 1)+sumNormal(y, 0.7, 1)*10, f(batch, 0.7), 1e-11)
	mean, _ := evaluate(t, p, p.Target().LogPosterior, batch, 0.7)
	require.InDelta(t, f(batch, 0.7)/60, mean[0], 1e-13)
}

// The short sums that a compiled model uses, with what they keep from the data, follow the data: when a batch comes
// again, when another comes, and when one is changed in place.
func TestKeptDataAreNotStale(t *testing.T) {
	model := func(c *ppl.Ctx) {
		a := c.Sample("a", dist.Normal(0, 1))
		c.Plate("data", 6, func(c *ppl.Ctx) {
			c.Observe("k", dist.PoissonLog(a), c.Data("k"))
			c.Observe("y", dist.Normal(a, c.Data("s")), c.Data("y"))
		}, ppl.Minibatch)
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
	one["s"].T().MustMulScalar_(scalarOf(2))
	one["k"].T().MustAddScalar_(scalarOf(1))
	for i := range s {
		s[i] *= 2
		k[i]++
	}
	for range 4 {
		require.InEpsilon(t, want(0.3, k, y, s), f(one, 0.3), 1e-12)
	}
}

// A dimension of the data that is no plate's would be taken for something else: it is an error that says what to do.
func TestDimensionsBelongToPlates(t *testing.T) {
	column := func(c *ppl.Ctx) { // the usual shape of a matrix product
		w := c.Sample("w", dist.Normal(0, 1).Expand(2, 1))
		c.Plate("data", 3, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(c.Data("x").MatMul(w), 1), c.Data("y")) })
	}
	square := func(c *ppl.Ctx) {
		m := c.Sample("m", dist.Normal(0, 1))
		c.Plate("data", 6, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(m, 1), c.Data("y")) })
	}
	factor := func(c *ppl.Ctx) {
		m := c.Sample("m", dist.Normal(0, 1))
		c.Plate("data", 6, func(c *ppl.Ctx) { c.Factor("y", dist.Normal(m, 1).LogProb(c.Data("y"))) })
	}
	for name, c := range map[string]struct {
		model ppl.Model
		batch infer.Batch
		words []string
	}{
		"column": {column, infer.Batch{"x": matrix(3, 2, 1, 2, 3, 4, 5, 6), "y": matrix(3, 1, 1, 2, 3)}, []string{`"y"`,
			"data", "[3 1]", "size 3 at dimension -2", "dist.Independent"}},
		"square": {square, infer.Batch{"y": matrix(6, 3, make([]float64, 18)...)}, []string{"size 6 at dimension -2"}},
		"factor": {factor, infer.Batch{"y": matrix(6, 3, make([]float64, 18)...)}, []string{"size 6 at dimension -2"}},
		"event": {func(c *ppl.Ctx) {
			m := c.Sample("m", dist.Normal(0, 1).Expand(2))
			c.Observe("y", dist.MultivariateNormal(m, matrix(2, 2, 1, 0, 0, 1)), c.Data("y"))
		}, infer.Batch{"y": matrix(2, 1, 1, 2)}, []string{"event shape [2]", "[2 1]"}},
		"outer": {func(c *ppl.Ctx) {
			m := c.Sample("m", dist.Normal(0, 1))
			c.Observe("y", dist.Normal(c.Data("x").Mul(m), 1), c.Data("y"))
		}, infer.Batch{"x": vec(1, 2, 3), "y": matrix(3, 1, 1, 2, 3)}, []string{"[3 1]", "[3]"}},
	} {
		_, err := ppl.Compile(c.model, c.batch)
		require.Error(t, err, name)
		for _, w := range c.words {
			require.ErrorContains(t, err, w, name)
		}
	}
	// The same as an event, or as another plate, is right.
	event := func(c *ppl.Ctx) {
		m := c.Sample("m", dist.Normal(0, 1))
		c.Plate("data", 6, func(c *ppl.Ctx) {
			c.Observe("y", dist.Independent(dist.Normal(m, 1).Expand(1, 3), 1), c.Data("y"))
		}, ppl.Minibatch)
	}
	y := []float64{1, 2, 3, 4, 5, 6}
	batch := infer.Batch{"y": matrix(2, 3, y...)} // 2 of 6
	_, f := compiled(t, event, batch)
	require.InDelta(t, normal(0.5, 0, 1)+3*sumNormal(y, 0.5, 1), f(batch, 0.5), 1e-12)
}

// A minibatch, be it of one, in a plate with latent variables is refused, whatever its shape.
func TestMinibatchAndLocalVariables(t *testing.T) {
	model := func(c *ppl.Ctx) {
		c.Plate("p", 4, func(c *ppl.Ctx) {
			z := c.Sample("z", dist.Normal(0, 1))
			c.Observe("y", dist.Normal(z, 1), c.Data("y"))
		})
	}
	p, _ := compiled(t, model, infer.Batch{"y": vec(1, 2, 3, 4)})
	g, err := infer.NewGradient(infer.Sum(whole(p), 1))
	require.NoError(t, err)
	point, err := infer.Zeros(p.Layout())
	require.NoError(t, err)
	for _, y := range [][]float64{{1}, {1, 2}, {1, 2, 3}} {
		_, err := g.ValueAndGrad(point, infer.Batch{"y": vec(y...)}, 0)
		require.ErrorContains(t, err, "takes all of its data", "%v", y)
	}
	// A number for all is one.
	_, err = g.ValueAndGrad(point, infer.Batch{"y": scalar(1)}, 0)
	require.NoError(t, err)
}

// Matrices in plates, several chains at once.
func TestCholeskyFactorsInPlates(t *testing.T) {
	model := func(c *ppl.Ctx) {
		c.Plate("groups", 2, func(c *ppl.Ctx) {
			l := c.Sample("l", dist.LKJCholesky(3, 1.5))
			c.Sample("w", dist.Dirichlet(vec(1, 2, 3)))
			c.Factor("f", torch.Of(l.T().MustSelect(-1, 0, false).MustSelect(-1, 1, false)).Square())
		})
	}
	p, f := compiled(t, model, nil)
	d := p.Layout().Dim()
	require.Equal(t, 2*3+2*2, d)
	x := manyPoints(3, d)
	all, grads := evaluate(t, p, whole(p), nil, x...)
	for k := range 3 {
		require.InEpsilon(t, f(nil, x[k*d:(k+1)*d]...), all[k], 1e-13)
		_, g := evaluate(t, p, whole(p), nil, x[k*d:(k+1)*d]...)
		require.InDeltaSlice(t, g, grads[k*d:(k+1)*d], 1e-11)
	}
}
