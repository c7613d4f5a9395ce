package main

import (
	"image/color"
	"io"
	"math"
	"sort"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"

	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
)

// colours of the methods, told apart by readers with colour-blindness too (Okabe and Ito 2008).
var colours = []color.RGBA{{0, 0, 0, 255}, {230, 159, 0, 255}, {0, 114, 178, 255}, {0, 158, 115, 255},
	{204, 121, 167, 255}, {213, 94, 0, 255},
	{86, 180, 233, 255}, {120, 120, 120, 255}, {150, 80, 20, 255}, {90, 60, 150, 255}}

// plotMarginals draws the marginal posterior density of every weight, all methods over each other, and a point estimate
// as a line.
func plotMarginals(path string, outcomes []outcome, names []string) error {
	const rows, cols = 2, features / 2
	plots := make([][]*plot.Plot, rows)
	for r := range plots {
		plots[r] = make([]*plot.Plot, cols)
		for c := range cols {
			p, err := panel(outcomes, r*cols+c, names[r*cols+c])
			if err != nil {
				return err
			}
			plots[r][c] = p
		}
	}
	plots[0][cols-1].Legend.Top = true
	canvas := vgimg.NewWith(vgimg.UseWH(16*vg.Inch, 8*vg.Inch), vgimg.UseDPI(96), vgimg.UseBackgroundColor(color.White))
	tiles := draw.Tiles{Rows: rows + 1, Cols: cols, PadX: vg.Points(12), PadY: vg.Points(12), PadTop: vg.Points(6),
		PadRight: vg.Points(6)}
	whole := draw.New(canvas)
	tiles.Rows = rows
	body := draw.Crop(whole, 0, 0, vg.Points(46), 0)
	for r, line := range plot.Align(plots, tiles, body) {
		for c := range line {
			plots[r][c].Draw(line[c])
		}
	}
	legend(draw.Crop(whole, vg.Points(12), 0, 0, -whole.Rectangle.Size().Y+vg.Points(42)), outcomes)
	return atomicfile.Replace(path, func(w io.Writer) error {
		_, err := vgimg.PngCanvas{Canvas: canvas}.WriteTo(w)
		return err
	})
}

// panel is the plot of one weight.
func panel(outcomes []outcome, element int, name string) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = name
	p.Y.Min = 0
	p.Y.Tick.Marker = plot.ConstantTicks(nil)
	top := 0.0
	for i, o := range outcomes {
		values := o.draws.Pooled(element)
		if len(values) < 2 {
			continue
		}
		line, err := plotter.NewLine(density(values))
		if err != nil {
			return nil, err
		}
		for _, xy := range line.XYs {
			top = math.Max(top, xy.Y)
		}
		line.Color, line.Width = colours[i%len(colours)], vg.Points(1.5)
		p.Add(line)
	}
	for i, o := range outcomes {
		if values := o.draws.Pooled(element); len(values) == 1 {
			line, err := plotter.NewLine(plotter.XYs{{X: values[0], Y: 0}, {X: values[0], Y: top}})
			if err != nil {
				return nil, err
			}
			line.Color, line.Width, line.Dashes = colours[i%len(colours)], vg.Points(1.5),
				[]vg.Length{vg.Points(4), vg.Points(3)}
			p.Add(line)
		}
	}
	return p, nil
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
