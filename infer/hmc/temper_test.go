package hmc_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/require"
)

// At temperature T a constrained site has the law p^(1/T), whatever the map that constrains it:
//
//	Gamma(a, b)      x^((a-1)/T) e^(-bx/T): Gamma((a-1)/T + 1, b/T)
//	half-normal(s)   half-normal(s √T): mean s √(2T/π), variance T s² (1 - 2/π)
//	Dirichlet(α)     Dirichlet((α-1)/T + 1)
//
// With n data y_i ~ N(m, 1) and m ~ half-normal(1) the posterior of m is N(Σy/(n+1), T/(n+1)) cut at 0, which is so far
// away that nothing is cut.
func TestConstrainedSitesAtTemperatures(t *testing.T) {
	alpha := []float64{2, 3, 5}
	concentration := torch.New(alpha)
	y := []float64{9.5, 10.5, 10, 11, 9}
	program, err := ppl.Compile(func(c *ppl.Ctx) {
		c.Sample("gamma", dist.Gamma(3, 2))
		c.Sample("half", dist.HalfNormal(2))
		c.Sample("simplex", dist.Dirichlet(concentration))
		m := c.Sample("m", dist.HalfNormal(1))
		c.Plate("data", 5, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(m, 1), c.Data("y")) })
	}, infer.Batch{"y": torch.New(y)})
	require.NoError(t, err)
	for _, temperature := range []float64{0.25, 1, 4} {
		t.Run(fmt.Sprint(temperature), func(t *testing.T) {
			d, err := infer.Sample(ctx, program, hmc.NUTS{Temperature: infer.Constant(temperature), Pooled: true},
				infer.Options{Chains: 16, Warmup: 250, Draws: 250, Seed: 1})
			require.NoError(t, err)
			shape, rate := 2/temperature+1, 2/temperature
			matches(t, d, "gamma", 0, shape/rate, math.Sqrt(shape)/rate)
			matches(t, d, "half", 0, 2*math.Sqrt(2*temperature/math.Pi), 2*math.Sqrt(temperature*(1-2/math.Pi)))
			total := 0.
			for _, a := range alpha {
				total += (a-1)/temperature + 1
			}
			for i, a := range alpha {
				mean := ((a-1)/temperature + 1) / total
				matches(t, d, "simplex", i, mean, math.Sqrt(mean*(1-mean)/(total+1)))
			}
			matches(t, d, "m", 0, 50./6, math.Sqrt(temperature/6))
		})
	}
}

// Replica exchange of a positive parameter y = e^x with two modes: x has an equal mixture of N(-4, 1) and N(4, 1) at T
// = 1, so that p(y) = mixture(x)/y. At T the law of y is p^(1/T), so that x has the density (mixture(x)/y)^(1/T) y, in
// which the modes have the weights e^(∓4(1 - 1/T)). Swaps that took log p + log|Jacobian| for tempered together would
// not keep the equal weights at T = 1.
func TestExchangeOfConstrainedSites(t *testing.T) {
	mix := func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) { // log p, of the positive value e^x
		value, _ := twoModes(p, b)
		return value.Sub(p.Get("x")), nil
	}
	jacobian := func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
		return p.Get("x"), nil
	}
	target := infer.Target{LogPosterior: mix, LogJacobian: jacobian}
	start, err := infer.NewParams(layoutOf(t, infer.Shapes{"x": {}}), []float64{-4, -4})
	require.NoError(t, err)
	r, err := infer.Run(ctx, infer.Handwritten(target, start, nil),
		hmc.Exchange{Ladder: hmc.GeometricLadder(1, 12, 5), Every: 2},
		infer.Options{Chains: 2, Warmup: 200, Draws: 2500, Seed: 5})
	require.NoError(t, err)
	equalWeights(t, element(t, r.Draws, "x", 0), 0)
	swaps := detail(t, r).Swaps
	for pair := range 4 {
		require.Greater(t, swaps[0].Rate(pair), 0.03, "pair %d", pair)
	}
	require.Positive(t, swaps[0].RoundTrips[0]+swaps[1].RoundTrips[0])
}
