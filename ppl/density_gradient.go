package ppl

import (
	"fmt"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/torch"
)

// checkGradient compares the gradient in each input with differences of values: at three points near the start, which
// are not where gradients tend to be 0, along two directions.
func (s *Site) checkGradient(differs []bool) {
	d := s.density
	at := func(x [][]float64) (v float64, grad [][]float64) {
		grad = make([][]float64, len(x))
		for i := range x {
			grad[i] = make([]float64, len(x[i]))
		}
		v, err := d.call(x, grad)
		if err != nil || math.IsInf(v, 0) {
			v = math.NaN() // outside of the function's domain
		}
		return v, grad
	}
	start := make([][]float64, len(d.inputs))
	for i, t := range d.inputs {
		start[i] = torch.Must(torch.ToSlice[float64](t))
	}
	for point := range 3 {
		x := make([][]float64, len(start))
		for i := range x {
			x[i] = slices.Clone(start[i])
			for j, v := range x[i] {
				if differs[i] {
					x[i][j] += 0.1 * (1 + math.Abs(v)) * math.Cos(1.7*float64(j)+float64(i)+0.3+2.1*float64(point))
				}
			}
		}
		v, grad := at(x)
		for i := range x {
			if !differs[i] || math.IsNaN(v) {
				continue
			}
			for j, g := range grad[i] {
				if math.IsNaN(g) || math.IsInf(g, 0) {
					s.fail("its value is %.4g, and its gradient in input %d is %v at element %d", v, i, g, j)
				}
			}
			for direction := range 2 {
				if why := misfit(x[i], grad[i], 2.1*float64(point), direction == 1, func(xi []float64) float64 {
					moved := slices.Clone(x)
					moved[i] = xi
					v, _ := at(moved)
					return v
				}); why != "" {
					s.fail("its gradient in input %d is wrong: along a line through a point near the start it is %s", i, why)
				}
			}
		}
	}
}

// misfit says how the derivative of f at x along a direction, by its gradient, differs from that by central differences
// of values. These are extrapolated to a step of 0 (Ridders 1982) from steps of 5e-2 to 4e-10 of 1 + |x|. One
// extrapolation that agrees with the gradient to 0.3 % settles that it is right: large steps do where values are noisy,
// small ones where the function is steep. Else it is wrong where three extrapolations in a row agree to 0.1 %, if
// values change there by far more than by their least change. All others, as of noise and at kinks, tell nothing.
func misfit(x, grad []float64, phase float64, even bool, f func(x []float64) float64) string {
	const (
		tolerance = 3e-3
		ratio     = 3.0
		levels    = 18
		columns   = 5
	)
	direction, slope, scale, rounding := along(x, grad, phase, even)
	moved := func(h float64) float64 {
		at := slices.Clone(x)
		for j := range at {
			at[j] += h * direction[j]
		}
		return f(at)
	}
	var estimates []estimate
	var rows [levels][]float64
	smallest := math.Inf(1) // change of values
	for level := range levels {
		h := 0.05 * math.Pow(ratio, -float64(level))
		above, below := moved(h), moved(-h)
		if above != below {
			smallest = min(smallest, math.Abs(above-below))
		}
		floor := 16 * 0x1p-53 * (math.Abs(above) + math.Abs(below) + rounding) / h
		row := []float64{(above - below) / (2 * h)}
		for j := range min(level, columns) {
			old, weight := rows[level-1][j], math.Pow(ratio, 2*float64(j+1))
			v := (weight*row[j] - old) / (weight - 1)
			row = append(row, v)
			if off := max(math.Abs(v-row[j]), math.Abs(v-slope)); off <= tolerance*scale {
				return ""
			}
			if level > j+2 { // NaN tells nothing
				off := max(math.Abs(v-rows[level-1][j+1]), math.Abs(v-rows[level-2][j+1]))
				if off <= tolerance/3*math.Abs(v)+floor {
					estimates = append(estimates, estimate{v, off + floor, h})
				}
			}
		}
		rows[level] = row
	}
	if math.IsInf(smallest, 0) {
		smallest = 0x1p-23 * math.Abs(f(x)) // values of float32 change by no less
	}
	best := surest(estimates, smallest)
	if math.Abs(best.v-slope) <= tolerance*scale+4*best.spread {
		return ""
	}
	return fmt.Sprintf("%.4g, and differences of values are %.4g ± %.1g", slope, best.v, best.spread)
}

// estimate is a derivative, how far it may be off, and the step that it was found with.
type estimate struct{ v, spread, h float64 }

// surest is the estimate that is off by least where values change by no less than smallest.
func surest(estimates []estimate, smallest float64) estimate {
	best := estimate{spread: math.Inf(1)}
	for _, e := range estimates {
		if e.spread += smallest / e.h; e.spread < best.spread {
			best = e
		}
	}
	return best
}

// along is a direction with the derivative along it, the scale of such a derivative, which is that of a sum of terms of
// any sign, and what rounding of x counts in it. In an even direction all elements add about the same, so that none
// hides behind others or cancels them.
func along(x, grad []float64, phase float64, even bool) (direction []float64, slope, scale, rounding float64) {
	least := math.Inf(1)
	for j, g := range grad {
		if g != 0 {
			least = min(least, math.Abs(g)*(1+math.Abs(x[j])))
		}
	}
	direction = make([]float64, len(x))
	for j, g := range grad {
		c := math.Cos(2.4*float64(j) + 0.7 + phase)
		direction[j] = (1 + math.Abs(x[j])) * (math.Copysign(0.5, c) + c/2)
		if even && g != 0 {
			direction[j] = least / g * (0.5 + math.Abs(c)/2)
		}
		slope += g * direction[j]
		scale = math.Hypot(scale, g*direction[j])
		rounding += math.Abs(g * x[j])
	}
	return direction, slope, scale, rounding
}
