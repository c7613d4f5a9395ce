// Package ladder places the rungs of replica exchange where all neighbours refuse alike many swaps. It is pure Go.
package ladder

import "math"

// Curve continues values y, which rise, between the points x, which rise or fall. It returns the x at which the value
// is y.
type Curve func(x, y []float64) (inverse func(y float64) float64)

// leastRefused gives a pair that never refuses a place on the ladder.
const leastRefused = 1e-3

// Equal is a ladder of n ≥ 2 rungs with the ends of x, whose pairs of neighbours refuse the fractions refused of their
// swaps. The barrier Λ at a rung is the sum of the fractions below it, which a curve continues between the rungs. Rung
// k of the new ladder is where Λ is k/(n−1) of its total, so that all pairs refuse equally often (Syed et al. 2022,
// algorithm 2). Rungs that are very near may come out as one number.
func Equal(x, refused []float64, n int, between Curve) []float64 {
	barrier := make([]float64, len(x))
	for i, r := range refused {
		barrier[i+1] = barrier[i] + math.Max(leastRefused, r)
	}
	last := len(x) - 1
	at := between(x, barrier)
	out := make([]float64, n)
	out[0], out[n-1] = x[0], x[last]
	for k := 1; k < n-1; k++ {
		out[k] = at(barrier[last] * float64(k) / float64(n-1))
	}
	return out
}

// piece is the index of the interval whose upper end is the first with a value of at least v.
func piece(y []float64, v float64) int {
	i := 0
	for i < len(y)-2 && y[i+1] < v {
		i++
	}
	return i
}

// Line is the curve of straight lines.
func Line(x, y []float64) func(float64) float64 {
	return func(v float64) float64 {
		i := piece(y, v)
		return x[i] + (x[i+1]-x[i])*(v-y[i])/(y[i+1]-y[i])
	}
}

// Cubic is a curve of cubics with a slope at each point, which rises between the points too (Fritsch and Carlson 1980).
func Cubic(x, y []float64) func(float64) float64 { return newCubic(x, y).inverse }

// cubic is Cubic between the points (x, y).
type cubic struct{ x, y, slope []float64 }

func newCubic(x, y []float64) cubic {
	n := len(x)
	c := cubic{x, y, make([]float64, n)}
	secant := func(i int) float64 { return (y[i+1] - y[i]) / (x[i+1] - x[i]) }
	c.slope[0], c.slope[n-1] = secant(0), secant(n-2)
	for i := 1; i < n-1; i++ {
		// The slope is a harmonic mean, with the weights of Fritsch and Butland (1984): the wider interval counts less.
		a, b := secant(i-1), secant(i)
		h, k := math.Abs(x[i]-x[i-1]), math.Abs(x[i+1]-x[i])
		c.slope[i] = 3 * (h + k) / ((2*k+h)/a + (k+2*h)/b)
	}
	return c
}

// at is the value at a fraction u of piece i.
func (c cubic) at(i int, u float64) float64 {
	h := c.x[i+1] - c.x[i]
	v := 1 - u
	return c.y[i]*v*v*(1+2*u) + c.y[i+1]*u*u*(3-2*u) + h*u*v*(c.slope[i]*v-c.slope[i+1]*u)
}

// inverse is the x at which the value is y, by bisection.
func (c cubic) inverse(y float64) float64 {
	i := piece(c.y, y)
	low, high := 0.0, 1.0
	for range 60 {
		mid := 0.5 * (low + high)
		if c.at(i, mid) < y {
			low = mid
		} else {
			high = mid
		}
	}
	return c.x[i] + 0.5*(low+high)*(c.x[i+1]-c.x[i])
}
