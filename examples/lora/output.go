package main

import (
	"errors"
	"fmt"
	"image/color"
	"io"
	"path/filepath"
	"slices"

	"github.com/kelvin-ppl/kelvin/examples/internal/figure"
	"github.com/kelvin-ppl/kelvin/examples/internal/seeds"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// summary is the JSON output.
type summary struct {
	Seeds    int              `json:"seeds"`
	Episodes []string         `json:"episodes"` // their languages
	Before   []seeds.Estimate `json:"before"`   // loss of the base on each episode
	Alone    []seeds.Estimate `json:"alone"`    // loss of a model of each episode alone
	Excess   []line           `json:"excess"`   // of the loss after each episode, the metric of figure 6
	First    []line           `json:"first"`    // loss on the first episode after each
	Last     []line           `json:"last"`     // loss on each episode after the last
	Outliers []detector       `json:"outliers"`
	Claims   []claim          `json:"claims"`
}

type line struct {
	Method string           `json:"method"`
	Values []seeds.Estimate `json:"values"`
}

type detector struct {
	Method    string         `json:"method"`
	Total     seeds.Estimate `json:"auroc_total"`
	Aleatoric seeds.Estimate `json:"auroc_aleatoric"`
	Epistemic seeds.Estimate `json:"auroc_epistemic"` // −1 for single networks
	English   seeds.Estimate `json:"english_loss"`
	Latin     seeds.Estimate `json:"latin_loss"`
	// Inside is the mean uncertainty of English windows, outside that of Latin ones.
	Inside  uncertainty `json:"english_uncertainty"`
	Outside uncertainty `json:"latin_uncertainty"`
}

// uncertainty is in nats for a character. The first is the sum of the others.
type uncertainty struct {
	Total     seeds.Estimate `json:"total"`
	Aleatoric seeds.Estimate `json:"aleatoric"`
	Epistemic seeds.Estimate `json:"epistemic"` // 0 for single networks
}

// excess is the mean over the episodes seen so far of the loss on an episode, less that of a model of it alone.
func excess(losses [][]float64, single []float64) []float64 {
	out := make([]float64, len(losses))
	for n, row := range losses {
		for j := range n + 1 {
			out[n] += (row[j] - single[j]) / float64(n+1)
		}
	}
	return out
}

func summarise(set settings, all []outcome) (*summary, error) {
	s := &summary{Seeds: len(all), Episodes: languages, Claims: claimsOf(set, all)}
	perEpisode := func(value func(l learned, n int) float64) (out []seeds.Estimate) {
		for n := range episodes {
			var x []float64
			for _, o := range all {
				x = append(x, value(o.Learned, n))
			}
			out = append(out, seeds.Over(x))
		}
		return out
	}
	s.Before = perEpisode(func(l learned, n int) float64 { return l.Before[n] })
	s.Alone = perEpisode(func(l learned, n int) float64 { return l.Single[n] })
	for _, way := range ways(set) {
		name := way.name
		s.Excess = append(s.Excess, line{name, perEpisode(func(l learned, n int) float64 {
			return excess(l.Losses[name], l.Single)[n]
		})})
		s.First = append(s.First, line{name, perEpisode(func(l learned, n int) float64 { return l.Losses[name][n][0] })})
		s.Last = append(s.Last, line{name, perEpisode(func(l learned, n int) float64 {
			return l.Losses[name][len(episodes)-1][n]
		})})
	}
	for i, d := range all[0].Outliers {
		var failed error
		of := func(value func(detection) float64) seeds.Estimate {
			var x []float64
			for _, o := range all {
				x = append(x, value(o.Outliers[i]))
			}
			return seeds.Over(x)
		}
		uncertain := func(group int) uncertainty {
			kind := func(kind int) seeds.Estimate {
				return of(func(d detection) float64 { return d.mean(group, kind) })
			}
			return uncertainty{kind(total), kind(aleatoric), kind(epistemic)}
		}
		s.Outliers = append(s.Outliers, detector{Method: d.Method, Inside: uncertain(0), Outside: uncertain(1),
			Total: of(func(d detection) float64 { return d.Total }),
			Aleatoric: of(func(d detection) float64 {
				v, err := d.auroc(aleatoric)
				failed = errors.Join(failed, err)
				return v
			}),
			Epistemic: of(func(d detection) float64 { return d.Epistemic }),
			English:   of(func(d detection) float64 { return d.English }),
			Latin:     of(func(d detection) float64 { return d.Latin })})
		if failed != nil {
			return nil, fmt.Errorf("%s: %w", d.Method, failed)
		}
	}
	return s, nil
}

func (s *summary) print(w io.Writer, dir string) (err error) {
	f := func(format string, args ...any) {
		if err == nil {
			_, err = fmt.Fprintf(w, format, args...)
		}
	}
	f("Means ± standard errors over %s; nats for a character of test text.\n", seeds.Count(s.Seeds))
	for _, t := range []struct {
		title, columns string
		lines          []line
	}{{"Loss above that of a model of each episode alone, over the episodes seen", "after", s.Excess},
		{"Loss on " + s.Episodes[0] + ", the first episode", "after", s.First},
		{"Loss after the last episode", "on",
			slices.Concat([]line{{"base", s.Before}, {"each alone", s.Alone}}, s.Last)}} {
		f("\n%s", t.title)
		f("\n%-20s", t.columns)
		for _, e := range s.Episodes {
			f("  %-18s", e)
		}
		f("\n")
		for _, l := range t.lines {
			f("%-20s", l.Method)
			for _, v := range l.Values {
				f("  %7.4f ± %-8.4f", v.Mean, v.SE)
			}
			f("\n")
		}
	}
	f("\n%-20s  %-18s  %-18s  %-18s  %-18s  %-18s\n", "Latin or English?", "AUROC, total", "AUROC, aleatoric",
		"AUROC, epistemic", "English loss", "Latin loss")
	for _, d := range s.Outliers {
		f("%-20s  %7.3f ± %-8.3f  %7.3f ± %-8.3f", d.Method, d.Total.Mean, d.Total.SE, d.Aleatoric.Mean, d.Aleatoric.SE)
		if d.Epistemic.Mean < 0 {
			f("  %-18s", "")
		} else {
			f("  %7.3f ± %-8.3f", d.Epistemic.Mean, d.Epistemic.SE)
		}
		f("  %7.4f ± %-8.4f  %7.4f ± %-8.4f\n", d.English.Mean, d.English.SE, d.Latin.Mean, d.Latin.SE)
	}
	f("\n%-29s  %-18s  %-18s  %-18s\n", "Mean uncertainty", "total", "aleatoric", "epistemic")
	for _, d := range s.Outliers {
		for _, group := range []struct {
			name string
			of   uncertainty
		}{{"English", d.Inside}, {"Latin", d.Outside}} {
			f("%-20s  %-7s", d.Method, group.name)
			for _, v := range []seeds.Estimate{group.of.Total, group.of.Aleatoric, group.of.Epistemic} {
				f("  %7.4f ± %-8.4f", v.Mean, v.SE)
			}
			f("\n")
		}
	}
	f("\nA claim of the paper holds where its margin is above 0 by more than two standard errors over the seeds.\n")
	for _, c := range s.Claims {
		f("%-60s  %-3s  %7.4f ± %-8.4f\n", c.Claim, seeds.Verdict(s.Seeds, c.Holds), c.Margin.Mean, c.Margin.SE)
	}
	f("\nThe pictures are in %s.\n", dir)
	return err
}

// colours are told apart by readers with colour-blindness too (Okabe and Ito 2008).
var colours = []color.RGBA{{213, 94, 0, 255}, {0, 114, 178, 255}, {86, 180, 233, 255}, {120, 120, 120, 255}}

// draw draws what is forgotten, and the uncertainties of the first seed.
func (s *summary) draw(dir string, all []outcome) error {
	mean := s.panel("Mean over the episodes seen", "loss above a model of each alone, nats", s.Excess)
	first := s.panel(s.Episodes[0]+", the first episode", "loss, nats", s.First)
	if err := save(filepath.Join(dir, "forgetting.png"), mean, first); err != nil {
		return err
	}
	var panels []*figure.Panel
	for _, d := range all[0].Outliers {
		if d.Epistemic < 0 {
			continue
		}
		p := figure.New()
		p.Title.Text, p.Title.Padding = fmt.Sprintf("%s: AUROC %.2f total, %.2f epistemic", d.Method, d.Total, d.Epistemic),
			vg.Points(6)
		p.X.Label.Text, p.Y.Label.Text = "total uncertainty, nats", "epistemic uncertainty, nats"
		p.Legend.Top, p.Legend.Left, p.Legend.Padding = true, true, vg.Points(2)
		for g, name := range []string{"English", "Latin"} {
			var points plotter.XYs
			for _, u := range d.Uncertainty[g] {
				points = append(points, plotter.XY{X: u[0], Y: u[2]})
			}
			if marks := p.Dots(points, colours[1-g], 2.5); p.Err == nil {
				marks.Shape = []draw.GlyphDrawer{draw.CircleGlyph{}, draw.PyramidGlyph{}}[g]
				p.Legend.Add(name, marks)
			}
		}
		p.Y.Max += 0.15 * (p.Y.Max - p.Y.Min) // room for the legend
		panels = append(panels, p)
	}
	return save(filepath.Join(dir, "outliers.png"), panels...)
}

// panel draws lines over the episodes, with standard errors.
func (s *summary) panel(title, label string, lines []line) *figure.Panel {
	p := figure.New()
	p.Title.Text, p.Title.Padding, p.X.Label.Text, p.Y.Label.Text = title, vg.Points(6), "after", label
	p.Legend.Top, p.Legend.Left, p.Legend.Padding = true, true, vg.Points(2)
	var ticks plot.ConstantTicks
	for i, e := range s.Episodes {
		ticks = append(ticks, plot.Tick{Value: float64(i + 1), Label: e})
	}
	p.X.Tick.Marker = ticks
	for k, l := range lines {
		points, errors := make(plotter.XYs, len(l.Values)), make(plotter.YErrors, len(l.Values))
		for i, v := range l.Values {
			points[i].X, points[i].Y = float64(i+1)+0.02*float64(k), v.Mean
			errors[i].Low, errors[i].High = v.SE, v.SE
		}
		line := p.Line(points, colours[k], 1.5)
		p.Dots(points, colours[k], 2)
		bars, err := plotter.NewYErrorBars(struct {
			plotter.XYer
			plotter.YErrorer
		}{points, errors})
		if p.Try(err) {
			bars.Color = colours[k]
			p.Add(bars)
		}
		p.Legend.Add(l.Method, line)
	}
	p.Y.Max += 0.1 * (p.Y.Max - p.Y.Min) // room for the legend
	return p
}

// save writes panels as one picture.
func save(path string, panels ...*figure.Panel) error {
	return figure.Save(path, [][]*figure.Panel{panels}, 5*float64(len(panels)), 4, figure.Margins(10, 6, 14))
}
