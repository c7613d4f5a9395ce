package ppl_test

import (
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/stat"
)

func starts(t *testing.T, m ppl.Model, how ppl.Initial, chains int, seed uint64) []float64 {
	t.Helper()
	p, _ := compiled(t, m, nil)
	point, err := p.Init(nil, how, chains, seed)
	require.NoError(t, err)
	require.Equal(t, chains > 1, point.Batched())
	x, err := point.Values()
	require.NoError(t, err)
	require.Len(t, x, chains*p.Layout().Dim())
	return x
}

// Starts from the prior have the prior's law on unconstrained space, those from the uniform law its.
func TestStartsHaveTheirLaw(t *testing.T) {
	const chains = 2000
	m := func(c *ppl.Ctx) { c.Sample("s", dist.LogNormal(0.5, 2)) }
	withinErrors(t, starts(t, m, ppl.FromPrior, chains, 3), 0.5, 2)
	for _, c := range []struct {
		how    ppl.Initial
		radius float64
	}{{ppl.FromUniform, 2}, {ppl.FromUniform.Within(0.1), 0.1}} {
		x := starts(t, m, c.how, chains, 3)
		for _, v := range x {
			require.LessOrEqual(t, math.Abs(v), c.radius)
		}
		require.InDelta(t, 0, stat.Mean(x, nil), 4*c.radius/math.Sqrt(3*chains))
		require.InDelta(t, c.radius*c.radius/3, stat.Variance(x, nil), 4*c.radius*c.radius*math.Sqrt(4./45/chains))
	}
	// The variance of the median of 15 draws of N(0, 1) is 0.1017 (Teichroew 1956).
	withinErrors(t, starts(t, m, ppl.FromMedian, 300, 3), 0.5, 2*math.Sqrt(0.1017))
}

// A chain's start depends on the seed and on its number alone.
func TestStartsDoNotDependOnOtherChains(t *testing.T) {
	four, two := starts(t, many, ppl.FromPrior, 4, 9), starts(t, many, ppl.FromPrior, 2, 9)
	require.Equal(t, four[:len(two)], two)
	require.NotEqual(t, two, starts(t, many, ppl.FromPrior, 2, 10))
}

func TestFlatPriorsStartUniformly(t *testing.T) {
	m := func(c *ppl.Ctx) {
		c.Sample("b", dist.ImproperUniform(support.Positive, []int{50}, nil))
		c.Observe("y", dist.Normal(0, 1), vec(1))
	}
	for _, v := range starts(t, m, ppl.FromPrior, 1, 1) {
		require.LessOrEqual(t, math.Abs(v), 2.0)
	}
}

func TestGivenStarts(t *testing.T) {
	given := ppl.FromValues(ppl.Values{"x": scalar(1), "y": scalar(2), "z": scalar(3)})
	require.Equal(t, []float64{1, 2, 3, 1, 2, 3}, starts(t, chain, given, 2, 1))
	p, _ := compiled(t, chain, nil)
	_, err := p.Init(nil, ppl.FromValues(ppl.Values{"x": scalar(1)}), 1, 1)
	require.ErrorContains(t, err, `"y"`)
	_, err = p.Init(nil, ppl.Initial{}, 1, 1)
	require.ErrorIs(t, err, infer.ErrConfig)
	_, err = p.Init(nil, ppl.FromPrior, 0, 1)
	require.ErrorContains(t, err, "at least 1")
}

// A start with a density of zero is drawn again; where none is found, the error names the site.
func TestStartsAreFinite(t *testing.T) {
	narrow := func(c *ppl.Ctx) { // a third of the starts have x > 0.67
		x := c.Sample("x", dist.Normal(0, 1))
		c.Factor("barrier", x.Sub(0.67).Log())
	}
	p, err := ppl.Compile(narrow, nil)
	require.NoError(t, err)
	point, err := p.Init(nil, ppl.FromPrior, 20, 1)
	require.NoError(t, err)
	x, err := point.Values()
	require.NoError(t, err)
	for _, v := range x {
		require.Greater(t, v, 0.67)
	}
	never := func(c *ppl.Ctx) {
		x := c.Sample("x", dist.Normal(0, 1))
		c.Factor("barrier", x.Abs().Neg().Sqrt())
	}
	p, err = ppl.Compile(never, nil)
	require.NoError(t, err)
	for _, how := range []ppl.Initial{ppl.FromPrior, ppl.FromUniform, ppl.FromMedian} {
		_, err = p.Init(nil, how, 2, 1)
		require.ErrorIs(t, err, infer.ErrNonFinite)
		require.ErrorContains(t, err, `"barrier"`)
		require.ErrorContains(t, err, "NaN")
	}
}

// A panic of the model that is not Kelvin's goes through; one that is comes back as an error.
func TestOnlyOwnPanicsAreErrors(t *testing.T) {
	_, err := ppl.Compile(func(c *ppl.Ctx) { torch.New([]float64{1}, 2) }, nil)
	require.Error(t, err)
	require.Panics(t, func() { _, _ = ppl.Compile(func(*ppl.Ctx) { panic("mine") }, nil) })
	_, err = ppl.Compile(nil, nil)
	require.ErrorContains(t, err, "model is nil")
}

// Cholesky factors start where they can be inverted: of 50 rows in (−2/√50, 2/√50), so that the least diagonal of a
// factor of correlations, √Π(1 − z²) over 49 partial correlations z = tanh u, is above √(1 − tanh²(2/√50))⁴⁹ = 0.14.
func TestCholeskyFactorsStartNearTheIdentity(t *testing.T) {
	p, err := ppl.Compile(func(c *ppl.Ctx) { c.Sample("l", dist.LKJCholesky(50, 1)) }, nil)
	require.NoError(t, err)
	for seed := range uint64(20) {
		start, err := p.Init(nil, ppl.FromUniform, 1, seed)
		require.NoError(t, err)
		flat, err := start.Values()
		require.NoError(t, err)
		for _, u := range flat {
			require.Less(t, math.Abs(u), 2/math.Sqrt(50))
		}
		values, err := p.Constrain(start, nil)
		require.NoError(t, err)
		l, err := torch.ToSlice[float64](values["l"])
		require.NoError(t, err)
		for i := range 50 {
			require.Greater(t, l[51*i], 0.14)
		}
	}
}
