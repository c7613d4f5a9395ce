package predictive_test

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
	"math/rand/v2"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/diag/check"
	"github.com/kelvin-ppl/kelvin/diag/plot"
	"github.com/kelvin-ppl/kelvin/diag/plot/internal/canvas"
	"github.com/kelvin-ppl/kelvin/diag/plot/predictive"
	"github.com/kelvin-ppl/kelvin/draws"
)

// normal are n replicates of m normal data.
func normal(n, m int) [][]float64 {
	rng := rand.New(rand.NewPCG(2, 3))
	out := make([][]float64, n)
	for i := range out {
		for range m {
			out[i] = append(out[i], rng.NormFloat64())
		}
	}
	return out
}

func text(t *testing.T, draw func(w io.Writer, o plot.Options) error) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, draw(&b, plot.Options{Format: "svg"}))
	return b.String()
}

func picture(t *testing.T, draw func(w io.Writer, o plot.Options) error) image.Image {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, draw(&b, plot.Options{}))
	img, err := png.Decode(&b)
	require.NoError(t, err)
	return img
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
	draw := func(w io.Writer, o plot.Options) error { return predictive.Intervals(w, nil, y, normal(400, 10), o) }
	require.Contains(t, text(t, draw), "100 % of the data in the 50 %, 100 % in the 95 %")
	require.Empty(t, rows(picture(t, draw), canvas.Orange, -1))
	y[0], y[1], y[2] = 9, 9, 9
	require.Contains(t, text(t, draw), "70 % of the data in the 50 %, 70 % in the 95 %")
	require.NotEmpty(t, rows(picture(t, draw), canvas.Orange, -1))
	at := func(w io.Writer, o plot.Options) error { return predictive.Intervals(w, y, y, normal(400, 10), o) }
	picture(t, at)
}

// The bars of data that are the only replicate hang down to 0, where the dashed line is.
func TestRootogram(t *testing.T) {
	y := []float64{0, 0, 0, 0, 1, 1, 2}
	deepest := func(y []float64, r []float64) (bars, line int) {
		img := picture(t, func(w io.Writer, o plot.Options) error {
			return predictive.Rootogram(w, y, [][]float64{r}, o)
		})
		b := rows(img, canvas.Light, -1)
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
		require.ErrorIs(t, predictive.Rootogram(io.Discard, []float64{bad}, [][]float64{{1}}, plot.Options{}), draws.ErrRange)
		require.ErrorIs(t, predictive.Rootogram(io.Discard, []float64{1}, [][]float64{{bad}}, plot.Options{}), draws.ErrRange)
	}
}

// Labels are counts: whole numbers along the axis, and squares of roots at its side, below 0 with a sign.
func TestRootogramLabels(t *testing.T) {
	y, replicate := []float64{0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, []float64{0, 1, 1, 1, 1, 2, 2, 2, 3, 3}
	svg := text(t, func(w io.Writer, o plot.Options) error {
		return predictive.Rootogram(w, y, [][]float64{replicate}, o)
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
	draw := func(w io.Writer, opt plot.Options) error { return predictive.Statistic(w, o, opt) }
	require.Contains(t, text(t, draw), "= 0.000")
	img := picture(t, draw)
	last := 0
	for x := range 480 {
		if len(rows(img, canvas.Light, x)) > 10 {
			last = x
		}
	}
	for x := range last {
		require.Empty(t, rows(img, canvas.Orange, x))
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
		return text(t, func(w io.Writer, o plot.Options) error { return predictive.PIT(w, pit, o) })
	}
	require.Contains(t, p(even), "p = 1.000")
	require.Contains(t, p(narrow), "p = 0.000")
	require.ErrorIs(t, predictive.PIT(io.Discard, []float64{1.5}, plot.Options{}), draws.ErrRange)
	require.ErrorIs(t, predictive.PIT(io.Discard, nil, plot.Options{}), draws.ErrRange)
}

// The line of the data is over those of the replicates; of a hundred replicates fifty are drawn.
func TestDensities(t *testing.T) {
	lines := func(n int) int {
		r := normal(n, 50)
		svg := text(t, func(w io.Writer, o plot.Options) error { return predictive.Densities(w, r[0], r, o) })
		return bytes.Count([]byte(svg), []byte("<path"))
	}
	require.InDelta(t, 40, lines(50)-lines(10), 10) // the ticks of the axes are paths too
	require.InDelta(t, lines(50), lines(100), 10)
}

func TestErrors(t *testing.T) {
	for name, draw := range map[string]func(w io.Writer, y []float64, r [][]float64, o plot.Options) error{
		"densities": predictive.Densities, "rootogram": predictive.Rootogram,
		"intervals": func(w io.Writer, y []float64, r [][]float64, o plot.Options) error {
			return predictive.Intervals(w, nil, y, r, o)
		},
	} {
		good := [][]float64{{1, 2, 4}, {2, 3, 5}}
		require.NoError(t, draw(io.Discard, good[0], good, plot.Options{}), name)
		require.ErrorIs(t, draw(io.Discard, nil, nil, plot.Options{}), draws.ErrRange, name)
		require.ErrorIs(t, draw(io.Discard, good[0], nil, plot.Options{}), draws.ErrRange, name)
		require.ErrorIs(t, draw(io.Discard, good[0][:2], good, plot.Options{}), draws.ErrRange, name)
		require.ErrorIs(t, draw(io.Discard, []float64{1, 2, math.NaN()}, good, plot.Options{}), draws.ErrRange, name)
		require.ErrorIs(t, draw(nil, good[0], good, plot.Options{}), draws.ErrRange, name)
		require.ErrorIs(t, draw(broken{}, good[0], good, plot.Options{}), errBroken, name)
	}
	require.ErrorIs(t, predictive.Statistic(io.Discard, nil, plot.Options{}), draws.ErrRange)
	require.ErrorIs(t, predictive.Statistic(io.Discard, &check.Outcome{}, plot.Options{}), draws.ErrRange)
	require.ErrorIs(t, predictive.Intervals(io.Discard, []float64{1}, []float64{1, 2}, normal(5, 2), plot.Options{}),
		draws.ErrRange)
}

var errBroken = errors.New("broken")

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errBroken }
