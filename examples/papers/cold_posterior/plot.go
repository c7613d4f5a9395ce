package main

import (
	"fmt"
	"image/color"
	"io"
	"math"
	"path/filepath"

	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// colours of the curves, told apart by readers with colour-blindness too (Okabe and Ito 2008).
var (
	colours = []color.RGBA{{0, 114, 178, 255}, {86, 180, 233, 255}, {230, 159, 0, 255}, {213, 94, 0, 255},
		{0, 158, 115, 255}, {204, 121, 167, 255}}
	shapes = []draw.GlyphDrawer{draw.CircleGlyph{}, draw.SquareGlyph{}, draw.TriangleGlyph{}, draw.PyramidGlyph{}}
	black  = color.RGBA{0, 0, 0, 255}
	grey   = color.RGBA{150, 150, 150, 255}
	dashes = []vg.Length{vg.Points(6), vg.Points(4)}
	dots   = []vg.Length{vg.Points(1.5), vg.Points(3)}
)

// series is a curve in a picture: one number at each temperature, or one at all.
type series struct {
	title    string
	mean, se []float64
	level    bool
	style    draw.LineStyle
	shape    draw.GlyphDrawer
}

// plotAll draws a picture of each metric, and one of the measured temperatures.
func plotAll(dir string, s settings, results []*result) error {
	for _, m := range columns {
		var all []series
		for i, c := range curves(s) {
			one := series{title: c.title, style: draw.LineStyle{Color: colours[i], Width: vg.Points(1.8)}, shape: shapes[i]}
			for _, temperature := range s.Temperatures {
				mean, se := m.of(find(results, c.sampler, temperature).Lines[c.line])
				one.mean, one.se = append(one.mean, mean), append(one.se, se)
			}
			all = append(all, one)
		}
		level := func(title, line string, dashes []vg.Length) {
			mean, _ := m.of(find(results, "constant", 0).Lines[line])
			all = append(all, series{title: title, mean: []float64{mean}, level: true,
				style: draw.LineStyle{Color: black, Width: vg.Points(1.4), Dashes: dashes}})
		}
		level(fmt.Sprintf("deep ensemble of %d, T = 0", s.Members), lastStates, dashes)
		if m.name != "epistemic" && m.name != "gibbs_nll" { // no such thing; the same as the ensemble's
			level("one network by SGD, T = 0", oneNetwork, dots)
		}
		if err := plotSeries(filepath.Join(dir, m.name+".png"), m.axis, s.Temperatures, all, m.log); err != nil {
			return err
		}
	}
	var all []series
	for i, sampler := range s.samplers() {
		kinetic := series{title: sampler.name + ": kinetic",
			style: draw.LineStyle{Color: colours[3*(1-i)], Width: vg.Points(1.8), Dashes: dashes}, shape: shapes[3*(1-i)]}
		configurational := kinetic
		configurational.title, configurational.style.Dashes = sampler.name+": configurational", nil
		for _, temperature := range s.Temperatures {
			m := find(results, sampler.name, temperature).Simulation
			kinetic.mean, kinetic.se = append(kinetic.mean, m.Kinetic), append(kinetic.se, 0)
			configurational.mean, configurational.se = append(configurational.mean, m.Configurational),
				append(configurational.se, m.SE)
		}
		all = append(all, kinetic, configurational)
	}
	all = append(all, series{title: "exact", mean: []float64{1}, level: true,
		style: draw.LineStyle{Color: black, Width: vg.Points(1.4)}})
	return plotSeries(filepath.Join(dir, "temperatures.png"), "measured temperature / T", s.Temperatures, all, false)
}

// plotSeries draws curves over the temperature, with bars of a standard error up and down. What is hotter than the
// Bayes posterior may leave the picture, so that the rest can be seen. The axis is logarithmic, if asked for, where the
// numbers cover more than a power of ten.
func plotSeries(path, axis string, temperatures []float64, all []series, log bool) error {
	p := plot.New()
	p.X.Label.Text, p.Y.Label.Text = "temperature T (1: Bayes posterior)", axis
	// Logarithms are taken here, because the library's log scales leave room for labels that are not drawn.
	ticks := make(plot.ConstantTicks, len(temperatures))
	for i, x := range temperatures {
		ticks[i] = plot.Tick{Value: math.Log10(x), Label: fmt.Sprintf("%g", x)}
	}
	p.X.Tick.Marker = ticks
	low, high := limits(temperatures, all)
	scale := func(v float64) float64 { return v }
	p.Y.Tick.Marker = plot.TickerFunc(plainTicks)
	if log && low > 0 && high > 10*low {
		scale = func(v float64) float64 { return math.Log10(math.Max(v, low/2)) }
		p.Y.Tick.Marker = plot.ConstantTicks(logTicks(low/1.1, high*1.1))
	}
	bottom, top := scale(low), scale(high)
	bottom, top = bottom-0.04*(top-bottom), top+0.04*(top-bottom)
	first, last := math.Log10(temperatures[0]/1.4), math.Log10(temperatures[len(temperatures)-1]*1.4)
	bayes, err := plotter.NewLine(plotter.XYs{{X: 0, Y: bottom}, {X: 0, Y: top}})
	if err != nil {
		return err
	}
	bayes.Color = grey
	p.Add(bayes)
	curves := 0
	for _, one := range all {
		if !one.level {
			curves++
		}
	}
	for k, one := range all {
		if one.level {
			line, err := plotter.NewLine(plotter.XYs{{X: first, Y: scale(one.mean[0])}, {X: last, Y: scale(one.mean[0])}})
			if err != nil {
				return err
			}
			line.LineStyle = one.style
			p.Add(line)
			continue
		}
		points, errors := make(plotter.XYs, len(temperatures)), make(plotter.YErrors, len(temperatures))
		for i, x := range temperatures {
			mean, se := one.mean[i], one.se[i]
			points[i].X, points[i].Y = math.Log10(x)+aside(k, curves), scale(mean)
			errors[i].Low, errors[i].High = scale(mean)-scale(mean-se), scale(mean+se)-scale(mean)
		}
		line, err := plotter.NewLine(points)
		if err != nil {
			return err
		}
		line.LineStyle = one.style
		marks, err := plotter.NewScatter(points)
		if err != nil {
			return err
		}
		marks.GlyphStyle = draw.GlyphStyle{Color: one.style.Color, Radius: vg.Points(3.5), Shape: one.shape}
		bars, err := plotter.NewYErrorBars(struct {
			plotter.XYer
			plotter.YErrorer
		}{points, errors})
		if err != nil {
			return err
		}
		bars.Color, bars.Width = one.style.Color, vg.Points(1.2)
		p.Add(line, marks, bars)
	}
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = first, last, bottom, top
	return atomicfile.Replace(path, func(w io.Writer) error {
		canvas := vgimg.NewWith(vgimg.UseWH(8*vg.Inch, 5.5*vg.Inch), vgimg.UseDPI(96), vgimg.UseBackgroundColor(color.White))
		whole := draw.New(canvas)
		p.Draw(draw.Crop(whole, vg.Points(6), -vg.Points(12), under(all), -vg.Points(8)))
		legend(whole, all)
		_, err := (vgimg.PngCanvas{Canvas: canvas}).WriteTo(w)
		return err
	})
}

// aside puts curve k of n beside the others, so that none hides another: around the temperature, a tenth of a power of
// ten wide at most.
func aside(k, n int) float64 {
	return math.Min(0.025, 0.1/math.Max(1, float64(n-1))) * (float64(k) - float64(n-1)/2)
}

// limits are the least and the greatest number with its standard error. Those of temperatures above 1 count as far as
// they make the range half as large again.
func limits(temperatures []float64, all []series) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	lowest, highest := low, high
	for _, one := range all {
		for i, mean := range one.mean {
			se := 0.0
			if one.se != nil {
				se = one.se[i]
			}
			lowest, highest = math.Min(lowest, mean-se), math.Max(highest, mean+se)
			if temperatures[i] <= 1 {
				low, high = math.Min(low, mean-se), math.Max(high, mean+se)
			}
		}
	}
	room := 0.25 * (high - low)
	return math.Max(lowest, low-room), math.Min(highest, high+room)
}

