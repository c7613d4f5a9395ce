package main

import (
	"fmt"
	"image/color"
	"io"
	"slices"

	"github.com/kelvin-ppl/kelvin/examples/internal/classify"
	"github.com/kelvin-ppl/kelvin/examples/internal/seeds"
	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// row is a method's line of the table.
type row struct {
	Method   string         `json:"method"`
	Networks int            `json:"networks"`
	Accuracy seeds.Estimate `json:"accuracy"`
	NLL      seeds.Estimate `json:"nll"`
	ECE      seeds.Estimate `json:"ece"`
}

// summary is the JSON output.
type summary struct {
	Settings   settings `json:"settings"`
	Parameters int      `json:"parameters"`
	Seeds      int      `json:"seeds"`
	Single     []row    `json:"single"`
	Predictive []row    `json:"predictive"`
	Claims     []claim  `json:"claims"`
	Caveat     string   `json:"caveat,omitempty"` // of what was sampled
}

// claim is one of the paper, and whether it holds here.
type claim struct {
	Text   string `json:"claim"`
	Figure string `json:"figure"`
	Holds  bool   `json:"holds"`
	Seeds  int    `json:"seeds,omitempty"` // of a difference, which one seed does not tell from chance
}

// noPosterior is what to know about batch normalisation.
const noPosterior = "Batch normalisation takes its moments from the minibatch: the likelihood of an image depends on " +
	"the others of its batch, the minibatches estimate the log likelihood of no model, and no sampler here has a known " +
	"posterior. -norm frn has one."

// title is what the network is called.
func (s settings) title() string {
	if s.Net != twenty {
		return "ResNet++"
	}
	return "ResNet-20 with " + map[string]string{frn: "filter response normalisation",
		batchNorm: "batch normalisation", noNorm: "no norm"}[s.Norm]
}

// rounding is that of a friction that is measured as a logarithm in float64.
const rounding = 1e-9

func summarise(s settings, all []*result) *summary {
	sum := &summary{Settings: s, Seeds: len(all) / len(s.methods())}
	if s.Norm == batchNorm {
		sum.Caveat = noPosterior
	}
	of := func(method string, value func(*result) float64) (x []float64) {
		for _, r := range all {
			if r.Method == method {
				x = append(x, value(r))
			}
		}
		return x
	}
	for _, m := range s.methods() {
		for _, kind := range []struct {
			rows *[]row
			of   func(*result) classify.Metrics
		}{{&sum.Single, func(r *result) classify.Metrics { return r.Single }},
			{&sum.Predictive, func(r *result) classify.Metrics { return r.Predictive }}} {
			one := row{Method: m, Networks: 1,
				Accuracy: seeds.Over(of(m, func(r *result) float64 { return kind.of(r).Accuracy })),
				NLL:      seeds.Over(of(m, func(r *result) float64 { return kind.of(r).NLL })),
				ECE:      seeds.Over(of(m, func(r *result) float64 { return kind.of(r).ECE }))}
			if kind.rows == &sum.Predictive {
				one.Networks = int(of(m, func(r *result) float64 { return float64(r.Networks) })[0])
			}
			*kind.rows = append(*kind.rows, one)
		}
	}
	if s.Only != "" { // the claims compare all methods
		return sum
	}
	// A claim holds where the difference of pairs of one seed is beyond two standard errors over the seeds.
	beyond := func(text string, a, b func(*result) float64, first, second string) {
		x, y := of(first, a), of(second, b)
		for i := range x {
			x[i] -= y[i]
		}
		d := seeds.Over(x)
		sum.Claims = append(sum.Claims, claim{text, fmt.Sprintf("difference %.4f ± %.4f", d.Mean, d.SE),
			seeds.Positive(x), len(x)})
	}
	single := func(r *result) float64 { return r.Single.Accuracy }
	predictive := func(r *result) float64 { return r.Predictive.Accuracy }
	loss := func(r *result) float64 { return r.Predictive.NLL }
	ece := func(r *result) float64 { return r.Predictive.ECE }
	beyond("one network of ATMC is more accurate than SGD", single, single, "ATMC", "SGD")
	beyond("ATMC's average is more accurate than one network of it", predictive, single, "ATMC", "ATMC")
	beyond("ATMC's average has a lower NLL than SGNHT's", loss, loss, "SGNHT", "ATMC")
	beyond("ATMC's average has a lower NLL than SGD", loss, loss, "SGD", "ATMC")
	beyond("ATMC's average is better calibrated than SGD (ECE)", ece, ece, "SGD", "ATMC")
	beyond("more networks of ATMC do not overfit: the NLL of all is below that of the first half",
		func(r *result) float64 { return r.Half }, loss, "ATMC", "ATMC")
	// Frictions are those of all elements at the ends of all epochs of all seeds.
	least := slices.Min(of("ATMC", func(r *result) float64 { return r.Friction }))
	xi := slices.Min(of("ATMC", func(r *result) float64 { return r.Xi }))
	sum.Claims = append(sum.Claims, claim{"ATMC's friction is never below D",
		fmt.Sprintf("least friction %.6f D, of thermostats from %.3f D on", least, xi), least >= 1-rounding, 0})
	least = slices.Min(of("SGNHT", func(r *result) float64 { return r.Friction }))
	share := seeds.Over(of("SGNHT", func(r *result) float64 { return r.Negative }))
	sum.Claims = append(sum.Claims, claim{"SGNHT's friction is negative in places",
		fmt.Sprintf("least friction %.3f of the one set; %.2g %% are negative", least, 100*share.Mean), share.Mean > 0, 0})
	return sum
}

func (s *summary) print(w io.Writer) (err error) {
	f := func(format string, args ...any) {
		if err == nil {
			_, err = fmt.Fprintf(w, format, args...)
		}
	}
	f("%s: %d layers and %d parameters, %d training images, %d epochs, %d test images; means ± standard errors over "+
		"%s.\n", s.Settings.title(), s.Settings.Depth, s.Parameters, s.Settings.Images, s.Settings.Epochs,
		s.Settings.Tests, seeds.Count(s.Seeds))
	if s.Seeds == 1 {
		f("One seed has no standard errors: 0 stands for them, and no difference is told from chance.\n")
	}
	if s.Caveat != "" {
		f("%s\n", s.Caveat)
	}
	for _, kind := range []struct {
		title string
		rows  []row
	}{{"one network", s.Single}, {"average", s.Predictive}} {
		f("\n%-12s %5s  %-16s %-18s %-18s\n", kind.title, "nets", "accuracy %", "NLL", "ECE")
		for _, r := range kind.rows {
			f("%-12s %5d  %5.2f ± %-8.2f %6.4f ± %-9.4f %6.4f ± %-9.4f\n", r.Method, r.Networks, 100*r.Accuracy.Mean,
				100*r.Accuracy.SE, r.NLL.Mean, r.NLL.SE, r.ECE.Mean, r.ECE.SE)
		}
	}
	if len(s.Claims) == 0 {
		return err
	}
	f("\nClaims of the paper%s, here:\n", map[bool]string{true: " about ResNet++"}[s.Settings.Net == twenty])
	for _, c := range s.Claims {
		f("%-4s %s: %s\n", seeds.Verdict(c.Seeds, c.Holds), c.Text, c.Figure)
	}
	return err
}

// colours are told apart by readers with colour-blindness too (Okabe and Ito 2008).
var colours = []color.RGBA{{0, 0, 0, 255}, {86, 180, 233, 255}, {230, 159, 0, 255}, {213, 94, 0, 255},
	{0, 158, 115, 255}}

// draw is a reliability diagram: 8 bins of equal numbers of images, of the first seed.
func (s *summary) draw(path string, all []*result) error {
	p := plot.New()
	p.X.Label.Text, p.Y.Label.Text = "confidence", "accuracy"
	p.Legend.Top, p.Legend.Left = true, true
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, 1, 0, 1
	exact, err := plotter.NewLine(plotter.XYs{{X: 0, Y: 0}, {X: 1, Y: 1}})
	if err != nil {
		return err
	}
	exact.Dashes = []vg.Length{vg.Points(5), vg.Points(4)}
	p.Add(exact)
	for i, r := range all[:len(s.Settings.methods())] {
		var points plotter.XYs
		for _, b := range r.Bins {
			points = append(points, plotter.XY{X: b.Confidence, Y: b.Accuracy})
		}
		line, marks, err := plotter.NewLinePoints(points)
		if err != nil {
			return err
		}
		line.Color, marks.Color, line.Width = colours[i], colours[i], vg.Points(1.5)
		p.Add(line, marks)
		p.Legend.Add(r.Method, line)
	}
	return atomicfile.Replace(path, func(w io.Writer) error {
		canvas, err := p.WriterTo(5*vg.Inch, 4.5*vg.Inch, "png")
		if err != nil {
			return err
		}
		_, err = canvas.WriteTo(w)
		return err
	})
}
