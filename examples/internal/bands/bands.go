// Package bands draws intervals over years, for the examples of series and of processes.
package bands

import (
	"image/color"
	"io"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"github.com/kelvin-ppl/kelvin/examples/internal/figure"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Interval is the middle of some draws, and the 90 % around it.
type Interval struct{ Low, Middle, High float64 }

// Of are the intervals of draws of shape [draws, T], one for each time.
func Of(x torch.Tensor) ([]Interval, error) {
	shape, err := torch.Shape(x)
	if err != nil {
		return nil, err
	}
	values, err := torch.ToSlice[float64](x)
	if err != nil {
		return nil, err
	}
	n, times := int(shape[0]), int(shape[1])
	out := make([]Interval, times)
	column := make([]float64, n)
	for t := range out {
		for i := range column {
			column[i] = values[i*times+t]
		}
		slices.Sort(column)
		q := func(p float64) float64 { return column[int(p*float64(n-1))] }
		out[t] = Interval{q(0.05), q(0.5), q(0.95)}
	}
	return out, nil
}

// Band is a name for intervals from a year on.
type Band struct {
	Name  string
	From  int
	Color color.NRGBA
	At    []Interval
}

// Draw writes a PNG of the bands, and of numbers from a year on. It leaves out numbers that are NaN.
func Draw(w io.Writer, title, unit string, from int, y []float64, all ...Band) error {
	p := figure.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, "year", unit
	p.X.Tick.Marker = plot.TickerFunc(func(low, high float64) []plot.Tick {
		ticks := plot.DefaultTicks{}.Ticks(low, high)
		for i, t := range ticks {
			if t.Label != "" {
				ticks[i].Label = strconv.Itoa(int(math.Round(t.Value)))
			}
		}
		return ticks
	})
	for _, b := range all {
		var year, low, middle, high []float64
		for t, v := range b.At {
			year, low = append(year, float64(b.From+t)), append(low, v.Low)
			middle, high = append(middle, v.Middle), append(high, v.High)
		}
		light := b.Color
		light.A = 60
		p.Area(figure.Between(year, low, high), light)
		line := p.Line(figure.Points(year, middle), b.Color, 1)
		p.Legend.Add(b.Name, line)
	}
	var points plotter.XYs
	for t, v := range y {
		if !math.IsNaN(v) {
			points = append(points, plotter.XY{X: float64(from + t), Y: v})
		}
	}
	if dots, err := plotter.NewScatter(points); p.Try(err) {
		dots.Radius = vg.Points(1.5)
		p.Add(dots)
	}
	if p.Err != nil {
		return p.Err
	}
	p.Legend.Left, p.Legend.Top = true, all[0].At[0].Middle < all[0].At[len(all[0].At)-1].Middle
	picture, err := p.WriterTo(18*vg.Centimeter, 9*vg.Centimeter, "png")
	if err != nil {
		return err
	}
	_, err = picture.WriteTo(w)
	return err
}
