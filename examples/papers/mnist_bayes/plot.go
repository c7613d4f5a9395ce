package main

import (
	"image/color"
	"io"
	"math"
	"os"
	"path/filepath"

	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// colours are told apart by readers with colour-blindness too (Okabe and Ito 2008).
var colours = []color.RGBA{{0, 114, 178, 255}, {213, 94, 0, 255}, {0, 158, 115, 255}, {204, 121, 167, 255},
	{230, 159, 0, 255}, {86, 180, 233, 255}}

// draw draws the losses, accuracies and swap rates against the temperature.
func (r *results) draw(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil || len(r.Curves) == 0 {
		return err
	}
	for _, one := range []struct {
		name, axis string
		of         func(g rung) float64
		minima     func(d *descended) float64
	}{
		{"loss", "test loss of one network (nats)", func(g rung) float64 { return g.Test.Gibbs },
			func(d *descended) float64 { return d.Test.Gibbs }},
		{"ensemble_loss", "test loss of all networks together (nats)", func(g rung) float64 { return g.Test.Loss },
			func(d *descended) float64 { return d.Test.Loss }},
		{"accuracy", "test accuracy of all networks together", func(g rung) float64 { return g.Test.Accuracy },
			func(d *descended) float64 { return d.Test.Accuracy }},
		{"train", "training loss (nats)", func(g rung) float64 { return g.Train }, nil},
		{"swaps", "swaps with the next higher temperature accepted", func(g rung) float64 { return g.Swapped }, nil},
	} {
		if err := r.picture(filepath.Join(dir, one.name+".png"), one.axis, one.of, one.minima); err != nil {
			return err
		}
	}
	return nil
}

// picture has a curve for each network and training set; dashes are the networks at minima.
func (r *results) picture(file, axis string, of func(g rung) float64, minima func(d *descended) float64) error {
	p := plot.New()
	p.X.Label.Text, p.Y.Label.Text = "temperature T (1: Bayes posterior)", axis
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	legend := plot.NewLegend()
	legend.Top = true
	p.Title.Text, p.Title.Padding = "dashes: networks at minima of the loss", vg.Points(6)
	if minima == nil {
		p.Title.Text = ""
	}
	for i, c := range r.Curves {
		points := plotter.XYs{}
		for _, g := range c.Rungs {
			if y := of(g); y >= 0 && !math.IsInf(y, 0) && !math.IsNaN(y) {
				points = append(points, plotter.XY{X: g.Temperature, Y: y})
			}
		}
		if len(points) == 0 {
			continue
		}
		line, marks, err := plotter.NewLinePoints(points)
		if err != nil {
			return err
		}
		line.Color, marks.Color, line.Width = colours[i%len(colours)], colours[i%len(colours)], vg.Points(1.5)
		p.Add(line, marks)
		legend.Add(c.name(), line)
		if minima == nil {
			continue
		}
		y, first, last := minima(r.Descended[i]), points[0].X, points[len(points)-1].X
		level, err := plotter.NewLine(plotter.XYs{{X: first, Y: y}, {X: last, Y: y}})
		if err != nil {
			return err
		}
		level.Color, level.Dashes = line.Color, []vg.Length{vg.Points(5), vg.Points(4)}
		p.Add(level)
	}
	return atomicfile.Replace(file, func(w io.Writer) error {
		canvas, err := draw.NewFormattedCanvas(9*vg.Inch, 4.5*vg.Inch, "png")
		if err != nil {
			return err
		}
		// The legend is beside the curves.
		all := draw.New(canvas)
		all.SetColor(color.White)
		all.Fill(all.Rectangle.Path())
		legend.Draw(all)
		size := legend.Rectangle(all).Size()
		p.Draw(draw.Crop(all, 0, -size.X-vg.Points(12), 0, 0))
		_, err = canvas.WriteTo(w)
		return err
	})
}
