package main

import (
	"fmt"
	"image/color"
	"io"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"

	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
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
	panels := make([][]*plot.Plot, len(all))
	for i, m := range all {
		for n := range episodes {
			p, err := panel(r.data, n, r.histories[i].fits[n])
			if err != nil {
				return err
			}
			if i == 0 {
				p.Title.Text = fmt.Sprintf("after episode %d", n+1)
			}
			if n == 0 {
				p.Y.Label.Text = m.title
			}
			panels[i] = append(panels[i], p)
		}
	}
	return save(path, panels, 17, 2.3*float64(len(all))+0.3)
}

func panel(data []series, last int, fit prediction) (*plot.Plot, error) {
	p := plot.New()
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = -0.2, episodes+0.2, low, high
	p.X.Tick.Marker = wholeTicks(0, episodes)
	p.Y.Tick.Marker = plot.ConstantTicks([]plot.Tick{{Value: -2, Label: "-2"}, {Value: 0, Label: "0"},
		{Value: 2, Label: "2"}})
	clip := func(y float64) float64 { return math.Min(math.Max(y, low), high) }
	from, to := float64(last), float64(last+1)
	shade, err := area(plotter.XYs{{X: from, Y: low}, {X: to, Y: low}, {X: to, Y: high}, {X: from, Y: high}}, light)
	if err != nil {
		return nil, err
	}
	p.Add(shade)
	g := grid()
	var edge, mean, dashed plotter.XYs
	for i, x := range g.x {
		edge = append(edge, plotter.XY{X: x, Y: clip(fit.mean[i] + 2*fit.sd[i])})
		mean = append(mean, plotter.XY{X: x, Y: fit.mean[i]})
		dashed = append(dashed, plotter.XY{X: x, Y: g.y[i]})
	}
	for i := len(g.x) - 1; i >= 0; i-- {
		edge = append(edge, plotter.XY{X: g.x[i], Y: clip(fit.mean[i] - 2*fit.sd[i])})
	}
	if fit.sd[0] > 0 {
		polygon, err := area(edge, band)
		if err != nil {
			return nil, err
		}
		p.Add(polygon)
	}
	truth, err := plotter.NewLine(dashed)
	if err != nil {
		return nil, err
	}
	truth.Color, truth.Width, truth.Dashes = grey, vg.Points(1.5), []vg.Length{vg.Points(4), vg.Points(3)}
	p.Add(truth)
	for j := range last + 1 {
		dots := plotter.XYs{}
		for i, x := range data[j].x {
			dots = append(dots, plotter.XY{X: x, Y: data[j].y[i]})
		}
		scatter, err := plotter.NewScatter(dots)
		if err != nil {
			return nil, err
		}
		scatter.GlyphStyle = draw.GlyphStyle{Color: old, Radius: vg.Points(1.3), Shape: draw.CircleGlyph{}}
		if j == last {
			scatter.GlyphStyle = draw.GlyphStyle{Color: fresh, Radius: vg.Points(1.8), Shape: draw.CircleGlyph{}}
		}
		p.Add(scatter)
	}
	for _, part := range inside(mean) {
		line, err := plotter.NewLine(part)
		if err != nil {
			return nil, err
		}
		line.Color, line.Width = blue, vg.Points(1.8)
		p.Add(line)
	}
	return p, nil
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

func area(edge plotter.XYs, c color.Color) (*plotter.Polygon, error) {
	polygon, err := plotter.NewPolygon(edge)
	if err != nil {
		return nil, err
	}
	polygon.Color, polygon.LineStyle.Width = c, 0
	return polygon, nil
}

// plotExcess draws what each method has forgotten against the number of episodes, with bars of one standard error: all
// methods, and all but the first, which needs another scale.
func plotExcess(path string, s summaryJSON) error {
	all, err := excessPanel(s.Methods, 0)
	if err != nil {
		return err
	}
	others, err := excessPanel(s.Methods, 1)
	if err != nil {
		return err
	}
	all.Y.Label.Text = "mean squared error on the episodes seen\nminus that of a model of the episode alone"
	all.Title.Text, others.Title.Text = "all methods", "without "+s.Methods[0].Title
	return save(path, [][]*plot.Plot{{all, others}}, 14, 5)
}

func excessPanel(methods []methodJSON, from int) (*plot.Plot, error) {
	p := plot.New()
	p.X.Label.Text = "episodes seen"
	p.X.Tick.Marker = wholeTicks(1, episodes)
	p.X.Min, p.X.Max = 0.8, episodes+0.2
	p.Legend.Top, p.Legend.Left = true, true
	zero, err := plotter.NewLine(plotter.XYs{{X: 0.8, Y: 0}, {X: episodes + 0.2, Y: 0}})
	if err != nil {
		return nil, err
	}
	zero.Color = grey
	p.Add(zero)
	for i, m := range methods[from:] {
		i += from
		var e bars
		for n, v := range m.Excess {
			e.XYs = append(e.XYs, plotter.XY{X: float64(n+1) + 0.03*float64(i-2), Y: v.Mean})
			e.se = append(e.se, v.SE)
		}
		line, points, err := plotter.NewLinePoints(e.XYs)
		if err != nil {
			return nil, err
		}
		c := colours[m.Name]
		line.Color, line.Width = c, vg.Points(2)
		points.GlyphStyle = draw.GlyphStyle{Color: c, Radius: vg.Points(3), Shape: draw.CircleGlyph{}}
		errors, err := plotter.NewYErrorBars(e)
		if err != nil {
			return nil, err
		}
		errors.Color, errors.Width = c, vg.Points(1.2)
		p.Add(line, points, errors)
		if from == 0 {
			p.Legend.Add(m.Title, line)
		}
	}
	return p, nil
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

// save writes panels in rows and columns to a file; sizes are in inches.
func save(path string, panels [][]*plot.Plot, width, height float64) error {
	canvas := vgimg.NewWith(vgimg.UseWH(vg.Length(width)*vg.Inch, vg.Length(height)*vg.Inch), vgimg.UseDPI(96),
		vgimg.UseBackgroundColor(color.White))
	tiles := draw.Tiles{Rows: len(panels), Cols: len(panels[0]), PadX: vg.Points(8), PadY: vg.Points(8),
		PadTop: vg.Points(6), PadBottom: vg.Points(6), PadLeft: vg.Points(6), PadRight: vg.Points(10)}
	for r, line := range plot.Align(panels, tiles, draw.New(canvas)) {
		for c := range line {
			panels[r][c].Draw(line[c])
		}
	}
	return atomicfile.Replace(path, func(w io.Writer) error {
		_, err := vgimg.PngCanvas{Canvas: canvas}.WriteTo(w)
		return err
	})
}
