package main

import (
	"io"
	"math"
	"path/filepath"

	"github.com/kelvin-ppl/kelvin/diag/plot"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/examples/internal/command"
)

// exact is the posterior at a temperature by sums over a grid: with two parameters that can be had. The grid has ten
// standard deviations on both sides and steps of a fortieth of one, where such sums have no error that shows.
func exact(temperature float64) law {
	const n = 400
	var all, sums, squares [2]float64
	width := math.Sqrt(temperature)
	for i := -n; i <= n; i++ {
		for j := -n; j <= n; j++ {
			x := [2]float64{0.8 + 0.05*width*float64(i)/2, 11 + 0.25*width*float64(j)/2}
			w := math.Exp((logPosterior(x[0], x[1]) + 6) / temperature)
			for k := range 2 {
				all[k], sums[k], squares[k] = all[k]+w, sums[k]+w*x[k], squares[k]+w*x[k]*x[k]
			}
		}
	}
	var l law
	for k := range 2 {
		l.mean[k] = sums[k] / all[k]
		l.sd[k] = math.Sqrt(squares[k]/all[k] - l.mean[k]*l.mean[k])
	}
	return l
}

// logPosterior is the log density of bioassay, without its constants.
func logPosterior(level, slope float64) float64 {
	sum := -level*level/8 - (slope-10)*(slope-10)/200
	for i, x := range doses {
		z := level + slope*x
		sum -= deaths[i]*math.Log1p(math.Exp(-z)) + (5-deaths[i])*math.Log1p(math.Exp(z))
	}
	return sum
}

// picture draws the intervals of the slope under all methods of the first table.
func picture(dir string, posteriors map[string]*draws.Draws) (err error) {
	var sites []draws.Site
	var columns [][]float64
	n := math.MaxInt
	for _, w := range ways {
		d := posteriors[w.name]
		if d.Total() < 100 {
			continue // a point has no interval
		}
		sites = append(sites, draws.Site{Name: w.name, Offset: len(sites), Size: 1})
		columns = append(columns, d.Pooled(1))
		n = min(n, d.Total())
	}
	slopes, err := draws.New(sites, nil, 1)
	if err != nil {
		return err
	}
	row := make([]float64, len(columns))
	for s := range n {
		for k, c := range columns {
			row[k] = c[s*len(c)/n]
		}
		if err := slopes.Append(row, nil); err != nil {
			return err
		}
	}
	return command.Picture(filepath.Join(dir, "3-slopes.png"), func(f io.Writer) error {
		return plot.Forest(f, slopes, nil, plot.Options{Title: "slope: 50 % and 95 %", Height: 3.5})
	})
}
