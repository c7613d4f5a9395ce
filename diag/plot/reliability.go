package plot

import (
	"fmt"
	"io"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"github.com/kelvin-ppl/kelvin/diag/score"
	"github.com/kelvin-ppl/kelvin/draws"
)

// Reliability draws a reliability diagram (Guo et al. 2017): for each bin that has cases a bar as high as its accuracy
// with its 95% interval, and a point at its mean confidence and accuracy. Calibrated predictions have points on the
// dashed diagonal; below it they are over-confident. An error wraps [draws.ErrRange], or is that of w.
func Reliability(w io.Writer, r *score.Reliability, opt Options) error {
	p, err := start(w, &opt, "", nil)
	if err != nil {
		return err
	}
	if r == nil {
		return fmt.Errorf("diag/plot: %w: a reliability of nil", draws.ErrRange)
	}
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
		for _, v := range []float64{b.Accuracy, b.Confidence, b.Low, b.High} {
			if b.Cases < 0 || !(v >= 0 && v <= 1) {
				return fmt.Errorf("diag/plot: %w: the bin from %v to %v has %d cases, the accuracy %v and the confidence %v: "+
					"they must be probabilities", draws.ErrRange, b.Low, b.High, b.Cases, b.Accuracy, b.Confidence)
			}
		}
		bar, err := plotter.NewPolygon(plotter.XYs{{X: b.Low}, {X: b.Low, Y: b.Accuracy}, {X: b.High, Y: b.Accuracy},
			{X: b.High}})
		if err == nil {
			bar.Color, bar.LineStyle.Color, bar.LineStyle.Width = light, blue, vg.Points(0.5)
		}
		p.add("bar", bar, err)
		points = append(points, plotter.XY{X: b.Confidence, Y: b.Accuracy})
	}
	p.line(plotter.XYs{{}, {X: 1, Y: 1}}, grey, dashes)
	for _, b := range r.Bins {
		if low, high := b.AccuracyInterval(0.95); b.Cases > 0 {
			p.line(plotter.XYs{{X: b.Confidence, Y: low}, {X: b.Confidence, Y: high}}, orange, nil)
		}
	}
	p.points(points, orange)
	return p.write(w, opt)
}