// under is the room below the picture for the titles.
func under(all []series) vg.Length {
	return vg.Points(12) + vg.Points(18)*vg.Length(max(3, (len(all)+1)/2))
}

// legend writes the titles below the picture, in two columns.
func legend(c draw.Canvas, all []series) {
	style := plot.New().Legend.TextStyle
	half := (c.Max.X - c.Min.X) / 2
	for i, one := range all {
		x := c.Min.X + vg.Points(48) + half*vg.Length(i%2)
		y := c.Min.Y + under(all) - vg.Points(20) - vg.Points(18)*vg.Length(i/2)
		c.StrokeLine2(one.style, x, y+vg.Points(4), x+vg.Points(34), y+vg.Points(4))
		if !one.level {
			c.DrawGlyph(draw.GlyphStyle{Color: one.style.Color, Radius: vg.Points(3.5), Shape: one.shape},
				vg.Point{X: x + vg.Points(17), Y: y + vg.Points(4)})
		}
		c.FillText(style, vg.Point{X: x + vg.Points(42), Y: y}, one.title)
	}
}

// plainTicks are the library's ticks with exact labels. The library rounds labels to two digits: 1.05 would read 1.1.
func plainTicks(low, high float64) []plot.Tick {
	ticks := plot.DefaultTicks{}.Ticks(low, high)
	for i, t := range ticks {
		if t.Label != "" {
			ticks[i].Label = fmt.Sprintf("%.6g", t.Value)
		}
	}
	return ticks
}

// logTicks marks the digits of each power of ten at their logarithms, 1, 2 and 5 with numbers.
func logTicks(low, high float64) (ticks []plot.Tick) {
	for power := math.Floor(math.Log10(low)); power <= math.Ceil(math.Log10(high)); power++ {
		for digit := 1.0; digit < 10; digit++ {
			value := digit * math.Pow(10, power)
			if value < low || value > high {
				continue
			}
			tick := plot.Tick{Value: math.Log10(value)}
			if digit == 1 || digit == 2 || digit == 5 {
				tick.Label = fmt.Sprintf("%.3g", value)
			}
			ticks = append(ticks, tick)
		}
	}
	return ticks
}
