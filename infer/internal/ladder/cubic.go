package ladder

import "math"

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
