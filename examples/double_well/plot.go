package main

import (
	"image/color"
	"io"
	"os"
	"path/filepath"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"

	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
)

const edge = 4.0 // of the panels

var (
	grey   = color.RGBA{150, 150, 150, 255}
	orange = color.RGBA{213, 94, 0, 255}
	faint  = color.NRGBA{0, 90, 150, 120} // for points and paths that lie over each other
)

// plotSamplers draws the draws of each sampler over contours of the density, side by side: the last states of parallel
// chains, and the path of a serial one.
func plotSamplers(path string, outcomes []outcome) error {
	panels := make([]*plot.Plot, len(outcomes))
	for i, o := range outcomes {
		p, err := panel(o)
		if err != nil {
			return err
		}
		panels[i] = p
	}
	canvas := vgimg.NewWith(vgimg.UseWH(15*vg.Inch, 5.4*vg.Inch), vgimg.UseDPI(96), vgimg.UseBackgroundColor(color.White))
	tiles := draw.Tiles{Rows: 1, Cols: len(panels), PadX: vg.Points(14), PadTop: vg.Points(6), PadBottom: vg.Points(4),
		PadRight: vg.Points(8), PadLeft: vg.Points(4)}
	for _, line := range plot.Align([][]*plot.Plot{panels}, tiles, draw.New(canvas)) {
		for c := range line {
			panels[c].Draw(line[c])
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return atomicfile.Replace(path, func(w io.Writer) error {
		_, err := vgimg.PngCanvas{Canvas: canvas}.WriteTo(w)
		return err
	})
}

func panel(o outcome) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = o.sampler.title
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = -edge, edge, -edge, edge
	p.X.Label.Text, p.Y.Label.Text = "x1", "x2"
	top := dim * logDensity(mode)
	contours := plotter.NewContour(grid{}, []float64{top - 6, top - 4, top - 2.5, top - 1.5, top - 0.7, top - 0.2}, nil)
	contours.LineStyles = []draw.LineStyle{{Color: grey, Width: vg.Points(0.7)}}

	points := plotter.XYs{}
	for _, chain := range o.chains {
		for _, x := range chain {
			points = append(points, plotter.XY{X: x[0], Y: x[1]})
		}
	}
	if o.sampler.serial {
		line, err := plotter.NewLine(points)
		if err != nil {
			return nil, err
		}
		line.Color, line.Width = faint, vg.Points(0.6)
		p.Add(line, contours)
		return p, nil
	}
	scatter, err := plotter.NewScatter(points[:min(len(points), 1500)])
	if err != nil {
		return nil, err
	}
	scatter.GlyphStyle = draw.GlyphStyle{Color: faint, Radius: vg.Points(1.6), Shape: draw.CircleGlyph{}}
	if o.sampler.heat == 0 { // all points of a mode are one
		scatter.GlyphStyle = draw.GlyphStyle{Color: orange, Radius: vg.Points(4), Shape: draw.CircleGlyph{}}
	}
	p.Add(contours, scatter)
	return p, nil
}

// grid is the log density on a grid of points.
type grid struct{}

const gridPoints = 161

func (grid) Dims() (c, r int)     { return gridPoints, gridPoints }
func (grid) X(c int) float64      { return -edge + 2*edge*float64(c)/(gridPoints-1) }
func (g grid) Y(r int) float64    { return g.X(r) }
func (g grid) Z(c, r int) float64 { return logDensity(g.X(c)) + logDensity(g.Y(r)) }
