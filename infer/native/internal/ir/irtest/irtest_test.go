package irtest

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Cases and random plans are sound, ir.Machine runs them, and what should be a number is one.
func TestCasesAreSound(t *testing.T) {
	cases := append(Cases(), Divergent())
	for seed := range uint64(300) {
		cases = append(cases, Random(seed))
	}
	for _, c := range cases {
		require.NoError(t, c.Plan.Check(), c.Name)
		r, err := Reference(c)
		require.NoError(t, err, c.Name)
		require.NoError(t, Differ(r, r, 0), c.Name)
	}
	for _, c := range []Case{EightSchools(), Logistic(100, 3), LogLinear(50)} {
		gradient(t, c)
	}
}

// gradient compares with central differences, whose error is of the order of 1e-6² times third derivatives of at most
// some hundred, and of rounding, 1e-16 · 1e3 / 1e-6.
func gradient(t *testing.T, c Case) {
	const step = 1e-6
	want, err := Reference(c)
	require.NoError(t, err)
	for i, x := range c.X {
		var side [2]float64
		for k, sign := range []float64{-1, 1} {
			c.X[i] = x + sign*step
			r, err := Reference(c)
			require.NoError(t, err)
			side[k] = r.Value
		}
		c.X[i] = x
		assert.InDelta(t, (side[1]-side[0])/(2*step), want.Grad[i], 1e-5, "%s %d", c.Name, i)
	}
}

func TestDifferSees(t *testing.T) {
	a := Result{Value: 1, Grad: []float64{2}, Aux: [][]float64{{3}}}
	for _, b := range []Result{{Value: 1.1, Grad: a.Grad, Aux: a.Aux}, {Value: 1, Grad: []float64{math.NaN()}, Aux: a.Aux},
		{Value: 1, Grad: a.Grad, Aux: [][]float64{{math.Inf(1)}}}} {
		assert.Error(t, Differ(a, b, 1e-12))
		assert.Error(t, Differ(b, a, 1e-12))
	}
}
