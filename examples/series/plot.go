package main

import (
	"image/color"
	"io"
	"math"
	"slices"

	"github.com/sugarme/gotch/ts"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"github.com/kelvin-ppl/kelvin/torch"
)

// interval is the middle of some draws, and the 90 % around it.
type interval struct{ low, middle, high float64 }

// bandOf are the intervals of draws of shape [draws, T], one for each time.
func bandOf(x *ts.Tensor) ([]interval, error) {
	shape, err := torch.Shape(x)
	if err != nil {
		return nil, err
	}
	values, err := torch.ToSlice[float64](x)
	if err != nil {
		return nil, err
	}
	n, times := int(shape[0]), int(shape[1])
	out := make([]interval, times)
	column := make([]float64, n)
	for t := range out {
		for i := range column {
			column[i] = values[i*times+t]
		}
		slices.Sort(column)
		q := func(p float64) float64 { return column[int(p*float64(n-1))] }
		out[t] = interval{q(0.05), q(0.5), q(0.95)}
	}
	return out, nil
}

// draw writes a picture of the data, of the level and of the forecast.
func draw(w io.Writer, y []float64, level, next []interval) error {
	p := plot.New()
	p.Title.Text = "Flow of the Nile at Aswan"
	p.X.Label.Text, p.Y.Label.Text = "year", "10⁸ m³"
	add := func(from int, band []interval, c color.NRGBA, name string) error {
		var edge, middle plotter.XYs
		for t, b := range band {
			edge = append(edge, plotter.XY{X: float64(from + t), Y: b.high})
			middle = append(middle, plotter.XY{X: float64(from + t), Y: b.middle})
		}
		for t := len(band) - 1; t >= 0; t-- {
			edge = append(edge, plotter.XY{X: float64(from + t), Y: band[t].low})
		}
		area, err := plotter.NewPolygon(edge)
		if err != nil {
			return err
		}
		line, err := plotter.NewLine(middle)
		if err != nil {
			return err
		}
		line.Color = c
		c.A = 60
		area.Color, area.LineStyle.Width = c, 0
		p.Add(area, line)
		p.Legend.Add(name, line)
		return nil
	}
	if err := add(firstYear, level, color.NRGBA{B: 200, A: 255}, "level"); err != nil {
		return err
	}
	if err := add(firstYear+len(y), next, color.NRGBA{R: 200, A: 255}, "forecast"); err != nil {
		return err
	}
	var points plotter.XYs
	for t, v := range y {
		if !math.IsNaN(v) {
			points = append(points, plotter.XY{X: float64(firstYear + t), Y: v})
		}
	}
	dots, err := plotter.NewScatter(points)
	if err != nil {
		return err
	}
	dots.Radius = vg.Points(1.5)
	p.Add(dots)
	p.Legend.Top = true
	picture, err := p.WriterTo(18*vg.Centimeter, 9*vg.Centimeter, "png")
	if err != nil {
		return err
	}
	_, err = picture.WriteTo(w)
	return err
}
