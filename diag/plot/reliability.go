// Package plot draws the figures of package diag: a reliability diagram, and kinetic temperatures with their intervals.
//
//	r, err := score.ClassCalibration(p, labels, score.Binning{})
//	err = plot.Reliability(w, r, plot.Options{Title: "ensemble"})
//
// It is apart from diag so that diag needs no drawing.
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

	"github.com/kelvin-ppl/kelvin/diag/score"
	"github.com/kelvin-ppl/kelvin/draws"
)

// Options are options of a picture. The zero value is a PNG of 5 by 5 inches, 96 dots per inch.
type Options struct {
	// Title is written above; the default is the figure's own.
	Title string
	// Width and Height are in inches, positive and at most 100; 0 is 5.
	Width, Height float64
	// Format is "png", "svg" or "pdf"; empty is "png".
	Format string
}

func (o Options) defaults() (Options, error) {
	for _, v := range []*float64{&o.Width, &o.Height} {
		if *v == 0 {
			*v = 5
		}
		if !(*v > 0 && *v <= 100) {
			return o, fmt.Errorf("diag/plot: %w: a side of %v inches, want above 0 and at most 100, or 0 for 5",
				draws.ErrRange, *v)
		}
	}
	if o.Format == "" {
		o.Format = "png"
	}
	if !slices.Contains([]string{"png", "svg", "pdf"}, o.Format) {
		return o, fmt.Errorf("diag/plot: %w: format %q, want png, svg or pdf", draws.ErrRange, o.Format)
	}
	return o, nil
}

// Colours told apart by readers with colour-blindness too (Okabe and Ito 2008).
var (
	blue   = color.RGBA{0, 114, 178, 255}
	light  = color.RGBA{86, 180, 233, 255}
	orange = color.RGBA{213, 94, 0, 255}
	grey   = color.RGBA{120, 120, 120, 255}
)

var dashes = []vg.Length{vg.Points(4), vg.Points(3)}

// Reliability draws a reliability diagram (Guo et al. 2017): for each bin that has cases a bar as high as its accuracy
// with its 95% interval, and a point at its mean confidence and accuracy. Calibrated predictions have points on the
// dashed diagonal; below it they are over-confident. An error wraps [draws.ErrRange], or is that of w.
func Reliability(w io.Writer, r *score.Reliability, opt Options) error {
	if w == nil {
		return fmt.Errorf("diag/plot: %w: the writer is nil", draws.ErrRange)
	}
	opt, err := opt.defaults()
	if err != nil {
		return err
	}
	if r == nil {
		return fmt.Errorf("diag/plot: %w: a reliability of nil", draws.ErrRange)
	}
	p := plot.New()
	p.Title.Text = opt.Title
	if opt.Title == "" {
		p.Title.Text = fmt.Sprintf("ECE %.3f", r.ECE)
	}
	p.X.Label.Text, p.Y.Label.Text = "confidence", "accuracy"
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, 1, 0, 1
	var points plotter.XYs
	for _, b := range r.Bins {
		if b.Cases == 0 {
			continue
		}
		if math.IsNaN(b.Accuracy) || math.IsNaN(b.Confidence) {
			return fmt.Errorf("diag/plot: %w: the bin from %v to %v has %d cases but no accuracy or confidence",
				draws.ErrRange, b.Low, b.High, b.Cases)
		}
		bar, err := plotter.NewPolygon(plotter.XYs{{X: b.Low}, {X: b.Low, Y: b.Accuracy}, {X: b.High, Y: b.Accuracy},
			{X: b.High}})
		if err != nil {
			return fmt.Errorf("diag/plot: bar: %w", err)
		}
		bar.Color, bar.LineStyle.Color, bar.LineStyle.Width = light, blue, vg.Points(0.5)
		p.Add(bar)
		points = append(points, plotter.XY{X: b.Confidence, Y: b.Accuracy})
	}
	if err := addLine(p, plotter.XYs{{}, {X: 1, Y: 1}}, grey, dashes); err != nil {
		return err
	}
	for _, b := range r.Bins {
		if low, high := b.AccuracyInterval(0.95); b.Cases > 0 {
			if err := addLine(p, plotter.XYs{{X: b.Confidence, Y: low}, {X: b.Confidence, Y: high}}, orange,
				nil); err != nil {
				return err
			}
		}
	}
	if err := addPoints(p, points, orange); err != nil {
		return err
	}
	return write(w, p, opt)
}

func addLine(p *plot.Plot, xy plotter.XYs, c color.Color, dashes []vg.Length) error {
	line, err := plotter.NewLine(xy)
	if err != nil {
		return fmt.Errorf("diag/plot: line: %w", err)
	}
	line.Color, line.Dashes, line.Width = c, dashes, vg.Points(1.2)
	p.Add(line)
	return nil
}

func addPoints(p *plot.Plot, xy plotter.XYs, c color.Color) error {
	if len(xy) == 0 {
		return nil
	}
	points, err := plotter.NewScatter(xy)
	if err != nil {
		return fmt.Errorf("diag/plot: points: %w", err)
	}
	points.GlyphStyle = draw.GlyphStyle{Color: c, Radius: vg.Points(2.5), Shape: draw.CircleGlyph{}}
	p.Add(points)
	return nil
}

func write(w io.Writer, p *plot.Plot, opt Options) error {
	picture, err := p.WriterTo(vg.Length(opt.Width)*vg.Inch, vg.Length(opt.Height)*vg.Inch, opt.Format)
	if err != nil {
		return fmt.Errorf("diag/plot: draw: %w", err)
	}
	if _, err := picture.WriteTo(w); err != nil {
		return fmt.Errorf("diag/plot: write: %w", err)
	}
	return nil
}
