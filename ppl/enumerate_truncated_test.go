package ppl_test

import (
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/stretchr/testify/require"
)

// Counts of N animals of which each is seen with probability p, N ~ Poisson(rate): the counts are Poisson with
// rate·p (thinning). Cut at 250, N leaves out less than 1e-14 of its mass.
func TestEnumerateTruncatedPoisson(t *testing.T) {
	y := []float64{3, 0, 5, 2}
	model := func(c *ppl.Ctx) {
		rate := c.Sample("rate", dist.LogNormal(1.5, 0.3))
		p := c.Sample("p", dist.Beta(2, 3))
		c.Plate("sites", 0, func(c *ppl.Ctx) {
			n := c.Sample("n", dist.Truncated(dist.Poisson(rate), 0, 250))
			c.Observe("y", dist.Binomial(n, p), c.Data("y"))
		})
	}
	hand := func(c *ppl.Ctx) {
		rate := c.Sample("rate", dist.LogNormal(1.5, 0.3))
		p := c.Sample("p", dist.Beta(2, 3))
		c.Plate("sites", 0, func(c *ppl.Ctx) { c.Observe("y", dist.Poisson(rate.Mul(p)), c.Data("y")) })
	}
	batch := infer.Batch{"y": vec(y...)}
	summed, err := ppl.Compile(model, batch)
	require.NoError(t, err)
	require.Contains(t, summed.String(), "n (251 values")
	closed, err := ppl.Compile(hand, batch)
	require.NoError(t, err)
	for _, x := range [][]float64{{0.3, 1.5}, {-1, 1}, {2, 2}} { // p and rate, on unconstrained space
		got, slope := evaluate(t, summed, whole(summed), batch, x...)
		want, exact := evaluate(t, closed, whole(closed), batch, x...)
		require.InDelta(t, want[0], got[0], 1e-10)
		for i := range slope {
			require.InDelta(t, exact[i], slope[i], 1e-9)
		}
	}

	// So they are with several chains at once, and compiled.
	requireEqualDensities(t, model, hand, batch)

	// A cut too low is said: P(N > 4) of a Poisson whose rate is 1, where the plan is made at rates near e^1.5.
	short, err := ppl.Compile(func(c *ppl.Ctx) {
		rate := c.Sample("rate", dist.LogNormal(0, 0.1))
		n := c.Sample("n", dist.Truncated(dist.Poisson(1), 0, 4))
		c.Observe("y", dist.Normal(n.Mul(rate), 1), 2)
	}, infer.Batch{})
	require.NoError(t, err)
	require.Contains(t, short.String(), "n (5 values, without 0.0037 of its mass at the point tried)")
	left := 1.0
	for k := range 5 {
		left -= math.Exp(-1) / math.Gamma(float64(k+1))
	}
	require.InDelta(t, 0.0037, left, 5e-5)
}
