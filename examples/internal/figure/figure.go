// Package figure draws the pictures of the examples: panels of lines, areas and dots, side by side in one file.
package figure

import (
	"image/color"
	"io"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"

	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
)

// Dashes are those of lines that are not data.
var Dashes = []vg.Length{vg.Points(4), vg.Points(3)}

// Panel is a plot that keeps the first error of what is added to it.
type Panel struct {
	*plot.Plot
	Err error
}

// New is an empty panel.
func New() *Panel { return &Panel{Plot: plot.New()} }

// Try keeps an error, and says whether there is none.
func (p *Panel) Try(err error) bool {
	if p.Err == nil {
		p.Err = err
	}
	return err == nil
}

// Line adds a line of a width in points.
func (p *Panel) Line(xy plotter.XYs, c color.Color, width float64, dashes ...vg.Length) *plotter.Line {
	line, err := plotter.NewLine(xy)
	if p.Try(err) {
		line.Color, line.Width, line.Dashes = c, vg.Points(width), dashes
		p.Add(line)
	}
	return line
}

// Area adds an area without an edge.
func (p *Panel) Area(edge plotter.XYs, c color.Color) *plotter.Polygon {
	area, err := plotter.NewPolygon(edge)
	if p.Try(err) {
		area.Color, area.LineStyle.Width = c, 0
		p.Add(area)
	}
	return area
}

// Dots adds circles of a radius in points.
func (p *Panel) Dots(xy plotter.XYs, c color.Color, radius float64) *plotter.Scatter {
	dots, err := plotter.NewScatter(xy)
	if p.Try(err) {
		dots.GlyphStyle = draw.GlyphStyle{Color: c, Radius: vg.Points(radius), Shape: draw.CircleGlyph{}}
		p.Add(dots)
	}
	return dots
}

// Points are y over x.
func Points(x, y []float64) plotter.XYs {
	xy := make(plotter.XYs, len(x))
	for i := range x {
		xy[i] = plotter.XY{X: x[i], Y: y[i]}
	}
	return xy
}

// Between is the edge of the area from low to high.
func Between(x, low, high []float64) plotter.XYs {
	edge := Points(x, high)
	for i := len(x) - 1; i >= 0; i-- {
		edge = append(edge, plotter.XY{X: x[i], Y: low[i]})
	}
	return edge
}

// Save writes panels in rows and columns to a PNG file; sizes are in inches. More, if any, is drawn
// on the whole of it in the end.
func Save(path string, rows [][]*Panel, width, height float64, tiles draw.Tiles, more ...func(draw.Canvas)) error {
	plots := make([][]*plot.Plot, len(rows))
	for r, row := range rows {
		for _, p := range row {
			if p.Err != nil {
				return p.Err
			}
			plots[r] = append(plots[r], p.Plot)
		}
	}
	tiles.Rows, tiles.Cols = len(rows), len(rows[0])
	canvas := vgimg.NewWith(vgimg.UseWH(vg.Length(width)*vg.Inch, vg.Length(height)*vg.Inch), vgimg.UseDPI(96),
		vgimg.UseBackgroundColor(color.White))
	whole := draw.New(canvas)
	for r, row := range plot.Align(plots, tiles, whole) {
		for c := range row {
			plots[r][c].Draw(row[c])
		}
	}
	for _, f := range more {
		f(whole)
	}
	return atomicfile.Replace(path, func(w io.Writer) error {
		_, err := vgimg.PngCanvas{Canvas: canvas}.WriteTo(w)
		return err
	})
}

// Margins are the room between and around panels, in points.
func Margins(between, around, right float64) draw.Tiles {
	return draw.Tiles{PadX: vg.Points(between), PadY: vg.Points(between), PadTop: vg.Points(around),
		PadBottom: vg.Points(around), PadLeft: vg.Points(around), PadRight: vg.Points(right)}
}
