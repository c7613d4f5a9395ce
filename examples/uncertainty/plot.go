package main

import (
	"image/color"
	"io"
	"math"
	"path/filepath"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"

	"github.com/kelvin-ppl/kelvin/examples/internal/command"
	panels "github.com/kelvin-ppl/kelvin/examples/internal/figure"
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
func figure(title string, b band, x, y []float64) (*panels.Panel, error) {
	at := grid()
	truth := make([]float64, len(at))
	for i, v := range at {
		truth[i] = math.Sin(4 * v)
	}
	p := panels.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, "x", "mean and 2 sd, data"
	p.X.Tick.Marker, p.Y.Tick.Marker = whole{}, whole{}
	p.Area(panels.Between(at, b.low, b.high), color.NRGBA{0, 114, 178, 70})
	p.Line(panels.Points(at, truth), color.Gray{120}, 1, panels.Dashes...)
	p.Line(panels.Points(at, b.mean), color.NRGBA{0, 114, 178, 255}, 1.5)
	p.Dots(panels.Points(x, y), color.NRGBA{213, 94, 0, 255}, 2)
	return p, p.Err
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
