package plot

import (
	"fmt"
	"io"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	gonum "gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"github.com/kelvin-ppl/kelvin/diag/check"
	"github.com/kelvin-ppl/kelvin/diag/sbc"
	"github.com/kelvin-ppl/kelvin/internal/sample"
)

// match checks data and replicates of them.
func match(what string, least int, y []float64, replicates [][]float64) error {
	if len(replicates) == 0 {
		return refuse(what+" without replicates", 1)
	}
	for _, r := range replicates {
		if len(r) != len(y) {
			return refuse(fmt.Sprintf("%s of %d data and replicates of %d", what, len(y), len(r)), 1)
		}
	}
	return refuse(what, least, append([][]float64{y}, replicates...)...)
}

// Densities draws a Gaussian kernel density of the data in orange over those of up to 50 replicates.
func Densities(w io.Writer, y []float64, replicates [][]float64, opt Options) error {
	p, err := start(w, &opt, "data and replicates", match("densities", 2, y, replicates))
	if err != nil {
		return err
	}
	const most = 50
	shown := sample.Evenly(replicates, most)
	low, high, err := view("numbers", append([][]float64{y}, shown...)...)
	if err != nil {
		return err
	}
	p.X.Label.Text, p.Y.Label.Text, p.Y.Min = "value", "density", 0
	for _, r := range shown {
		p.wide(density(r, low, high), translucent(light, 110), nil, 0.7)
	}
	p.wide(density(y, low, high), orange, nil, 2)
	return p.write(w, opt)
}

// Statistic draws a histogram of a statistic of replicates, with that of the data as an orange line.
func Statistic(w io.Writer, o *check.Outcome, opt Options) error {
	p, err := start(w, &opt, "", nil)
	if err != nil {
		return err
	}
	if o == nil {
		return refuse("a statistic that is nil", 1)
	}
	if err := refuse("a statistic", 1, o.Replicated, []float64{o.Observed}); err != nil {
		return err
	}
	if opt.Title == "" {
		p.Title.Text = fmt.Sprintf("P(replicated > observed) = %.3f", o.P)
	}
	p.X.Label.Text, p.Y.Label.Text = "statistic", "replicates"
	low, width, counts := bins(o.Replicated)
	top := slices.Max(counts)
	for b, c := range counts {
		from, to := low+width*float64(b), low+width*float64(b+1)
		p.area(plotter.XYs{{X: from}, {X: from, Y: c}, {X: to, Y: c}, {X: to}},
			light)
	}
	p.line(plotter.XYs{{X: o.Observed}, {X: o.Observed, Y: top}}, orange, nil)
	p.Y.Min = 0
	return p.write(w, opt)
}

// bins counts values in at most 30 bins of one width, which begin at low. Where all values are integers, each bin has
// as many integers as another: counts of 2, 1, 2, ... integers would be a comb that the values do not have.
func bins(x []float64) (low, width float64, counts []float64) {
	const most = 30
	low, high := slices.Min(x), slices.Max(x)
	n := most
	whole := !slices.ContainsFunc(x, func(v float64) bool { return v != math.Trunc(v) || math.Abs(v) > 1<<52 })
	switch {
	case whole:
		width = math.Ceil((high - low + 1) / most)
		n = int(math.Ceil((high - low + 1) / width))
		low -= 0.5
	case low == high:
		low, width = low-0.5, 1./most
	default:
		width = (high - low) / most
		if math.IsInf(width, 1) {
			width = high/most - low/most
		} else if width == 0 { // of a few subnormal numbers
			n, width = 1, high-low
		}
	}
	counts = make([]float64, n)
	for _, v := range x {
		counts[int(min(float64(n-1), (v-low)/width))]++
	}
	return low, width, counts
}

// Intervals draws the predictive interval of each datum over x: a thin line has the middle 95 % of its replicates, a
// thick one the middle half, and a point is the datum, orange where it is outside the 95 %. A nil x is the order of the
// data by value. The title has the part of the data inside each.
func Intervals(w io.Writer, x, y []float64, replicates [][]float64, opt Options) error {
	p, err := start(w, &opt, "", match("intervals", 1, y, replicates))
	if err != nil {
		return err
	}
	p.X.Label.Text, p.Y.Label.Text = "x", "value"
	if x == nil {
		p.X.Label.Text = "data, by value"
		order := make([]int, len(y))
		sorted := slices.Clone(y)
		floats.ArgsortStable(sorted, order)
		x = make([]float64, len(y))
		for at, i := range order {
			x[i] = float64(at + 1)
		}
	}
	if len(x) != len(y) {
		return refuse(fmt.Sprintf("intervals of %d data at %d places", len(y), len(x)), 1)
	}
	if err := refuse("places of intervals", 1, x); err != nil {
		return err
	}
	var inside, outside plotter.XYs
	middle := 0
	for i, v := range y {
		column := make([]float64, len(replicates))
		for s, r := range replicates {
			column[s] = r[i]
		}
		slices.Sort(column)
		var ends [4]float64
		for k, q := range [4]float64{0.025, 0.25, 0.75, 0.975} {
			ends[k] = sample.Quantile(column, q)
		}
		for _, part := range []struct{ low, high, width float64 }{{ends[0], ends[3], 1}, {ends[1], ends[2], 3}} {
			p.wide(plotter.XYs{{X: x[i], Y: part.low}, {X: x[i], Y: part.high}}, light, nil,
				part.width)
		}
		if v >= ends[1] && v <= ends[2] {
			middle++
		}
		if v >= ends[0] && v <= ends[3] {
			inside = append(inside, plotter.XY{X: x[i], Y: v})
		} else {
			outside = append(outside, plotter.XY{X: x[i], Y: v})
		}
	}
	if opt.Title == "" {
		p.Title.Text = fmt.Sprintf("%.0f %% of the data in the 50 %%, %.0f %% in the 95 %%",
			100*float64(middle)/float64(len(y)), 100*float64(len(inside))/float64(len(y)))
	}
	p.points(inside, blue)
	p.points(outside, orange)
	return p.write(w, opt)
}

