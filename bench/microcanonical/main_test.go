package main

import (
	"bytes"
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
)

// A result that is made up: gradients and divergences are sums over its draws, and the effective draws those of the
// element with the fewest.
func TestYield(t *testing.T) {
	d := chains(t, []float64{2, 7}, 0, func(draw, _ int) bool { return draw%2 == 1 })
	gradients, ess, divergent, err := yield(&infer.Result{Draws: d, Unconstrained: d})
	require.NoError(t, err)
	require.Equal(t, []any{450.0, 50}, []any{gradients, divergent})
	require.Equal(t, diag.ESSBulk([][]float64{d.Element(0, 0), d.Element(1, 0)}), ess)
}

// The densities of the laws, by their definitions in plain Go, up to a constant: so differences of two points.
func TestLaws(t *testing.T) {
	all, err := laws()
	require.NoError(t, err)
	random := rand.New(rand.NewPCG(5, 6))
	normal := func(x, mean, variance float64) float64 {
		return -(x-mean)*(x-mean)/(2*variance) - math.Log(variance)/2
	}
	for i, definition := range []func(x []float64) float64{
		func(x []float64) float64 { // v ~ N(0, 9), y_i ~ N(0, exp v)
			sum := normal(x[0], 0, 9)
			for _, y := range x[1:] {
				sum += normal(y, 0, math.Exp(x[0]))
			}
			return sum
		},
		func(x []float64) (sum float64) {
			for _, v := range x {
				sum += normal(v, 0, 1)
			}
			return sum
		},
		func(x []float64) float64 { // a stationary random walk: x_i ~ N(0.9 x_(i-1), 0.19)
			sum := normal(x[0], 0, 1)
			for j := 1; j < len(x); j++ {
				sum += normal(x[j], 0.9*x[j-1], 0.19)
			}
			return sum
		},
	} {
		law := all[i]
		d := law.program.Layout().Dim()
		points := make([]float64, 2*d)
		for j := range points {
			points[j] = random.NormFloat64()
		}
		p, err := infer.NewParams(law.program.Layout(), points)
		require.NoError(t, err)
		g, err := infer.NewGradient(law.program.Target())
		require.NoError(t, err)
		e, err := g.ValueAndGrad(p, nil, 0)
		require.NoError(t, err)
		want := definition(points[:d]) - definition(points[d:])
		require.InDelta(t, want, e.Values[0]-e.Values[1], 1e-10*math.Abs(e.Values[0])+1e-10, law.name)

		one, err := draws.New([]draws.Site{{Name: "x", Size: 1}}, nil, 1)
		require.NoError(t, err)
		for _, x := range []float64{1, -3} { // whose mean square is 5
			require.NoError(t, one.Append([]float64{x}, nil))
		}
		far, err := law.far(one)
		require.NoError(t, err)
		variance := 1.0 // of the first coordinate
		if law.name == "funnel" {
			variance = 9
		}
		require.InDelta(t, 5/variance, far, 1e-14)
	}
}

// A flag that is wrong is an error that names it.
func TestFlags(t *testing.T) {
	require.ErrorContains(t, run(context.Background(), []string{"-seeds", "0"}, &bytes.Buffer{}), "-seeds 0")
}
