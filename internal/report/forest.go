package report

import (
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/sample"
)

// forestRows is how many elements the plot of intervals has room for.
const forestRows = 60

// forestData is the plot of intervals: quantiles of the draws of all chains at 2.5, 25, 50, 75 and 97.5 %, in the order
// of the model.
type forestData struct {
	Names []string     `json:"n"`
	Q     [][5]float64 `json:"q"` // places from Low to High, from 0 to 1
	Low   float64      `json:"lo"`
	High  float64      `json:"hi"`
	More  int          `json:"m"` // elements without room
}

// forestOf is nil where no element has draws that are finite and vary.
func forestOf(d *draws.Draws, names []string) *forestData {
	f := &forestData{Low: math.Inf(1), High: math.Inf(-1)}
	for i, name := range names {
		x := d.Pooled(i)
		slices.Sort(x)
		if len(x) == 0 || !finite(x[0]) || !finite(x[len(x)-1]) {
			continue
		}
		if len(f.Names) == forestRows {
			f.More++
			continue
		}
		var q [5]float64
		for k, p := range [5]float64{0.025, 0.25, 0.5, 0.75, 0.975} {
			q[k] = sample.Quantile(x, p)
		}
		f.Names, f.Q = append(f.Names, name), append(f.Q, q)
		f.Low, f.High = min(f.Low, q[0]), max(f.High, q[4])
	}
	if !(f.Low < f.High) || math.IsInf(f.High-f.Low, 0) {
		return nil
	}
	for i := range f.Q {
		for k, v := range f.Q[i] {
			f.Q[i][k] = math.Round((v-f.Low)/(f.High-f.Low)*1e4) / 1e4
		}
	}
	return f
}
