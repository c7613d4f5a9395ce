package main

import (
	"fmt"
	"image"
	"image/color"
	"io"
	"math"
	"os"
	"path/filepath"

	"github.com/kelvin-ppl/kelvin/diag/score"
	"github.com/kelvin-ppl/kelvin/examples/internal/mnist"
	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// report prints the tables and draws the pictures.
func (t *task) report(w io.Writer, all []fitted, d *data, o options) error {
	if err := os.MkdirAll(o.pictures, 0o755); err != nil {
		return err
	}
	fmt.Fprintf(w, "%-18s  %-8s  %-6s  %-6s  entropy: %-7s %-8s  AUROC\n", "", "accuracy", "NLL", "ECE", "digits", d.what)
	var digits, strange [][]float64
	for _, m := range all {
		p, err := m.predict(t.Test)
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		q, err := m.predict(d.strange)
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		s, err := score.Score(logs(p), t.Labels)
		if err != nil {
			return err
		}
		calibration, err := score.ClassCalibration(p, t.Labels, score.Binning{})
		if err != nil {
			return err
		}
		known, unknown := entropy(p), entropy(q)
		auroc, err := score.AUROC(unknown, known)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%-18s  %-8.3f  %-6.3f  %-6.3f  %-16.3f %-8.3f  %.3f\n", m.name, s.Accuracy, s.LogLoss,
			calibration.ECE, stat.Mean(known, nil), stat.Mean(unknown, nil), auroc)
		digits, strange = append(digits, known), append(strange, unknown)
	}
	if err := histograms(filepath.Join(o.pictures, "outliers.png"), all, digits, strange, d.what); err != nil {
		return err
	}
	return t.turn(w, all, d, o)
}

func logs(p [][]float64) [][]float64 {
	out := make([][]float64, len(p))
	for i, row := range p {
		out[i] = make([]float64, len(row))
		for k, v := range row {
			out[i][k] = math.Log(v)
		}
	}
	return out
}

// turn shows all test images of the digit 1 turned.
func (t *task) turn(w io.Writer, all []fitted, d *data, o options) error {
	const digit = 1
	var share, unsure [][]float64 // [method][angle]
	fmt.Fprintf(w, "\na %d turned by       ", digit)
	for _, degrees := range angles() {
		fmt.Fprintf(w, "%5.0f°", degrees)
	}
	for _, m := range all {
		var right, doubt []float64
		for _, degrees := range angles() {
			pictures := mnist.Data{Side: d.images.Side}
			for i, label := range d.images.Labels {
				if label == digit {
					pictures.Pixels = append(pictures.Pixels, turned(d.images.Image(i), d.images.Side, degrees)...)
					pictures.Labels = append(pictures.Labels, label)
				}
			}
			x, err := set(pictures)
			if err != nil {
				return err
			}
			p, err := m.predict(x.X)
			if err != nil {
				return err
			}
			mean := 0.0
			for _, row := range p {
				mean += row[digit] / float64(len(p))
			}
			right, doubt = append(right, mean), append(doubt, stat.Mean(entropy(p), nil))
		}
		share, unsure = append(share, right), append(unsure, doubt)
		fmt.Fprintf(w, "\n%-18s: p ", m.name)
		for _, v := range right {
			fmt.Fprintf(w, " %5.2f", v)
		}
		fmt.Fprintf(w, "\n%-18s  H ", "")
		for _, v := range doubt {
			fmt.Fprintf(w, " %5.2f", v)
		}
	}
	fmt.Fprintf(w, "\n\nThe pictures are in %s.\n", o.pictures)
	for i, label := range d.images.Labels {
		if label == digit {
			return rotation(filepath.Join(o.pictures, "turned.png"), all, share, unsure, d.images.Image(i), d.images.Side)
		}
	}
	return fmt.Errorf("no test image is a %d", digit)
}

// colours are told apart by readers with colour-blindness too (Okabe and Ito 2008).
var colours = []color.RGBA{{0, 0, 0, 255}, {0, 114, 178, 255}, {213, 94, 0, 255}, {0, 158, 115, 255}}

