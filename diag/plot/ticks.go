package plot

import (
	"fmt"
	"math"
	"strconv"

	"gonum.org/v1/plot"
)

// ticks are those of an axis of numbers: multiples of 1, 2 or 5 times a power of ten, four to nine of them, each with
// its label in as many decimals as the step has. gonum's own may leave out 0, label few, and write "0.00".
type ticks struct {
	Whole bool // numbers between whole ones mean nothing
}

// ticks is that of [plot.Ticker].
func (t ticks) Ticks(low, high float64) []plot.Tick {
	const (
		most  = 9
		slack = 1e-9 // of a step, for ends that rounding moves past their multiple
	)
	width := high - low
	if !(width > 1e-300) || math.IsInf(width, 1) { // below it 10^power has no digits
		return []plot.Tick{{Value: low, Label: fmt.Sprintf("%.3g", low)}, {Value: high, Label: fmt.Sprintf("%.3g", high)}}
	}
	power := math.Floor(math.Log10(width / most))
	if t.Whole {
		power = math.Max(power, 0)
	}
	for ; ; power++ {
		for _, times := range [3]float64{1, 2, 5} {
			step := times * math.Pow(10, power)
			from, to := math.Ceil(low/step-slack), math.Floor(high/step+slack)
			if to-from >= most {
				continue
			}
			var out []plot.Tick
			for i := range int(to-from) + 1 {
				v := (from + float64(i)) * step
				if power < 0 { // three steps of 0.1 are 0.3, and not 0.30000000000000004
					v = (from + float64(i)) * times / math.Pow(10, -power)
				}
				out = append(out, plot.Tick{Value: v, Label: label(v, power)})
			}
			return out
		}
	}
}

// label is a number with the decimals of a step of 10^power, and in scientific notation where that is shorter.
func label(v, power float64) string {
	if v == 0 {
		return "0"
	}
	if a := math.Abs(v); a >= 1e6 || power < -4 {
		return strconv.FormatFloat(v, 'g', int(math.Max(1, math.Floor(math.Log10(a))-power+1)), 64)
	}
	return strconv.FormatFloat(v, 'f', int(math.Max(0, -power)), 64)
}

// margin widens an axis by a twentieth on both sides, so that what ends at its ends is seen to end there.
func margin(a *plot.Axis) {
	width := (a.Max - a.Min) / 20
	a.Min, a.Max = a.Min-width, a.Max+width
}
