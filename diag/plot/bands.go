package plot

import (
	"fmt"
	"image/color"
	"io"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/visible"
)

// Band is a curve with an interval about it: Y over X, from Low to High.
type Band struct {
	Name            string // in the legend; empty is in none
	X, Y, Low, High []float64
}

// Bands draws curves with their intervals as areas about them: the effect of a covariate on what is expected, for
// example. With levels, the X of all bands are places in them, and each Y is a point with its interval as a line. The
// labels are those of the axes. Slices have one length, and numbers that are finite.
func Bands(w io.Writer, bands []Band, levels []string, xLabel, yLabel string, opt Options) error {
	var rows [][]float64
	for _, b := range bands {
		rows = append(rows, b.X, b.Y, b.Low, b.High)
	}
	wrong := refuse("bands", 1, rows...)
	for _, b := range bands {
		if n := len(b.X); len(b.Y) != n || len(b.Low) != n || len(b.High) != n {
			wrong = fmt.Errorf("diag/plot: %w: the slices of the band %q have several lengths", draws.ErrRange, b.Name)
		}
	}
	p, err := start(w, &opt, "", wrong)
	if err != nil {
		return err
	}
	shift := min(0.15, 0.6/float64(len(bands))) // between the bars of a level
	for k, b := range bands {
		p.band(b, chainColour(k), levels != nil, shift*(float64(k)-float64(len(bands)-1)/2))
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
	if p.Legend.Top { // there is one, and it needs room
		p.Y.Max += (p.Y.Max - p.Y.Min) * math.Min(0.06*float64(len(bands)), 0.5)
	}
	return p.write(w, opt)
}

// band adds an area with a line in it, or points with bars, moved to the right by shift.
func (p *canvas) band(b Band, c color.Color, bars bool, shift float64) {
	var area, line plotter.XYs
	for i, x := range b.X {
		if bars {
			x += shift
			p.wide(plotter.XYs{{X: x, Y: b.Low[i]}, {X: x, Y: b.High[i]}}, c, nil, 1.6)
		}
		line, area = append(line, plotter.XY{X: x, Y: b.Y[i]}), append(area, plotter.XY{X: x, Y: b.Low[i]})
	}
	for i, x := range slices.Backward(b.X) {
		area = append(area, plotter.XY{X: x, Y: b.High[i]})
	}
	if bars {
		p.points(line, c)
	} else {
		p.area(area, translucent(c, 50))
		p.wide(line, c, nil, 1.6)
	}
	if b.Name != "" {
		p.Legend.Top, p.Legend.Padding = true, vg.Points(2)
		p.Legend.Add(visible.Text(b.Name), &plotter.Line{LineStyle: draw.LineStyle{Color: c, Width: vg.Points(1.6)}})
	}
}
