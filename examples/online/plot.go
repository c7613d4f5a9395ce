package main

import (
	"fmt"
	"image/color"
	"io"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"

	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
)

var (
	shade  = color.RGBA{186, 215, 234, 255}
	blue   = color.RGBA{0, 90, 150, 255}
	orange = color.RGBA{213, 94, 0, 255}
)

const shown = 4 // teams in the picture

// plotRatings draws the ratings of some teams over time, one row for each filter: the mean with a band of two standard
// deviations, and the true rating. The bands have a corner before and after each round of games.
func plotRatings(path string, all []filter, r outcome) error {
	panels := make([][]*plot.Plot, len(all))
	low, high := 0.0, 0.0
	for i := range all {
		for team := range shown {
			p, err := panel(r, i, team)
			if err != nil {
				return err
			}
			if i == 0 {
				p.Title.Text = fmt.Sprintf("team %d", team+1)
			}
			if i == len(all)-1 {
				p.X.Label.Text = "day"
			}
			if team == 0 {
				p.Y.Label.Text = all[i].title
			}
			low, high = min(low, p.Y.Min), max(high, p.Y.Max)
			panels[i] = append(panels[i], p)
		}
	}
	for _, row := range panels {
		for _, p := range row {
			p.Y.Min, p.Y.Max = low, high
		}
	}
	return save(path, panels, 16, 3*float64(len(all))+0.5)
}

func panel(r outcome, filter, team int) (*plot.Plot, error) {
	p := plot.New()
	x := r.paths[filter]
	var edge, mean, truth plotter.XYs
	for k, day := range x.day {
		edge = append(edge, plotter.XY{X: day, Y: x.mean[k][team] + 2*x.sd[k][team]})
		mean = append(mean, plotter.XY{X: day, Y: x.mean[k][team]})
	}
	for k := len(x.day) - 1; k >= 0; k-- {
		edge = append(edge, plotter.XY{X: x.day[k], Y: x.mean[k][team] - 2*x.sd[k][team]})
	}
	for k, day := range r.league.days {
		truth = append(truth, plotter.XY{X: day, Y: r.league.ratings[k][team]})
	}
	band, err := plotter.NewPolygon(edge)
	if err != nil {
		return nil, err
	}
	band.Color, band.LineStyle.Width = shade, 0
	middle, err := plotter.NewLine(mean)
	if err != nil {
		return nil, err
	}
	middle.Color, middle.Width = blue, vg.Points(1.5)
	line, err := plotter.NewLine(truth)
	if err != nil {
		return nil, err
	}
	line.Color, line.Width = orange, vg.Points(1.5)
	p.Add(band, middle, line)
	if filter == 0 && team == shown-1 { // where there is room
		p.Legend.YOffs, p.Legend.Padding = vg.Points(2), vg.Points(2)
		p.Legend.Add("true rating", line)
		p.Legend.Add("mean", middle)
		p.Legend.Add("2 standard deviations", band)
	}
	return p, nil
}

// save writes panels in rows and columns to a file; sizes are in inches.
func save(path string, panels [][]*plot.Plot, width, height float64) error {
	canvas := vgimg.NewWith(vgimg.UseWH(vg.Length(width)*vg.Inch, vg.Length(height)*vg.Inch), vgimg.UseDPI(96),
		vgimg.UseBackgroundColor(color.White))
	tiles := draw.Tiles{Rows: len(panels), Cols: len(panels[0]), PadX: vg.Points(8), PadY: vg.Points(8),
		PadTop: vg.Points(6), PadBottom: vg.Points(6), PadLeft: vg.Points(6), PadRight: vg.Points(12)}
	for i, line := range plot.Align(panels, tiles, draw.New(canvas)) {
		for c := range line {
			panels[i][c].Draw(line[c])
		}
	}
	return atomicfile.Replace(path, func(w io.Writer) error {
		_, err := vgimg.PngCanvas{Canvas: canvas}.WriteTo(w)
		return err
	})
}
