package guide_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/svi"
	"github.com/kelvin-ppl/kelvin/infer/svi/guide"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
	"github.com/kelvin-ppl/kelvin/ppl"
)

// banana is a normal density that is bent, of integral 1: the mean of y is a parabola of x.
func banana(c *ppl.Ctx) {
	x := c.Sample("x", dist.Normal(0, 1))
	c.Sample("y", dist.Normal(x.Square().Mul(0.7), 0.5))
}

// integral is the mean of p/q over draws of q, with its standard error: 1 where q is a density that is nowhere 0, so
// that the Jacobians are right. It is the mean of exp of the importance-weighted bound of groups.
func integral(t testing.TB, r *infer.Result, n int) (value, se float64) {
	t.Helper()
	const groups = 60
	var all [groups]float64
	for i := range all {
		bound, err := r.State.(svi.State).Bound(svi.IWAE{}, nil, n, uint64(1000+i))
		require.NoError(t, err)
		all[i] = math.Exp(bound[0])
		value += all[i] / groups
	}
	for _, v := range all {
		se += (v - value) * (v - value)
	}
	return value, math.Sqrt(se / (groups - 1) / groups)
}

// After a few updates a flow is a distribution that integrates to 1, in any number of dimensions and of layers, on any
// support.
func TestFlowsAreDensities(t *testing.T) {
	one := func(c *ppl.Ctx) { c.Sample("b", dist.LogNormal(0.3, 0.5)) }
	three := func(c *ppl.Ctx) {
		c.Sample("a", dist.Normal(0.4, 0.8))
		c.Plate("two", 2, func(c *ppl.Ctx) { c.Sample("b", dist.LogNormal(0.3, 0.5)) })
	}
	for _, c := range []struct {
		what  string
		model ppl.Model
		guide builder
	}{
		{"IAF of 1", one, guide.IAF{InitScale: 1}}, {"IAF of 3", three, guide.IAF{InitScale: 1, Layers: 3, Hidden: 5}},
		{"Spline of 1", one, guide.Spline{InitScale: 1}}, {"Spline of 3", three, guide.Spline{InitScale: 1, Layers: 3}},
		{"Spline of one piece", three, guide.Spline{InitScale: 1, Bins: 1}},
		{"Structured", three, guide.Structured{InitScale: 1, Dense: []string{"b"},
			Depends: map[string][]string{"b": {"a"}}}},
	} {
		t.Run(c.what, func(t *testing.T) {
			r, _, _ := fitted(t, c.model, c.guide, 1e-3, 20, infer.Options{Draws: infer.None})
			value, se := integral(t, r, 500)
			require.InDelta(t, 1, value, 4*se, "standard error %g", se)
			require.Less(t, se, 0.1)
		})
	}
}

// Structured has the correlations that it is asked for: y given x, and the two elements of z with each other.
func TestStructured(t *testing.T) {
	model := func(c *ppl.Ctx) {
		x := c.Sample("x", dist.Normal(0, 1))
		c.Sample("y", dist.LogNormal(x.Mul(0.8), 0.6))
		c.Sample("z", dist.MultivariateNormal(0, infertest.Vector([]float64{1, 0.8, 0.8, 1}, 2, 2)))
	}
	loss := -0.5 * math.Log(1-0.64) // of independent normals, for a correlation of 0.8
	for _, c := range []struct {
		guide guide.Structured
		want  float64
	}{
		{guide.Structured{Depends: map[string][]string{"y": {"x"}}, Dense: []string{"z"}}, 0},
		{guide.Structured{Depends: map[string][]string{"y": {"x"}}}, loss},
		{guide.Structured{}, 2 * loss},
	} {
		_, nelbo, se := fitted(t, model, c.guide, 0.1, 800, infer.Options{Draws: infer.None})
		require.InDelta(t, c.want, nelbo, 5e-3+4*se)
	}
	// A point follows the mean of what it depends on.
	r, _, _ := fitted(t, func(c *ppl.Ctx) {
		x := c.Sample("x", dist.Normal(0, 1))
		c.Sample("y", dist.Normal(x.Mul(3), 0.1))
	}, guide.Structured{Delta: []string{"y"}, Depends: map[string][]string{"y": {"x"}}}, 0.1, 800,
		infer.Options{Draws: 50})
	xs, ys := must(r.Draws.Values("x"))[0], must(r.Draws.Values("y"))[0]
	for i := range xs {
		require.InDelta(t, 3*xs[i][0], ys[i][0], 0.05*(1+math.Abs(xs[i][0])))
	}
}

// Of a normal posterior the Laplace approximation is the posterior; of a gamma variable it is that of its logarithm:
// with shape 5 and rate 2 the mode is log 2.5, and the variance 1/5.
func TestLaplace(t *testing.T) {
	model := func(c *ppl.Ctx) {
		b := c.Sample("b", dist.Normal(1, 2))
		c.Sample("g", dist.Gamma(5, 2))
		c.Sample("a", dist.Normal(b.Mul(0.8), 0.6))
	}
	q := must(guide.Laplace{}.Build(model, nil))
	trace := must(ppl.TraceModel(q, nil, 1))
	infertest.Within(t, []float64{1, math.Log(2.5), 0.8}, infertest.Values(trace.Sites["guide.loc"].Value.T()), 1e-6,
		"mode")
	l := infertest.Values(trace.Sites["guide.scale_tril"].Value.T())
	infertest.Within(t, []float64{2, 0, 0, 0, math.Sqrt(0.2), 0, 1.6, 0, 0.6}, l, 1e-6, "factor")
	param := func(c *ppl.Ctx) { c.Sample("x", dist.Normal(c.Param("m", 0, dist.Normal(0, 1).Support()), 1)) }
	_, err := guide.Laplace{}.Build(param, nil)
	require.ErrorContains(t, err, `"m" is a Param`)
	ridge := func(c *ppl.Ctx) { c.Factor("f", c.Sample("x", dist.Normal(0, 1)).Square().Mul(0.5)) }
	_, err = guide.Laplace{}.Build(ridge, nil)
	require.ErrorContains(t, err, "not positive definite")
}

func TestMistakesOfFlows(t *testing.T) {
	for word, g := range map[string]builder{
		"Layers is -1":              guide.IAF{Layers: -1},
		"Hidden is -2":              guide.Spline{Hidden: -2},
		"Bins is 1000":              guide.Spline{Bins: 1000},
		"Bound is -1":               guide.Spline{Bound: -1},
		"Iterations is -1":          guide.Laplace{Iterations: -1},
		`Dense is "q"`:              guide.Structured{Dense: []string{"q"}},
		`Delta is "x"`:              guide.Structured{Dense: []string{"x"}, Delta: []string{"x"}},
		`Depends is "q"`:            guide.Structured{Depends: map[string][]string{"y": {"q"}}},
		`Depends is "x" on "y"`:     guide.Structured{Depends: map[string][]string{"x": {"y"}}},
		`InitScale is -1`:           guide.Structured{InitScale: -1},
		`guide.IAF: InitScale is -`: guide.IAF{InitScale: -1},
	} {
		_, err := g.Build(banana, nil)
		require.ErrorContains(t, err, word)
	}
}
