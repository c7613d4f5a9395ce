package data_test

import (
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/data"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each contrast is the matrix of its definition, written out; the polynomials of 3 and 4 levels are the closed forms
// (1, -2, 1)/√6 and so on, which contr.poly of R prints as decimals.
func TestContrastMatrices(t *testing.T) {
	r2, r6, r20 := math.Sqrt(2), math.Sqrt(6), math.Sqrt(20)
	for _, c := range []struct {
		contrast data.Contrast
		want     [][]float64
	}{
		{data.Treatment, [][]float64{{0, 0}, {1, 0}, {0, 1}}},
		{data.Sum, [][]float64{{1, 0}, {0, 1}, {-1, -1}}},
		{data.Helmert, [][]float64{{-1, -1, -1}, {1, -1, -1}, {0, 2, -1}, {0, 0, 3}}},
		{data.Indicator, [][]float64{{1, 0}, {0, 1}}},
		{data.Indicator, [][]float64{{1}}},
		{data.Polynomial, [][]float64{{-1 / r2}, {1 / r2}}},
		{data.Polynomial, [][]float64{{-1 / r2, 1 / r6}, {0, -2 / r6}, {1 / r2, 1 / r6}}},
		{data.Polynomial, [][]float64{
			{-3 / r20, 0.5, -1 / r20}, {-1 / r20, -0.5, 3 / r20}, {1 / r20, -0.5, -3 / r20}, {3 / r20, 0.5, 1 / r20},
		}},
	} {
		got, err := c.contrast.Matrix(len(c.want))
		require.NoError(t, err)
		for i := range c.want {
			assert.InDeltaSlice(t, c.want[i], got[i], 1e-15, "contrast %d, level %d", c.contrast, i)
		}
	}
}

// The columns of all polynomials are orthonormal, and orthogonal to the constant, to rounding: also of many levels,
// where the powers themselves are nearly dependent. The degree of a column is the number of its changes of sign.
func TestContrastPolynomialsOfManyLevels(t *testing.T) {
	const levels = 60
	m, err := data.Polynomial.Matrix(levels)
	require.NoError(t, err)
	for a := range levels - 1 {
		sum, changes := 0.0, 0
		for i := range m {
			sum += m[i][a]
			if i > 0 && (m[i][a] > 0) != (m[i-1][a] > 0) {
				changes++
			}
		}
		assert.InDelta(t, 0, sum, 1e-13)
		if a < 20 { // beyond, the values at the ends are below rounding
			assert.Equal(t, a+1, changes)
		}
		for b := range a + 1 {
			product := 0.0
			for i := range m {
				product += m[i][a] * m[i][b]
			}
			want := 0.0
			if a == b {
				want = 1
			}
			assert.InDelta(t, want, product, 1e-13)
		}
	}
}

func TestContrastErrors(t *testing.T) {
	for _, c := range []struct {
		contrast data.Contrast
		levels   int
		want     string
	}{
		{data.Treatment, 1, "a contrast of 1 levels: it needs at least 2"},
		{data.Indicator, 0, "a contrast of 0 levels: it needs at least 1"},
		{data.Sum, math.MaxInt, "more than 16777216 numbers"},
		{data.Contrast(9), 3, "contrast 9 is unknown"},
		{data.Contrast(-1), 3, "contrast -1 is unknown"},
	} {
		_, err := c.contrast.Matrix(c.levels)
		require.ErrorContains(t, err, c.want)
	}
}