// rotation draws probabilities and entropies against the angle, above an image that turns.
func rotation(path string, all []fitted, share, unsure [][]float64, digit []float64, side int) error {
	var panels [2]*plot.Plot
	for k, values := range [][][]float64{share, unsure} {
		p := plot.New()
		p.X.Label.Text = "turned by, degrees"
		p.Y.Label.Text = []string{"probability that it is a 1", "entropy, nats"}[k]
		p.Legend.Top = true
		for i, m := range all {
			var points plotter.XYs
			for j, degrees := range angles() {
				points = append(points, plotter.XY{X: degrees, Y: values[i][j]})
			}
			line, err := plotter.NewLine(points)
			if err != nil {
				return err
			}
			line.Color, line.Width = colours[i], vg.Points(1.8)
			p.Add(line)
			if k == 0 {
				p.Legend.Add(m.name, line)
			}
		}
		panels[k] = p
	}
	return save(path, panels[:], func(c draw.Canvas) {
		n := len(angles())
		size := (c.Max.X - c.Min.X) / vg.Length(n)
		for j, degrees := range angles() {
			pixels := turned(digit, side, degrees)
			grey := image.NewGray(image.Rect(0, 0, side, side))
			for i, v := range pixels {
				grey.Pix[i] = 255 - uint8(255*min(max(v, 0), 1))
			}
			x := c.Min.X + size*vg.Length(j)
			c.DrawImage(vg.Rectangle{Min: vg.Point{X: x + 2, Y: c.Min.Y}, Max: vg.Point{X: x + size - 2,
				Y: c.Min.Y + size - 4}}, grey)
		}
	})
}

// histograms draws the entropies of digits and of strange things for each method.
func histograms(path string, all []fitted, digits, strange [][]float64, what string) error {
	var panels []*plot.Plot
	for i, m := range all {
		p := plot.New()
		p.Title.Text, p.X.Label.Text, p.Y.Label.Text = m.name, "entropy, nats", "share of the images"
		p.X.Min, p.X.Max = 0, mostEntropy
		p.Legend.Top = true
		for k, values := range [][]float64{digits[i], strange[i]} {
			h := shares(values)
			c := colours[1+k]
			h.FillColor = color.NRGBA{c.R, c.G, c.B, 130}
			p.Add(h)
			if i == 0 {
				p.Legend.Add([]string{"digits", what}[k], h)
			}
		}
		p.Y.Max *= 1.2 // room for the legend
		panels = append(panels, p)
	}
	return save(path, panels, nil)
}

// mostEntropy is that of ten classes, in nats.
var mostEntropy = math.Log(10)

// shares is the histogram of entropies: the share of them in each of 20 bins of one width from 0 to the most that there
// can be. So the bins of digits and of strange things are the same, and their heights can be compared, whatever their
// numbers and ranges. An entropy that rounding put outside is in the bin at that end.
func shares(values []float64) *plotter.Histogram {
	const bins = 20
	width := mostEntropy / bins
	h := &plotter.Histogram{Width: width}
	for i := range bins {
		h.Bins = append(h.Bins, plotter.HistogramBin{Min: float64(i) * width, Max: float64(i+1) * width})
	}
	for _, v := range values {
		h.Bins[min(max(int(v/width), 0), bins-1)].Weight += 1 / float64(len(values))
	}
	return h
}

// save writes panels side by side as one picture, with a strip below where there is something to draw in it.
func save(path string, panels []*plot.Plot, below func(draw.Canvas)) error {
	return atomicfile.Replace(path, func(w io.Writer) error {
		wide, strip := vg.Length(len(panels))*vg.Length(3.6)*vg.Inch, vg.Length(0)
		if len(panels) == 2 {
			wide = 9 * vg.Inch
		}
		if below != nil {
			strip = wide / vg.Length(len(angles()))
		}
		canvas := vgimg.NewWith(vgimg.UseWH(wide, 3.4*vg.Inch+strip), vgimg.UseDPI(80))
		whole := draw.New(canvas)
		tiles := draw.Tiles{Rows: 1, Cols: len(panels), PadX: vg.Points(10), PadTop: vg.Points(6),
			PadBottom: vg.Points(4) + strip, PadLeft: vg.Points(4), PadRight: vg.Points(12)}
		for i, c := range plot.Align([][]*plot.Plot{panels}, tiles, whole)[0] {
			panels[i].Draw(c)
		}
		if below != nil {
			below(whole)
		}
		_, err := (vgimg.PngCanvas{Canvas: canvas}).WriteTo(w)
		return err
	})
}
