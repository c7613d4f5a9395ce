package plot

import (
	"bytes"
	"image/color"
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
		return count(img, blue)
	}
	require.InEpsilon(t, 2*blues([]float64{0, 1}), blues([]float64{0, 0.3, 0.6, 1}), 0.3)
	var b bytes.Buffer
	drawn := func(sd []float64) int {
		b.Reset()
		require.NoError(t, Curve(&b, []float64{0, 1}, []float64{2, 3}, sd, "β", "slope", Options{}))
		img, err := png.Decode(&b)
		require.NoError(t, err)
		return img.Bounds().Dx()*img.Bounds().Dy() - count(img, color.RGBA{255, 255, 255, 255})
	}
	require.Greater(t, drawn([]float64{0.5, 0}), drawn([]float64{0, 1e-9})) // pixels that are not white
	for _, bad := range [][]float64{nil, {1}, {1, math.NaN()}, {math.Inf(1), 1}} {
		require.ErrorIs(t, Curve(&b, []float64{0, 1}, bad, nil, "", "", Options{}), draws.ErrRange)
	}
	require.ErrorIs(t, Curve(nil, []float64{1}, []float64{1}, nil, "", "", Options{}), draws.ErrRange)
	require.ErrorIs(t, Curve(&b, []float64{1}, []float64{1}, nil, "", "", Options{Format: "gif"}), draws.ErrRange)
}
