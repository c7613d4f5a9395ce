package main

import (
	"fmt"
	"image/color"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"github.com/kelvin-ppl/kelvin/examples/internal/figure"
)

// colours of the methods, told apart by readers with colour-blindness too (Okabe and Ito 2008).
var colours = map[string]color.RGBA{
	"map":          {0, 0, 0, 255},
	"laplace_diag": {230, 159, 0, 255},
	"laplace_kfac": {0, 114, 178, 255},
	"vi":           {204, 121, 167, 255},
	"offline":      {0, 158, 115, 255},
}

var (
	band  = color.RGBA{186, 215, 234, 255}
	grey  = color.RGBA{150, 150, 150, 255}
	light = color.RGBA{235, 235, 235, 255}
	old   = color.RGBA{120, 120, 120, 255}
	fresh = color.RGBA{213, 94, 0, 255}
	blue  = color.RGBA{0, 90, 150, 255}
)

const low, high = -2.2, 2.2 // of the function in the pictures

// plotFits draws what each method knows after each episode: the mean with a band of two standard deviations, the true
// function dashed, and the data, those of the last episode in colour and its interval shaded.
func plotFits(path string, all []method, r outcome) error {
	panels := make([][]*figure.Panel, len(all))
	for i, m := range all {
		for n := range episodes {
			p := panel(r.data, n, r.histories[i].fits[n])
			if i == 0 {
				p.Title.Text = fmt.Sprintf("after episode %d", n+1)
			}
			if n == 0 {
				p.Y.Label.Text = m.title
			}
			panels[i] = append(panels[i], p)
		}
	}
	return figure.Save(path, panels, 17, 2.3*float64(len(all))+0.3, figure.Margins(8, 6, 10))
}

func panel(data []series, last int, fit prediction) *figure.Panel {
	p := figure.New()
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = -0.2, episodes+0.2, low, high
	p.X.Tick.Marker = wholeTicks(0, episodes)
	p.Y.Tick.Marker = plot.ConstantTicks([]plot.Tick{{Value: -2, Label: "-2"}, {Value: 0, Label: "0"},
		{Value: 2, Label: "2"}})
	clip := func(y float64) float64 { return math.Min(math.Max(y, low), high) }
	from, to := float64(last), float64(last+1)
	p.Area(plotter.XYs{{X: from, Y: low}, {X: to, Y: low}, {X: to, Y: high}, {X: from, Y: high}}, light)
	g := grid()
	if fit.sd[0] > 0 {
		below, above := make([]float64, len(g.x)), make([]float64, len(g.x))
		for i, mean := range fit.mean {
			below[i], above[i] = clip(mean-2*fit.sd[i]), clip(mean+2*fit.sd[i])
		}
		p.Area(figure.Between(g.x, below, above), band)
	}
	p.Line(figure.Points(g.x, g.y), grey, 1.5, figure.Dashes...)
	for j := range last + 1 {
		c, radius := old, 1.3
		if j == last {
			c, radius = fresh, 1.8
		}
		p.Dots(figure.Points(data[j].x, data[j].y), c, radius)
	}
	for _, part := range inside(figure.Points(g.x, fit.mean)) {
		p.Line(part, blue, 1.8)
	}
	return p
}

// inside is the parts of a line between low and high.
func inside(line plotter.XYs) (parts []plotter.XYs) {
	var part plotter.XYs
	for i, xy := range line {
		if xy.Y >= low && xy.Y <= high {
			part = append(part, xy)
		}
		if ends := i == len(line)-1 || xy.Y < low || xy.Y > high; ends && len(part) > 0 {
			parts, part = append(parts, part), nil
		}
	}
	return parts
}

// plotExcess draws what each method has forgotten against the number of episodes, with bars of one standard error: all
// methods, and all but the first, which needs another scale.
func plotExcess(path string, s summaryJSON) error {
	all, others := excessPanel(s.Methods, 0), excessPanel(s.Methods, 1)
	all.Y.Label.Text = "mean squared error on the episodes seen\nminus that of a model of the episode alone"
	all.Title.Text, others.Title.Text = "all methods", "without "+s.Methods[0].Title
	return figure.Save(path, [][]*figure.Panel{{all, others}}, 14, 5, figure.Margins(8, 6, 10))
}

func excessPanel(methods []methodJSON, from int) *figure.Panel {
	p := figure.New()
	p.X.Label.Text = "episodes seen"
	p.X.Tick.Marker = wholeTicks(1, episodes)
	p.X.Min, p.X.Max = 0.8, episodes+0.2
	p.Legend.Top, p.Legend.Left = true, true
	p.Line(plotter.XYs{{X: 0.8, Y: 0}, {X: episodes + 0.2, Y: 0}}, grey, 1)
	for i, m := range methods[from:] {
		i += from
		var e bars
		for n, v := range m.Excess {
			e.XYs = append(e.XYs, plotter.XY{X: float64(n+1) + 0.03*float64(i-2), Y: v.Mean})
			e.se = append(e.se, v.SE)
		}
		c := colours[m.Name]
		line := p.Line(e.XYs, c, 2)
		p.Dots(e.XYs, c, 3)
		if errors, err := plotter.NewYErrorBars(e); p.Try(err) {
			errors.Color, errors.Width = c, vg.Points(1.2)
			p.Add(errors)
		}
		if from == 0 {
			p.Legend.Add(m.Title, line)
		}
	}
	return p
}

// wholeTicks is ticks at the whole numbers.
func wholeTicks(from, to int) plot.ConstantTicks {
	var ticks plot.ConstantTicks
	for i := from; i <= to; i++ {
		ticks = append(ticks, plot.Tick{Value: float64(i), Label: strconv.Itoa(i)})
	}
	return ticks
}

// bars are points with a standard error.
type bars struct {
	plotter.XYs
	se []float64
}

func (b bars) YError(i int) (float64, float64) { return b.se[i], b.se[i] }
