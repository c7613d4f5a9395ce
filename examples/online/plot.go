package main

import (
	"fmt"
	"image/color"

	"gonum.org/v1/plot/vg"

	"github.com/kelvin-ppl/kelvin/examples/internal/figure"
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
	panels := make([][]*figure.Panel, len(all))
	low, high := 0.0, 0.0
	for i := range all {
		for team := range shown {
			p := panel(r, i, team)
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
	return figure.Save(path, panels, 16, 3*float64(len(all))+0.5, figure.Margins(8, 6, 12))
}

func panel(r outcome, filter, team int) *figure.Panel {
	p := figure.New()
	x := r.paths[filter]
	var low, mean, high, truth []float64
	for k := range x.day {
		at, sd := x.mean[k][team], x.sd[k][team]
		low, mean, high = append(low, at-2*sd), append(mean, at), append(high, at+2*sd)
	}
	for k := range r.league.days {
		truth = append(truth, r.league.ratings[k][team])
	}
	band := p.Area(figure.Between(x.day, low, high), shade)
	middle := p.Line(figure.Points(x.day, mean), blue, 1.5)
	line := p.Line(figure.Points(r.league.days, truth), orange, 1.5)
	if filter == 0 && team == shown-1 { // where there is room
		p.Legend.YOffs, p.Legend.Padding = vg.Points(2), vg.Points(2)
		p.Legend.Add("true rating", line)
		p.Legend.Add("mean", middle)
		p.Legend.Add("2 standard deviations", band)
	}
	return p
}
