package plot

import (
	"bytes"
	"image/png"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/draws"
)

// A curve has its points, and twice as many points have twice as much of their colour; bars are there where asked for.
func TestCurve(t *testing.T) {
	blues := func(x []float64) int {
		var b bytes.Buffer
		require.NoError(t, Curve(&b, x, x, nil, "β", "slope", Options{}))
		img, err := png.Decode(&b)
		require.NoError(t, err)
		require.Zero(t, count(img, grey))
		return count(img, blue)
	}
	require.InEpsilon(t, 2*blues([]float64{0, 1}), blues([]float64{0, 0.3, 0.6, 1}), 0.3)
	var b bytes.Buffer
	require.NoError(t, Curve(&b, []float64{0, 1}, []float64{2, 3}, []float64{0.5, 0}, "β", "slope", Options{}))
	img, err := png.Decode(&b)
	require.NoError(t, err)
	require.Positive(t, count(img, grey))
	for _, bad := range [][]float64{nil, {1}, {1, math.NaN()}, {math.Inf(1), 1}} {
		require.ErrorIs(t, Curve(&b, []float64{0, 1}, bad, nil, "", "", Options{}), draws.ErrRange)
	}
	require.ErrorIs(t, Curve(nil, []float64{1}, []float64{1}, nil, "", "", Options{}), draws.ErrRange)
	require.ErrorIs(t, Curve(&b, []float64{1}, []float64{1}, nil, "", "", Options{Format: "gif"}), draws.ErrRange)
}
