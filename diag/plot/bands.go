package plot

import (
	"fmt"
	"io"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/visible"
)

// Band is a curve with an interval about it: Y over X, from Low to High.
type Band struct {
	Name            string // in the legend of several
	X, Y, Low, High []float64
}

// Bands draws curves with their intervals as areas about them: the effect of a covariate on what is expected, for
// example. With levels, the X of all bands are places in them, and each Y is a point with its interval as a line. The
// labels are those of the axes. Slices have one length, and numbers that are finite.
func Bands(w io.Writer, bands []Band, levels []string, xLabel, yLabel string, opt Options) error {
	p, err := start(w, &opt, "")
	if err != nil {
		return err
	}
	var rows [][]float64
	for _, b := range bands {
		if n := len(b.X); len(b.Y) != n || len(b.Low) != n || len(b.High) != n {
			return fmt.Errorf("diag/plot: %w: the band %q has %d, %d, %d and %d numbers", draws.ErrRange, b.Name, n, len(b.Y),
				len(b.Low), len(b.High))
		}
		rows = append(rows, b.X, b.Y, b.Low, b.High)
	}
	if err := refuse("bands", 1, rows...); err != nil {
		return err
	}
	for k, b := range bands {
		if levels == nil {
			err = addBand(p, b, k)
		} else {
			err = addBars(p, b, k, len(bands))
		}
		if err != nil {
			return err
		}
	}
	p.X.Label.Text, p.Y.Label.Text = xLabel, yLabel
	if levels != nil {
		p.X.Min, p.X.Max, p.X.Tick.Length = -0.6, float64(len(levels))-0.4, 0
		var ticks []plot.Tick
		for i, name := range levels {
			ticks = append(ticks, plot.Tick{Value: float64(i), Label: visible.Text(name)})
		}
		p.X.Tick.Marker = plot.ConstantTicks(ticks)
	}
	margin(&p.Y)
	if bands[0].Name != "" { // room for the legend
		p.Y.Max += (p.Y.Max - p.Y.Min) * math.Min(0.06*float64(len(bands)), 0.4)
	}
	return write(w, p, opt)
}

// addBand adds an area with a line in it.
func addBand(p *plot.Plot, b Band, k int) error {
	var area, line plotter.XYs
	for i := range b.X {
		line = append(line, plotter.XY{X: b.X[i], Y: b.Y[i]})
		area = append(area, plotter.XY{X: b.X[i], Y: b.Low[i]})
	}
	for i := range slices.Backward(b.X) {
		area = append(area, plotter.XY{X: b.X[i], Y: b.High[i]})
	}
	if err := addArea(p, area, translucent(chainColour(k), 50)); err != nil {
		return err
	}
	if b.Name != "" {
		return legend(p, b.Name, k, line)
	}
	return addWide(p, line, chainColour(k), nil, 1.6)
}

// legend adds a line that the legend names.
func legend(p *plot.Plot, name string, k int, xy plotter.XYs) error {
	line, err := plotter.NewLine(xy)
	if err != nil {
		return fmt.Errorf("diag/plot: %w: line: %w", draws.ErrRange, err)
	}
	line.Color, line.Width = chainColour(k), vg.Points(1.6)
	p.Add(line)
	p.Legend.Top, p.Legend.Padding = true, vg.Points(2)
	p.Legend.Add(visible.Text(name), line)
	return nil
}

// addBars adds points with lines for their intervals, those of the k-th of n bands beside those of the others.
func addBars(p *plot.Plot, b Band, k, n int) error {
	shift := 0.0
	if n > 1 {
		shift = math.Min(0.15, 0.6/float64(n)) * (float64(k) - float64(n-1)/2)
	}
	var points plotter.XYs
	for i, x := range b.X {
		bar := plotter.XYs{{X: x + shift, Y: b.Low[i]}, {X: x + shift, Y: b.High[i]}}
		points = append(points, plotter.XY{X: x + shift, Y: b.Y[i]})
		var err error
		if b.Name != "" && i == 0 {
			err = legend(p, b.Name, k, bar)
		} else {
			err = addWide(p, bar, chainColour(k), nil, 1.6)
		}
		if err != nil {
			return err
		}
	}
	return addPoints(p, points, chainColour(k))
}
