package main

import (
	"image/color"
	"io"
	"math"
	"path/filepath"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/kelvin-ppl/kelvin/examples/internal/command"
)

// band is a mean function on the grid with two standard deviations below and above it.
type band struct{ low, mean, high []float64 }

// bandOf is that of functions on the grid.
func bandOf(chains [][][]float64) band {
	var flat [][]float64
	for _, chain := range chains {
		flat = append(flat, chain...)
	}
	var b band
	for i := range grid() {
		mean, sd := 0.0, spread(flat, i)
		for _, values := range flat {
			mean += values[i] / float64(len(flat))
		}
		b.low, b.mean, b.high = append(b.low, mean-2*sd), append(b.mean, mean), append(b.high, mean+2*sd)
	}
	return b
}

// limits are those of an axis with room for all bands and data, whole numbers.
func limits(bands []band, y []float64) (low, high float64) {
	for _, b := range bands {
		for i := range b.mean {
			low, high = math.Min(low, b.low[i]), math.Max(high, b.high[i])
		}
	}
	for _, v := range y {
		low, high = math.Min(low, v), math.Max(high, v)
	}
	return math.Floor(low), math.Ceil(high)
}

// pictured makes a picture of each method beside the data, all with the same axes.
func pictured(dir string, found [][][][]float64) error {
	var bands []band
	for _, chains := range found {
		bands = append(bands, bandOf(chains))
	}
	x, y := simulate(n, 1)
	low, high := limits(bands, y)
	for w, name := range []string{"5-modes.png", "5-vi.png", "5-baoa.png"} {
		p, err := figure(ways[w].name, bands[w], x, y)
		if err != nil {
			return err
		}
		p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = -2, 2, low, high
		if err := command.Picture(filepath.Join(dir, name), func(f io.Writer) error {
			picture, err := p.WriterTo(5*vg.Inch, 3*vg.Inch, "png")
			if err != nil {
				return err
			}
			_, err = picture.WriteTo(f)
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// figure is a band, the function sin 4x as a dashed line, and the data.
func figure(title string, b band, x, y []float64) (*plot.Plot, error) {
	at := grid()
	var edge, mean, truth, data plotter.XYs
	for i := range at {
		edge = append(edge, plotter.XY{X: at[i], Y: b.high[i]})
		mean = append(mean, plotter.XY{X: at[i], Y: b.mean[i]})
		truth = append(truth, plotter.XY{X: at[i], Y: math.Sin(4 * at[i])})
	}
	for i := len(at) - 1; i >= 0; i-- {
		edge = append(edge, plotter.XY{X: at[i], Y: b.low[i]})
	}
	for i := range x {
		data = append(data, plotter.XY{X: x[i], Y: y[i]})
	}
	area, err := plotter.NewPolygon(edge)
	if err != nil {
		return nil, err
	}
	middle, err := plotter.NewLine(mean)
	if err != nil {
		return nil, err
	}
	dashed, err := plotter.NewLine(truth)
	if err != nil {
		return nil, err
	}
	dots, err := plotter.NewScatter(data)
	if err != nil {
		return nil, err
	}
	blue := color.NRGBA{0, 114, 178, 255}
	area.Color, area.LineStyle.Width = color.NRGBA{0, 114, 178, 70}, 0
	middle.Color, middle.Width = blue, vg.Points(1.5)
	dashed.Color, dashed.Dashes = color.Gray{120}, []vg.Length{vg.Points(4), vg.Points(3)}
	dots.GlyphStyle = draw.GlyphStyle{Color: color.NRGBA{213, 94, 0, 255}, Radius: vg.Points(2), Shape: draw.CircleGlyph{}}
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, "x", "mean and 2 sd, data"
	p.X.Tick.Marker, p.Y.Tick.Marker = whole{}, whole{}
	p.Add(area, dashed, middle, dots)
	return p, nil
}

// whole are ticks at whole numbers.
type whole struct{}

// Ticks is that of [plot.Ticker].
func (whole) Ticks(low, high float64) (ticks []plot.Tick) {
	for v := math.Ceil(low); v <= high; v++ {
		ticks = append(ticks, plot.Tick{Value: v, Label: strconv.Itoa(int(v))})
	}
	return ticks
}
