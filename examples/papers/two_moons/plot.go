package main

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	stddraw "image/draw"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"

	diagplot "github.com/kelvin-ppl/kelvin/diag/plot"
	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// Colours of the maps, at equal distances: from label 0 over doubt to label 1, and from small to large.
var (
	decisions = []color.RGBA{{0, 90, 160, 255}, {110, 175, 220, 255}, {250, 250, 250, 255}, {245, 175, 90, 255},
		{200, 85, 0, 255}}
	amounts = []color.RGBA{{68, 1, 84, 255}, {59, 82, 139, 255}, {33, 145, 140, 255}, {94, 201, 98, 255},
		{253, 231, 37, 255}}
)

const columns = 4 // of panels

// pictures draws the maps and the reliability diagrams.
func (t *task) pictures(dir string, outcomes []outcome) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, m := range []struct {
		file, title string
		of          func(o outcome) []float64
		high        float64
		colours     []color.RGBA
	}{
		{"decision.png", "probability of label 1 (orange points); the black line is 1/2",
			func(o outcome) []float64 { return o.grid.p }, 1, decisions},
		{"uncertainty.png", "standard deviation of the probability over the draws", func(o outcome) []float64 { return o.sd },
			0.5, amounts},
		{"entropy.png", "epistemic part of the entropy (nats, at most log 2)",
			func(o outcome) []float64 { return o.epistemic }, math.Ln2, amounts},
	} {
		if err := t.maps(filepath.Join(dir, m.file), m.title, outcomes, m.of, m.high, m.colours); err != nil {
			return fmt.Errorf("%s: %w", m.file, err)
		}
	}
	return reliabilities(filepath.Join(dir, "reliability.png"), outcomes)
}

// maps draws a number at the points of the grid for each method, over the same part of the plane and
// with the same colours.
func (t *task) maps(path, title string, outcomes []outcome, of func(outcome) []float64, high float64,
	colours []color.RGBA) error {
	rows := (len(outcomes) + columns - 1) / columns
	canvas := vgimg.NewWith(vgimg.UseWH(14*vg.Inch, vg.Length(rows)*3.3*vg.Inch+0.9*vg.Inch), vgimg.UseDPI(96),
		vgimg.UseBackgroundColor(color.White))
	whole := draw.New(canvas)
	tiles := draw.Tiles{Rows: rows, Cols: columns, PadX: vg.Points(10), PadY: vg.Points(10),
		PadTop: vg.Points(4), PadLeft: vg.Points(8), PadRight: vg.Points(8), PadBottom: vg.Points(6)}
	body := draw.Crop(whole, 0, 0, vg.Points(62), 0)
	for i, o := range outcomes {
		p, err := t.panel(o, of(o), high, colours)
		if err != nil {
			return err
		}
		p.Draw(tiles.At(body, i%columns, i/columns))
	}
	bar, err := scale(title, high, colours)
	if err != nil {
		return err
	}
	side := 3.5 * vg.Inch
	bar.Draw(draw.Crop(whole, side, -side, vg.Points(6), -whole.Rectangle.Size().Y+vg.Points(58)))
	return writePNG(path, canvas.Image())
}

// panel is the map of one method with the training data.
func (t *task) panel(o outcome, values []float64, high float64, colours []color.RGBA) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = o.row.Title
	p.Title.TextStyle.Font.Size = vg.Points(13)
	p.HideAxes()
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = left, right, bottom, top
	p.X.Padding, p.Y.Padding = 0, 0
	p.Add(plotter.NewImage(t.pixels(values, high, colours), left, bottom, right, top))
	for label, fill := range []color.Color{decisions[0], decisions[4]} {
		var xys plotter.XYs
		for i, x := range t.train.x {
			if t.train.label[i] == label {
				xys = append(xys, plotter.XY{X: x[0], Y: x[1]})
			}
		}
		for _, glyph := range []draw.GlyphStyle{{Color: color.White, Radius: vg.Points(1.9)},
			{Color: fill, Radius: vg.Points(1.4)}} {
			glyph.Shape = draw.CircleGlyph{}
			scatter, err := plotter.NewScatter(xys)
			if err != nil {
				return nil, err
			}
			scatter.GlyphStyle = glyph
			p.Add(scatter)
		}
	}
	return p, nil
}

// pixels are the colours of values on the grid. In a map of decisions the pixels where they change are black.
func (t *task) pixels(values []float64, high float64, colours []color.RGBA) image.Image {
	img := image.NewRGBA(image.Rect(0, 0, t.side, t.side))
	for i, v := range values {
		c, r := i%t.side, i/t.side
		img.SetRGBA(c, r, shade(v/high, colours))
		if &colours[0] != &decisions[0] {
			continue
		}
		if c > 0 && (v > 0.5) != (values[i-1] > 0.5) || r > 0 && (v > 0.5) != (values[i-t.side] > 0.5) {
			img.SetRGBA(c, r, color.RGBA{A: 255})
		}
	}
	return img
}

// shade is the colour of a number from 0 to 1.
func shade(v float64, colours []color.RGBA) color.RGBA {
	at := max(0, min(1, v)) * float64(len(colours)-1)
	i := min(int(at), len(colours)-2)
	f := at - float64(i)
	mix := func(a, b uint8) uint8 { return uint8(math.Round((1-f)*float64(a) + f*float64(b))) }
	a, b := colours[i], colours[i+1]
	return color.RGBA{mix(a.R, b.R), mix(a.G, b.G), mix(a.B, b.B), 255}
}

// scale is the bar that says what the colours are.
func scale(title string, high float64, colours []color.RGBA) (*plot.Plot, error) {
	const n = 256
	img := image.NewRGBA(image.Rect(0, 0, n, 1))
	for i := range n {
		img.SetRGBA(i, 0, shade((float64(i)+0.5)/n, colours))
	}
	p := plot.New()
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, high, 0, 1
	p.X.Label.Text = title
	p.X.Padding, p.Y.Padding = 0, 0
	p.HideY()
	p.Add(plotter.NewImage(img, 0, 0, high, 1))
	return p, nil
}

// reliabilities puts the diagrams of all methods into one picture.
func reliabilities(path string, outcomes []outcome) error {
	const inches, dots, margin = 3.2, 96, 8
	edge := int(math.Round(inches*dots)) + 2*margin
	rows := (len(outcomes) + columns - 1) / columns
	all := image.NewRGBA(image.Rect(0, 0, columns*edge, rows*edge))
	stddraw.Draw(all, all.Bounds(), image.White, image.Point{}, stddraw.Src)
	for i, o := range outcomes {
		var buffer bytes.Buffer
		options := diagplot.Options{Title: fmt.Sprintf("%s, ECE %.3f", o.row.Title, o.row.ECE), Width: inches, Height: inches}
		if err := diagplot.Reliability(&buffer, o.reliability, options); err != nil {
			return err
		}
		img, err := png.Decode(&buffer)
		if err != nil {
			return err
		}
		at := image.Pt(i%columns*edge+margin, i/columns*edge+margin)
		stddraw.Draw(all, img.Bounds().Add(at), img, image.Point{}, stddraw.Src)
	}
	return writePNG(path, all)
}

func writePNG(path string, img image.Image) error {
	return atomicfile.Replace(path, func(w io.Writer) error { return png.Encode(w, img) })
}
