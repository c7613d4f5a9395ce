package plot

import (
	"fmt"
	"io"
	"math"

	"gonum.org/v1/plot/plotter"

	"github.com/kelvin-ppl/kelvin/diag/thermo"
	"github.com/kelvin-ppl/kelvin/draws"
)

// Kinetic draws kinetic temperatures over their target, T_K/T, in the order in which they were read, with a column for
// each reading: a line for the interval of exact simulation, and a point that is blue inside and orange outside it. The
// dashed line is the target. An error wraps [draws.ErrRange], or is that of w.
func Kinetic(w io.Writer, readings []thermo.KineticReading, opt Options) error {
	p, err := start(w, &opt, "", nil)
	if err != nil {
		return err
	}
	if len(readings) == 0 {
		return fmt.Errorf("diag/plot: %w: no kinetic temperatures", draws.ErrRange)
	}
	var inside, outside plotter.XYs
	for i, r := range readings {
		at, value, low, high := float64(i), r.Value/r.Target, r.Low/r.Target, r.High/r.Target
		for _, v := range []float64{value, low, high} {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return fmt.Errorf("diag/plot: %w: reading %d of %q is not finite", draws.ErrRange, i, r.Site)
			}
		}
		p.line(plotter.XYs{{X: at, Y: low}, {X: at, Y: high}}, grey, nil)
		if r.Inside {
			inside = append(inside, plotter.XY{X: at, Y: value})
		} else {
			outside = append(outside, plotter.XY{X: at, Y: value})
		}
	}
	if opt.Title == "" {
		p.Title.Text = fmt.Sprintf("%d of %d inside", len(inside), len(readings))
	}
	p.X.Label.Text, p.Y.Label.Text = "reading", "kinetic temperature / target"
	p.X.Min, p.X.Max = -1, float64(len(readings))
	p.Y.Min = min(p.Y.Min, 0)
	p.line(plotter.XYs{{X: -1, Y: 1}, {X: p.X.Max, Y: 1}}, grey, dashes)
	p.points(inside, blue)
	p.points(outside, orange)
	return p.write(w, opt)
}
