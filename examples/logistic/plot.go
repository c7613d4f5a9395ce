package main

import (
	"image/color"
	"math"
	"sort"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/kelvin-ppl/kelvin/examples/internal/figure"
)

// colours of the methods, told apart by readers with colour-blindness too (Okabe and Ito 2008).
var colours = []color.RGBA{{0, 0, 0, 255}, {230, 159, 0, 255}, {0, 114, 178, 255}, {0, 158, 115, 255},
	{204, 121, 167, 255}, {213, 94, 0, 255},
	{86, 180, 233, 255}, {120, 120, 120, 255}, {150, 80, 20, 255}, {90, 60, 150, 255}}

// plotMarginals draws the marginal posterior density of every weight, all methods over each other, and a point estimate
// as a line.
func plotMarginals(path string, outcomes []outcome, names []string) error {
	const rows, cols = 2, features / 2
	panels := make([][]*figure.Panel, rows)
	for r := range panels {
		for c := range cols {
			panels[r] = append(panels[r], panel(outcomes, r*cols+c, names[r*cols+c]))
		}
	}
	panels[0][cols-1].Legend.Top = true
	margins := draw.Tiles{PadX: vg.Points(12), PadY: vg.Points(12), PadTop: vg.Points(6), PadBottom: vg.Points(46),
		PadRight: vg.Points(6)}
	return figure.Save(path, panels, 16, 8, margins, func(whole draw.Canvas) {
		legend(draw.Crop(whole, vg.Points(12), 0, 0, -whole.Rectangle.Size().Y+vg.Points(42)), outcomes)
	})
}

// panel is the plot of one weight.
func panel(outcomes []outcome, element int, name string) *figure.Panel {
	p := figure.New()
	p.Title.Text = name
	p.Y.Min = 0
	p.Y.Tick.Marker = plot.ConstantTicks(nil)
	top := 0.0
	for i, o := range outcomes {
		values := o.draws.Pooled(element)
		if len(values) < 2 {
			continue
		}
		xy := density(values)
		for _, at := range xy {
			top = math.Max(top, at.Y)
		}
		p.Line(xy, colours[i%len(colours)], 1.5)
	}
	for i, o := range outcomes {
		if values := o.draws.Pooled(element); len(values) == 1 {
			p.Line(plotter.XYs{{X: values[0], Y: 0}, {X: values[0], Y: top}}, colours[i%len(colours)], 1.5, figure.Dashes...)
		}
	}
	return p
}

// legend writes the methods' names in their colours, in two lines.
func legend(c draw.Canvas, outcomes []outcome) {
	style := plot.New().Legend.TextStyle
	x, y := c.Min.X, c.Min.Y+vg.Points(24)
	for i, o := range outcomes {
		if i == (len(outcomes)+1)/2 {
			x, y = c.Min.X, c.Min.Y+vg.Points(6)
		}
		line := draw.LineStyle{Color: colours[i%len(colours)], Width: vg.Points(2.5)}
		c.StrokeLine2(line, x, y+vg.Points(4), x+vg.Points(24), y+vg.Points(4))
		c.FillText(style, vg.Point{X: x + vg.Points(30), Y: y}, o.fit.title)
		x += vg.Points(54) + style.Width(o.fit.title)
	}
}

// density is a Gaussian kernel density estimate with Silverman's bandwidth 0.9 min(sd, IQR/1.34) n^(-1/5) (1986,
// equation 3.31), on 200 points. Values are binned first, so that the cost does not grow with their number.
func density(values []float64) plotter.XYs {
	sorted := append([]float64(nil), values...)
	sort.Float64s(sorted)
	iqr := stat.Quantile(0.75, stat.LinInterp, sorted, nil) - stat.Quantile(0.25, stat.LinInterp, sorted, nil)
	h := 0.9 * math.Min(stat.StdDev(sorted, nil), iqr/1.34) * math.Pow(float64(len(sorted)), -0.2)
	low, high := sorted[0]-3*h, sorted[len(sorted)-1]+3*h
	const n = 200
	step := (high - low) / (n - 1)
	counts := make([]float64, n)
	for _, v := range sorted {
		at := (v - low) / step
		i := min(int(at), n-2)
		counts[i] += 1 - (at - float64(i))
		counts[i+1] += at - float64(i)
	}
	xys := make(plotter.XYs, n)
	for i := range xys {
		xys[i].X = low + float64(i)*step
		for j, c := range counts {
			z := float64(i-j) * step / h
			xys[i].Y += c * math.Exp(-0.5*z*z)
		}
		xys[i].Y /= float64(len(sorted)) * h * math.Sqrt(2*math.Pi)
	}
	return xys
}
