package plot

import (
	"bytes"
	"image"
	"image/color"
	"io"
	"math"
	"math/rand/v2"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/diag/check"
	"github.com/kelvin-ppl/kelvin/draws"
)

// replicates are n replicates of m normal data.
func replicates(n, m int) [][]float64 {
	rng := rand.New(rand.NewPCG(2, 3))
	out := make([][]float64, n)
	for i := range out {
		for range m {
			out[i] = append(out[i], rng.NormFloat64())
		}
	}
	return out
}

// rows are the heights at which a colour is in a column of pixels, or anywhere with a negative column.
func rows(img image.Image, c color.Color, column int) (out []int) {
	for y := range img.Bounds().Dy() {
		for x := range img.Bounds().Dx() {
			if (column < 0 || x == column) && color.RGBAModel.Convert(img.At(x, y)) == color.RGBAModel.Convert(c) {
				out = append(out, y)
			}
		}
	}
	return out
}

// Data that the replicates hold within their middle 95 % or not are counted in the title: of ten data at 0 all are in
// the middle half, and three at 9 are outside and orange.
func TestIntervals(t *testing.T) {
	y := make([]float64, 10)
	draw := func(w io.Writer, o Options) error { return Intervals(w, nil, y, replicates(400, 10), o) }
	require.Contains(t, text(t, draw), "100 % of the data in the 50 %, 100 % in the 95 %")
	require.Empty(t, rows(picture(t, draw), orange, -1))
	y[0], y[1], y[2] = 9, 9, 9
	require.Contains(t, text(t, draw), "70 % of the data in the 50 %, 70 % in the 95 %")
	require.NotEmpty(t, rows(picture(t, draw), orange, -1))
	at := func(w io.Writer, o Options) error { return Intervals(w, y, y, replicates(400, 10), o) }
	picture(t, at)
}

// The bars of data that are the only replicate hang down to 0, where the dashed line is.
func TestRootogram(t *testing.T) {
	y := []float64{0, 0, 0, 0, 1, 1, 2}
	deepest := func(y []float64, r []float64) (bars, line int) {
		img := picture(t, func(w io.Writer, o Options) error {
			return Rootogram(w, y, [][]float64{r}, o)
		})
		b := rows(img, light, -1)
		require.NotEmpty(t, b)
		longest := 0 // row of grey pixels, between colours or not; letters have few
		for y := range img.Bounds().Dy() {
			n := 0
			for x := range img.Bounds().Dx() {
				c := color.RGBAModel.Convert(img.At(x, y)).(color.RGBA)
				if c.R == c.G && c.G == c.B && c.R > 90 && c.R < 230 {
					n++
				}
			}
			if n > longest {
				longest, line = n, y
			}
		}
		return b[len(b)-1], line
	}
	bars, line := deepest(y, y)
	require.InDelta(t, line, bars, 10) // of the 480 rows
	for _, bad := range []float64{-1, 0.5, 1001} {
		require.ErrorIs(t, Rootogram(io.Discard, []float64{bad}, [][]float64{{1}}, Options{}), draws.ErrRange)
		require.ErrorIs(t, Rootogram(io.Discard, []float64{1}, [][]float64{{bad}}, Options{}), draws.ErrRange)
	}
}

// Labels are counts: whole numbers along the axis, and squares of roots at its side, below 0 with a sign.
func TestRootogramLabels(t *testing.T) {
	y, replicate := []float64{0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, []float64{0, 1, 1, 1, 1, 2, 2, 2, 3, 3}
	svg := text(t, func(w io.Writer, o Options) error {
		return Rootogram(w, y, [][]float64{replicate}, o)
	})
	var labels []string
	for _, m := range regexp.MustCompile(`(?s)<text[^>]*>([^<]*)</text>`).FindAllStringSubmatch(svg, -1) {
		labels = append(labels, m[1])
	}
	require.Equal(t, []string{"hanging rootogram", "count", "0", "1", "2", "3", "number of data, as roots", "-4", "-2",
		"-1", "0", "1", "2", "4"}, labels)
}

// The title has the probability of the statistic, and the orange line is to the right of all replicates
// where that is 0.
func TestStatistic(t *testing.T) {
	o, err := check.Statistic([]float64{5, 5}, [][]float64{{1, 0}, {2, 0}, {3, 4}},
		func(y []float64) float64 { return y[0] })
	require.NoError(t, err)
	draw := func(w io.Writer, opt Options) error { return Statistic(w, o, opt) }
	require.Contains(t, text(t, draw), "= 0.000")
	img := picture(t, draw)
	last := 0
	for x := range 480 {
		if len(rows(img, light, x)) > 10 {
			last = x
		}
	}
	for x := range last {
		require.Empty(t, rows(img, orange, x))
	}
}

// Uniform transforms are calibrated; such as are all in the middle are not, with any probability that is shown.
func TestPIT(t *testing.T) {
	even, narrow := make([]float64, 100), make([]float64, 100)
	for i := range even {
		even[i] = (float64(i) + 0.5) / 100
		narrow[i] = 0.4 + 0.2*even[i]
	}
	p := func(pit []float64) string {
		return text(t, func(w io.Writer, o Options) error { return PIT(w, pit, o) })
	}
	require.Contains(t, p(even), "p = 1.000")
	require.Contains(t, p(narrow), "p = 0.000")
	require.ErrorIs(t, PIT(io.Discard, []float64{1.5}, Options{}), draws.ErrRange)
	require.ErrorIs(t, PIT(io.Discard, nil, Options{}), draws.ErrRange)
}

// The line of the data is over those of the replicates; of a hundred replicates fifty are drawn.
func TestDensities(t *testing.T) {
	lines := func(n int) int {
		r := replicates(n, 50)
		svg := text(t, func(w io.Writer, o Options) error { return Densities(w, r[0], r, o) })
		return bytes.Count([]byte(svg), []byte("<path"))
	}
	require.InDelta(t, 40, lines(50)-lines(10), 10) // the ticks of the axes are paths too
	require.InDelta(t, lines(50), lines(100), 10)
}

func TestPredictiveErrors(t *testing.T) {
	for name, draw := range map[string]func(w io.Writer, y []float64, r [][]float64, o Options) error{
		"densities": Densities, "rootogram": Rootogram,
		"intervals": func(w io.Writer, y []float64, r [][]float64, o Options) error {
			return Intervals(w, nil, y, r, o)
		},
	} {
		good := [][]float64{{1, 2, 4}, {2, 3, 5}}
		require.NoError(t, draw(io.Discard, good[0], good, Options{}), name)
		require.ErrorIs(t, draw(io.Discard, nil, nil, Options{}), draws.ErrRange, name)
		require.ErrorIs(t, draw(io.Discard, good[0], nil, Options{}), draws.ErrRange, name)
		require.ErrorIs(t, draw(io.Discard, good[0][:2], good, Options{}), draws.ErrRange, name)
		require.ErrorIs(t, draw(io.Discard, []float64{1, 2, math.NaN()}, good, Options{}), draws.ErrRange, name)
		require.ErrorIs(t, draw(nil, good[0], good, Options{}), draws.ErrRange, name)
		require.ErrorIs(t, draw(broken{}, good[0], good, Options{}), errBroken, name)
	}
	require.ErrorIs(t, Statistic(io.Discard, nil, Options{}), draws.ErrRange)
	require.ErrorIs(t, Statistic(io.Discard, &check.Outcome{}, Options{}), draws.ErrRange)
	require.ErrorIs(t, Intervals(io.Discard, []float64{1}, []float64{1, 2}, replicates(5, 2), Options{}),
		draws.ErrRange)
}
