package plot_test

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/diag/plot"
	"github.com/kelvin-ppl/kelvin/draws"
)

// Bands over numbers are areas with lines, those over levels points with bars; names are in the legend.
func TestBands(t *testing.T) {
	band := func(name string, x ...float64) plot.Band {
		b := plot.Band{Name: name, X: x}
		for _, v := range x {
			b.Y, b.Low, b.High = append(b.Y, v*v), append(b.Low, v*v-1), append(b.High, v*v+2)
		}
		return b
	}
	picture := func(levels []string, bands ...plot.Band) string {
		var b bytes.Buffer
		require.NoError(t, plot.Bands(&b, bands, levels, "dose", "mean", plot.Options{Format: "svg"}))
		return b.String()
	}
	areas := func(text string) int { return strings.Count(text, "fill-opacity") }
	one := picture(nil, band("", 0, 1, 2))
	require.Equal(t, 1, areas(one))
	for _, label := range []string{">dose<", ">mean<"} {
		require.Contains(t, one, label)
	}
	two := picture(nil, band("drug", 0, 1, 2), band("none", 0, 2))
	require.Equal(t, 2, areas(two))
	require.Contains(t, two, ">drug<")
	require.Contains(t, two, ">none<")
	points := picture([]string{"low", "high"}, band("a", 0, 1), band("b", 0, 1))
	require.Zero(t, areas(points))
	require.Contains(t, points, ">low<")
	require.Contains(t, points, ">high<")
}

// What cannot be drawn is an error.
func TestBandsWrong(t *testing.T) {
	for _, bands := range [][]plot.Band{
		nil, {{}}, {{X: []float64{1}, Y: []float64{1}, Low: []float64{1}}},
		{{X: []float64{1}, Y: []float64{math.NaN()}, Low: []float64{1}, High: []float64{1}}},
	} {
		require.ErrorIs(t, plot.Bands(&bytes.Buffer{}, bands, nil, "", "", plot.Options{}), draws.ErrRange)
	}
	require.ErrorIs(t, plot.Bands(nil, nil, nil, "", "", plot.Options{}), draws.ErrRange)
}
