package plot

import (
	"cmp"
	"fmt"
	"image/color"
	"io"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/visible"
)

// Options are options of a picture. The zero value is a PNG of 5 by 5 inches, 96 dots per inch.
type Options struct {
	// Title is written above; the default is the figure's own.
	Title string
	// Width and Height are in inches, positive and at most 100; 0 is 5.
	Width, Height float64
	// Format is "png", "svg" or "pdf"; empty is "png".
	Format string
}

// defaults fills in what is zero, and checks the rest.
func (o Options) defaults() (Options, error) {
	for _, v := range []*float64{&o.Width, &o.Height} {
		if *v == 0 {
			*v = 5
		}
		if !(*v > 0 && *v <= 100) {
			return o, fmt.Errorf("diag/plot: %w: a side of %v inches, want above 0 and at most 100, or 0 for 5",
				draws.ErrRange, *v)
		}
	}
	o.Format = cmp.Or(o.Format, "png")
	if !slices.Contains([]string{"png", "svg", "pdf"}, o.Format) {
		return o, fmt.Errorf("diag/plot: %w: format %q, want png, svg or pdf", draws.ErrRange, o.Format)
	}
	return o, nil
}

// Colours told apart by readers with colour-blindness too (Okabe and Ito 2008).
var (
	blue   = color.RGBA{0, 114, 178, 255}
	light  = color.RGBA{86, 180, 233, 255}
	orange = color.RGBA{213, 94, 0, 255}
	grey   = color.RGBA{120, 120, 120, 255}
)

// dashes are those of lines that are not data.
var dashes = []vg.Length{vg.Points(4), vg.Points(3)}

// canvas is a plot that keeps the first error of what is added to it, for write.
type canvas struct {
	*plot.Plot
	err error
}

// add adds what was made of data, or keeps the error.
func (p *canvas) add(what string, made plot.Plotter, err error) {
	switch {
	case err == nil:
		p.Add(made)
	case p.err == nil:
		p.err = fmt.Errorf("diag/plot: %w: %s: %w", draws.ErrRange, what, err)
	}
}

// line adds a line; nil dashes are none.
func (p *canvas) line(xy plotter.XYs, c color.Color, dashes []vg.Length) { p.wide(xy, c, dashes, 1.2) }

// wide is line of a width in points.
func (p *canvas) wide(xy plotter.XYs, c color.Color, dashes []vg.Length, width float64) {
	line, err := plotter.NewLine(xy)
	if err == nil {
		line.Color, line.Dashes, line.Width = c, dashes, vg.Points(width)
	}
	p.add("line", line, err)
}

// points adds points.
func (p *canvas) points(xy plotter.XYs, c color.Color) {
	if len(xy) == 0 {
		return
	}
	points, err := plotter.NewScatter(xy)
	if err == nil {
		points.GlyphStyle = draw.GlyphStyle{Color: c, Radius: vg.Points(2.5), Shape: draw.CircleGlyph{}}
	}
	p.add("points", points, err)
}

// area adds an area without an edge.
func (p *canvas) area(xy plotter.XYs, c color.Color) {
	area, err := plotter.NewPolygon(xy)
	if err == nil {
		area.Color, area.LineStyle.Width = c, 0
	}
	p.add("area", area, err)
}

// write draws the picture.
func (p *canvas) write(w io.Writer, opt Options) error {
	if p.err != nil {
		return p.err
	}
	p.Title.Text = visible.Text(p.Title.Text)
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Label.Text = visible.Text(axis.Label.Text)
		if axis.Min == axis.Max { // room around a single value, of any size
			half := math.Max(1, math.Abs(axis.Min)/2)
			axis.Min, axis.Max = axis.Min-half, axis.Max+half
		}
		if _, ok := axis.Tick.Marker.(plot.DefaultTicks); ok {
			axis.Tick.Marker = ticks{}
		}
		if math.IsInf(axis.Max-axis.Min, 1) {
			return fmt.Errorf("diag/plot: %w: numbers from %g to %g are too far apart for an axis", draws.ErrRange, axis.Min,
				axis.Max)
		}
	}
	picture, err := p.WriterTo(vg.Length(opt.Width)*vg.Inch, vg.Length(opt.Height)*vg.Inch, opt.Format)
	if err != nil {
		return fmt.Errorf("diag/plot: draw: %w", err)
	}
	if _, err := picture.WriteTo(w); err != nil {
		return fmt.Errorf("diag/plot: write: %w", err)
	}
	return nil
}

// chainColour is the colour of a chain (Okabe and Ito 2008); after seven they begin again.
func chainColour(k int) color.Color {
	return [...]color.RGBA{blue, orange, {0, 158, 115, 255}, {204, 121, 167, 255}, {230, 159, 0, 255}, light,
		{60, 60, 60, 255}}[k%7]
}

// translucent is a colour through which others are seen.
func translucent(c color.Color, alpha uint8) color.Color {
	r, g, b, _ := c.RGBA()
	return color.NRGBA{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8), alpha}
}

// start checks what every picture is given, and begins one. kind is its title where the options have none; wrong is
// what is the matter with the data, if anything.
func start(w io.Writer, opt *Options, kind string, wrong error) (*canvas, error) {
	if w == nil {
		return nil, fmt.Errorf("diag/plot: %w: the writer is nil", draws.ErrRange)
	}
	o, err := opt.defaults()
	if err != nil {
		return nil, err
	}
	if wrong != nil {
		return nil, wrong
	}
	*opt = o
	p := plot.New()
	if p.Title.Text = opt.Title; opt.Title == "" {
		p.Title.Text = kind
	}
	return &canvas{Plot: p}, nil
}

// refuse refuses rows of numbers that a picture cannot show: none, or some that are not finite.
func refuse(what string, least int, rows ...[]float64) error {
	if len(rows) == 0 {
		return fmt.Errorf("diag/plot: %w: %s: there is nothing to draw", draws.ErrRange, what)
	}
	for k, row := range rows {
		if len(row) < least {
			return fmt.Errorf("diag/plot: %w: %s: row %d has %d numbers, want at least %d", draws.ErrRange, what, k, len(row),
				least)
		}
		for i, v := range row {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return fmt.Errorf("diag/plot: %w: %s: number %d of row %d is %v", draws.ErrRange, what, i, k, v)
			}
		}
	}
	return nil
}
