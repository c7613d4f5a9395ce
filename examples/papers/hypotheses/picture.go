package main

import (
	"fmt"
	"image/color"
	"io"
	"path/filepath"
	"strings"

	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// shown is how many networks of each prior have a histogram of their own in the picture of -predictive.
const shown = 4

// drawHistograms draws the classes of the first networks from each prior, and of the average over all of them, in the
// file predictive.png of a folder: a row for each prior, bars of the shares of classes 0 to 9. They are drawn again, so
// that a study whose trials are stored has the picture too.
func drawHistograms(dir string, trials []histograms) error {
	const classes = 10
	blue, grey := color.RGBA{0, 114, 178, 255}, color.RGBA{120, 120, 120, 255} // Okabe and Ito 2008
	var rows [][]*plot.Plot
	for i, h := range trials {
		all, err := h.classes()
		if err != nil {
			return err
		}
		average := averageOf(all)
		var row []*plot.Plot
		for k := range min(shown, len(all)) + 1 {
			shares, title, fill := average, fmt.Sprintf("average of %d", len(all)), grey
			if k < shown && k < len(all) {
				shares, title, fill = all[k], fmt.Sprintf("network %d", k+1), blue
			}
			p := plot.New()
			bars, err := plotter.NewBarChart(plotter.Values(shares), vg.Points(9))
			if err != nil {
				return fmt.Errorf("%s: %w", h.Prior, err)
			}
			bars.Color, bars.LineStyle.Width = fill, 0
			p.Add(bars)
			p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = -0.6, classes-0.4, 0, 1
			var digits plot.ConstantTicks
			for class := range classes {
				digits = append(digits, plot.Tick{Value: float64(class), Label: fmt.Sprint(class)})
			}
			p.X.Tick.Marker = digits
			p.Y.Tick.Marker = plot.ConstantTicks{{Value: 0, Label: "0"}, {Value: 0.5, Label: "0.5"}, {Value: 1, Label: "1"}}
			if i == 0 {
				p.Title.Text, p.Title.Padding = title, vg.Points(4)
			}
			if i == len(trials)-1 {
				p.X.Label.Text = "class"
			}
			if k == 0 {
				p.Y.Label.Text = strings.Replace(h.Prior.String(), "biases ", "biases\n", 1) // as tall as a panel
			}
			row = append(row, p)
		}
		rows = append(rows, row)
	}
	return atomicfile.Replace(filepath.Join(dir, "predictive.png"), func(w io.Writer) error {
		columns := len(rows[0])
		canvas := vgimg.NewWith(vgimg.UseWH(vg.Length(columns)*2.1*vg.Inch, vg.Length(len(rows))*1.7*vg.Inch),
			vgimg.UseDPI(96))
		tiles := draw.Tiles{Rows: len(rows), Cols: columns, PadX: vg.Points(8), PadY: vg.Points(8), PadTop: vg.Points(6),
			PadBottom: vg.Points(6), PadLeft: vg.Points(6), PadRight: vg.Points(10)}
		for i, row := range plot.Align(rows, tiles, draw.New(canvas)) {
			for k, c := range row {
				rows[i][k].Draw(c)
			}
		}
		_, err := (vgimg.PngCanvas{Canvas: canvas}).WriteTo(w)
		return err
	})
}
