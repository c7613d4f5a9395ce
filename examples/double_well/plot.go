package main

import (
	"image/color"
	"os"
	"path/filepath"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/kelvin-ppl/kelvin/examples/internal/figure"
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
	var panels []*figure.Panel
	for _, o := range outcomes {
		panels = append(panels, panel(o))
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	margins := draw.Tiles{PadX: vg.Points(14), PadTop: vg.Points(6), PadBottom: vg.Points(4), PadRight: vg.Points(8),
		PadLeft: vg.Points(4)}
	return figure.Save(path, [][]*figure.Panel{panels}, 15, 5.4, margins)
}

func panel(o outcome) *figure.Panel {
	p := figure.New()
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
		p.Line(points, faint, 0.6)
		p.Add(contours)
		return p
	}
	p.Add(contours)
	points = points[:min(len(points), 1500)]
	if o.sampler.heat == 0 { // all points of a mode are one
		p.Dots(points, orange, 4)
	} else {
		p.Dots(points, faint, 1.6)
	}
	return p
}

// grid is the log density on a grid of points.
type grid struct{}

const gridPoints = 161

func (grid) Dims() (c, r int)     { return gridPoints, gridPoints }
func (grid) X(c int) float64      { return -edge + 2*edge*float64(c)/(gridPoints-1) }
func (g grid) Y(r int) float64    { return g.X(r) }
func (g grid) Z(c, r int) float64 { return logDensity(g.X(c)) + logDensity(g.Y(r)) }