// mostCounts is how many values of counts a rootogram has room for.
const mostCounts = 1000

// Rootogram draws counts: the line is the root of the mean number of replicated data of each value, from 0 on, in an
// area that has the middle 95 % of the replicates. Bars as long as the roots of the numbers in the data hang from the
// line: where they do not end near the dashed line at 0, the model has too many or too few of that value (Kleiber and
// Zeileis 2016). Counts are whole numbers from 0 to 1000.
func Rootogram(w io.Writer, y []float64, replicates [][]float64, opt Options) error {
	p, err := start(w, &opt, "hanging rootogram", match("a rootogram", 1, y, replicates))
	if err != nil {
		return err
	}
	most := 0
	count := func(x []float64) ([]float64, error) {
		out := make([]float64, mostCounts+1)
		for _, v := range x {
			if v < 0 || v > mostCounts || v != math.Trunc(v) {
				return nil, refuse(fmt.Sprintf("a rootogram of %v, which is no whole number from 0 to %d", v, mostCounts),
					1)
			}
			out[int(v)]++
			most = max(most, int(v))
		}
		return out, nil
	}
	observed, err := count(y)
	if err != nil {
		return err
	}
	tables := make([][]float64, len(replicates))
	for s, r := range replicates {
		if tables[s], err = count(r); err != nil {
			return err
		}
	}
	var line, upper, lower plotter.XYs
	column := make([]float64, len(tables))
	for v := range most + 1 {
		mean := 0.0
		for s, t := range tables {
			column[s] = t[v]
			mean += t[v] / float64(len(tables))
		}
		slices.Sort(column)
		at := float64(v)
		line = append(line, plotter.XY{X: at, Y: math.Sqrt(mean)})
		upper = append(upper, plotter.XY{X: at, Y: math.Sqrt(sample.Quantile(column, 0.975))})
		lower = append(lower, plotter.XY{X: at, Y: math.Sqrt(sample.Quantile(column, 0.025))})
	}
	for v, at := range line {
		bottom := at.Y - math.Sqrt(observed[v])
		p.area(plotter.XYs{{X: at.X - 0.4, Y: bottom}, {X: at.X - 0.4, Y: at.Y},
			{X: at.X + 0.4, Y: at.Y}, {X: at.X + 0.4, Y: bottom}}, light)
	}
	slices.Reverse(lower)
	p.area(append(upper, lower...), translucent(orange, 70))
	p.line(line, orange, nil)
	p.line(plotter.XYs{{X: -0.5}, {X: float64(most) + 0.5}}, grey, dashes)
	p.X.Label.Text, p.Y.Label.Text = "count", "number of data, as roots"
	p.X.Tick.Marker, p.Y.Tick.Marker = ticks{Whole: true}, roots{}
	return p.write(w, opt)
}

// roots are the ticks of an axis of roots: each has the number whose root it is, below 0 with its sign.
type roots struct{}

// Ticks is that of plot.Ticker.
func (roots) Ticks(low, high float64) []gonum.Tick {
	out := ticks{}.Ticks(low, high)
	var whole []gonum.Tick
	for _, t := range out {
		square := math.Copysign(math.Round(t.Value*t.Value), t.Value)
		tick := gonum.Tick{Value: math.Copysign(math.Sqrt(math.Abs(square)), square),
			Label: fmt.Sprintf("%.0f", square+0)}
		if n := len(whole); n == 0 || whole[n-1].Value != tick.Value {
			whole = append(whole, tick)
		}
	}
	return whole
}

// PIT draws the empirical distribution function of probability integral transforms, less the uniform one, and the band
// in which that of uniform ones is everywhere with probability 0.95 (Säilynoja, Bürkner and Vehtari 2022): those of
// check.LOOPIT, of calibrated predictions. A slope that rises in the middle and falls at the ends means predictions
// that are too wide, the opposite too narrow. The title has the probability that uniform ones are as far out somewhere.
func PIT(w io.Writer, pit []float64, opt Options) error {
	p, err := start(w, &opt, "", refuse("transforms", 1, pit))
	if err != nil {
		return err
	}
	const cells = 199
	ranks := make([]int, len(pit))
	for i, v := range pit {
		if v < 0 || v > 1 {
			return refuse(fmt.Sprintf("a transform of %v, which is no probability", v), 1)
		}
		ranks[i] = min(cells, int(v*(cells+1)))
	}
	r := sbc.Result{Draws: cells, Ranks: map[string][]int{"PIT": ranks}}
	c, err := r.Curve("PIT", 0.95)
	if err != nil {
		return fmt.Errorf("diag/plot: %w", err)
	}
	if opt.Title == "" {
		p.Title.Text = fmt.Sprintf("PIT, p = %.3f", c.P)
	}
	p.X.Label.Text, p.Y.Label.Text = "z", "ECDF(z) − z"
	var own, band, back plotter.XYs
	for i, z := range c.Z {
		own = append(own, plotter.XY{X: z, Y: c.Difference[i]})
		band, back = append(band, plotter.XY{X: z, Y: c.High[i]}), append(back, plotter.XY{X: z, Y: c.Low[i]})
	}
	slices.Reverse(back)
	p.area(append(band, back...), translucent(grey, 60))
	p.line(own, blue, nil)
	p.line(plotter.XYs{{}, {X: 1}}, grey, dashes)
	return p.write(w, opt)
}
