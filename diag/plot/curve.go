package plot

import (
	"fmt"
	"io"
	"math"

	"gonum.org/v1/plot/plotter"

	"github.com/kelvin-ppl/kelvin/draws"
)

// Curve draws y over x as a line with points, and error bars of two standard deviations where sd is not 0: the trace of
// an estimate of the evidence, for example. The labels are those of the axes; sd is nil for no bars. The slices have
// one length, and numbers that are finite. An error wraps [draws.ErrRange], or is that of w.
func Curve(w io.Writer, x, y, sd []float64, xLabel, yLabel string, opt Options) error {
	var wrong error
	if len(x) == 0 || len(y) != len(x) || sd != nil && len(sd) != len(x) {
		wrong = fmt.Errorf("diag/plot: %w: a curve of %d and %d numbers with %d errors", draws.ErrRange, len(x), len(y),
			len(sd))
	}
	p, err := start(w, &opt, "", wrong)
	if err != nil {
		return err
	}
	points := make(plotter.XYs, len(x))
	for i := range x {
		e := 0.0
		if sd != nil {
			e = 2 * sd[i]
		}
		if s := x[i] + y[i] + e; math.IsNaN(s) || math.IsInf(s, 0) {
			return fmt.Errorf("diag/plot: %w: point %d of the curve is not finite", draws.ErrRange, i)
		}
		points[i] = plotter.XY{X: x[i], Y: y[i]}
		if e != 0 {
			p.line(plotter.XYs{{X: x[i], Y: y[i] - e}, {X: x[i], Y: y[i] + e}}, grey, nil)
		}
	}
	p.X.Label.Text, p.Y.Label.Text = xLabel, yLabel
	p.line(points, light, nil)
	p.points(points, blue)
	return p.write(w, opt)
}
