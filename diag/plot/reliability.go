package plot

import (
	"fmt"
	"io"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"github.com/kelvin-ppl/kelvin/diag/score"
	"github.com/kelvin-ppl/kelvin/draws"
)

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
		for _, v := range []float64{b.Accuracy, b.Confidence, b.Low, b.High} {
			if b.Cases < 0 || !(v >= 0 && v <= 1) {
				return fmt.Errorf("diag/plot: %w: the bin from %v to %v has %d cases, the accuracy %v and the confidence %v: "+
					"they must be probabilities", draws.ErrRange, b.Low, b.High, b.Cases, b.Accuracy, b.Confidence)
			}
		}
		bar, err := plotter.NewPolygon(plotter.XYs{{X: b.Low}, {X: b.Low, Y: b.Accuracy}, {X: b.High, Y: b.Accuracy},
			{X: b.High}})
		if err != nil {
			return fmt.Errorf("diag/plot: %w: bar: %w", draws.ErrRange, err)
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
