package mcmc_test

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/mcmc"
	"github.com/kelvin-ppl/kelvin/ppl"
)

// A plain density is tempered as others are.
func TestTemperedPlain(t *testing.T) {
	program := infer.Plain(normal, []string{"a", "b"}, []float64{0, 0})
	hot, err := infer.TemperFull(program.Target(), 4)
	require.NoError(t, err)
	e, err := infer.NewEvaluator(hot, false)
	require.NoError(t, err)
	start, err := infer.NewParams(program.Layout(), []float64{0, 0})
	require.NoError(t, err)
	e, err = e.On(start, nil)
	require.NoError(t, err)
	values := make([]float64, 2)
	require.NoError(t, e.Eval([]float64{2, 2, 0, 4}, 1, values, nil))
	assert.Equal(t, []float64{-1, -2}, values)
	require.ErrorIs(t, e.Eval([]float64{2, 2}, 1, values, nil), infer.ErrConfig)
	_, err = infer.NewEvaluator(hot, true)
	require.ErrorContains(t, err, "has no gradient")
}

// A model with a term in plain Go, which comes with its gradient, is sampled too, and so is a target of functions that
// is a mean over data.
func TestTermsInGo(t *testing.T) {
	program, err := ppl.Compile(func(c *ppl.Ctx) {
		x := c.Sample("x", dist.Normal(0, 1))
		c.Density("term", func(x, grad [][]float64) float64 {
			grad[0][0] = 2 - x[0][0]
			return -(x[0][0] - 2) * (x[0][0] - 2) / 2
		}, x)
	}, nil)
	require.NoError(t, err)
	for what, m := range map[string]infer.Method{"Slice": mcmc.Slice{}, "Barker": mcmc.Barker{},
		"Elliptical": mcmc.Elliptical{}} {
		d, err := infer.Sample(context.Background(), program, m, infer.Options{Seed: 2, Draws: 500, Observer: infer.Silent})
		require.NoError(t, err, what)
		sum, square := 0.0, 0.0
		for _, row := range d.Rows() {
			sum, square = sum+row[0], square+row[0]*row[0]
		}
		n := float64(d.Total())
		assert.InDelta(t, 1, sum/n, 0.15, what)
		assert.InDelta(t, math.Sqrt(0.5), math.Sqrt(square/n-sum*sum/n/n), 0.1, what)
	}
}
