package plot

import (
	"fmt"
	"io"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/sample"
	"github.com/kelvin-ppl/kelvin/internal/visible"
)

// mostRows is how many elements a forest has room for.
const mostRows = 200

// Forest draws intervals of the elements of draws, such as theta[0], in their order from above: a thin line has the
// middle 95 % of the draws of all chains, a thick one the middle half, a point is the median. A dashed line is at 0
// where that is in view. No names are all elements. There must be at most 200.
func Forest(w io.Writer, d *draws.Draws, names []string, opt Options) error {
	p, err := start(w, &opt, "medians, 50 % and 95 %", nil)
	if err != nil {
		return err
	}
	if d == nil || d.Total() == 0 {
		return refuse("a forest of no draws", 1)
	}
	if len(names) == 0 {
		names = d.Names()
	}
	if len(names) > mostRows {
		return refuse(fmt.Sprintf("a forest of %d elements, more than %d", len(names), mostRows), 1)
	}
	ticks := make([]plot.Tick, len(names))
	var medians plotter.XYs
	for i, name := range names {
		x, err := element(d, name)
		if err != nil {
			return err
		}
		slices.Sort(x)
		y := float64(len(names) - 1 - i)
		ticks[i] = plot.Tick{Value: y, Label: visible.Text(name)}
		for _, part := range []struct{ low, high, width float64 }{{0.025, 0.975, 1.2}, {0.25, 0.75, 4}} {
			p.wide(plotter.XYs{{X: sample.Quantile(x, part.low), Y: y},
				{X: sample.Quantile(x, part.high), Y: y}}, blue, nil, part.width)
		}
		medians = append(medians, plotter.XY{X: sample.Quantile(x, 0.5), Y: y})
	}
	p.points(medians, orange)
	p.Y.Min, p.Y.Max = -0.6, float64(len(names))-0.4
	margin(&p.X)
	if p.X.Min < 0 && p.X.Max > 0 {
		p.line(plotter.XYs{{Y: p.Y.Min}, {Y: p.Y.Max}}, grey, dashes)
	}
	p.Y.Tick.Marker, p.Y.Tick.Length = plot.ConstantTicks(ticks), 0
	p.X.Label.Text = "value"
	return p.write(w, opt)
}

// element are the draws of all chains of an element, which must be finite.
func element(d *draws.Draws, name string) ([]float64, error) {
	i := slices.Index(d.Names(), name)
	if i < 0 {
		return nil, fmt.Errorf("diag/plot: %w: there is no element %q", draws.ErrRange, name)
	}
	x := d.Pooled(i)
	return x, refuse(name, 1, x)
}

// Pair draws one element over another, at most 5000 draws at equal distances, and all that diverged in orange above
// them: where those gather, the chains cannot follow the posterior.
func Pair(w io.Writer, d *draws.Draws, across, up string, opt Options) error {
	p, err := start(w, &opt, "", nil)
	if err != nil {
		return err
	}
	if d == nil || d.Total() == 0 {
		return refuse("a pair of no draws", 1)
	}
	x, err := element(d, across)
	if err != nil {
		return err
	}
	y, err := element(d, up)
	if err != nil {
		return err
	}
	var diverged []float64
	if name, ok := d.StatName(draws.StatDivergent); ok {
		for c := range d.Chains() {
			v, err := d.Stat(name, c)
			if err != nil {
				return err
			}
			diverged = append(diverged, v...)
		}
	}
	const most = 5000
	every := max(1, len(x)/most)
	var plain, bad plotter.XYs
	for i := range x {
		at := plotter.XY{X: x[i], Y: y[i]}
		switch {
		case diverged != nil && diverged[i] != 0:
			bad = append(bad, at)
		case i%every == 0:
			plain = append(plain, at)
		}
	}
	if opt.Title == "" {
		p.Title.Text = fmt.Sprintf("%d of %d draws diverged", len(bad), len(x))
	}
	p.X.Label.Text, p.Y.Label.Text = across, up
	if len(plain) > 0 {
		dots, err := plotter.NewScatter(plain)
		if err != nil {
			return fmt.Errorf("diag/plot: points: %w", err)
		}
		dots.GlyphStyle = draw.GlyphStyle{Color: translucent(blue, 70), Radius: vg.Points(1.2),
			Shape: draw.CircleGlyph{}}
		p.Add(dots)
	}
	p.points(bad, orange)
	return p.write(w, opt)
}
