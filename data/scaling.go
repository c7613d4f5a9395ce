package data

import "math"

// Scaling is the map of a number to the scale of a design and back: z = (x - Mean)/SD. One that does nothing has mean 0
// and SD 1.
type Scaling struct {
	Mean float64 // of the training data
	SD   float64 // of the training data, divisor n-1, times Term.Scale
}

// To is z = (x - Mean)/SD.
func (s Scaling) To(x float64) float64 { return (x - s.Mean) / s.SD }

// Back is x = Mean + SD·z. Standard deviations and other distances have the factor SD alone.
func (s Scaling) Back(z float64) float64 { return s.Mean + s.SD*z }

// moments are the mean and the standard deviation, of divisor n-1, in two passes. Numbers are divided by a power of two
// first, which changes no digit, so that squares of large ones are finite.
func moments(x []float64) (mean, sd float64) {
	largest := 0.0
	for _, v := range x {
		largest = math.Max(largest, math.Abs(v))
	}
	_, e := math.Frexp(largest)
	for _, v := range x {
		mean += math.Ldexp(v, -e)
	}
	mean /= float64(len(x))
	var squares, rest float64
	for _, v := range x {
		d := math.Ldexp(v, -e) - mean
		squares += d * d
		rest += d
	}
	mean += rest / float64(len(x)) // what rounding left of the first pass
	squares -= rest * rest / float64(len(x))
	return math.Ldexp(mean, e), math.Ldexp(math.Sqrt(squares/float64(len(x)-1)), e)
}
