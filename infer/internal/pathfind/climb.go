package pathfind

import (
	"errors"
	"math"

	"gonum.org/v1/gonum/floats"
)

// ErrStart says that density or gradient are not finite at the start.
var ErrStart = errors.New("the log density or its gradient is not finite at the start")

// climb is the limited-memory quasi-Newton method L-BFGS (Liu and Nocedal 1989), which goes up.
type climb struct {
	density     Density
	tolerance   float64
	memory      *memory
	x, grad     []float64
	value       float64
	iterations  int
	evaluations int
	ended       bool // the rise of the last step was within the tolerance

	direction, toX, toGrad, s, z []float64
}

func newClimb(density Density, start []float64, o Options) (*climb, error) {
	d := len(start)
	c := &climb{density: density, tolerance: o.Tolerance, memory: newMemory(d, o.History)}
	for _, v := range []*[]float64{&c.x, &c.grad, &c.direction, &c.toX, &c.toGrad, &c.s, &c.z} {
		*v = make([]float64, d)
	}
	copy(c.x, start)
	var err error
	if c.value, err = c.evaluate(c.x, c.grad); err == nil && math.IsNaN(c.value) {
		err = ErrStart
	}
	return c, err
}

// evaluate is the density at a point; NaN where it or the gradient is not finite.
func (c *climb) evaluate(x, grad []float64) (float64, error) {
	var value [1]float64
	c.evaluations++
	if err := c.density(x, value[:], grad); err != nil {
		return 0, err
	}
	if s := value[0] + floats.Norm(grad, 1); math.IsNaN(s) || math.IsInf(s, 0) {
		return math.NaN(), nil
	}
	return value[0], nil
}

// The conditions of a step of length t in a direction p from x with gradient g (Wolfe 1969), and how many lengths are
// tried.
const (
	sufficient = 1e-4 // log p rises by at least this part of t g·p
	flatter    = 0.9  // and its slope in the direction falls to at most this part
	mostTries  = 40
)

// step climbs one step, and reports whether there was one. The length is found by doubling and bisection (Lewis and
// Overton 2013, algorithm 2.6).
func (c *climb) step() (bool, error) {
	c.memory.ascend(c.direction, c.grad)
	slope := floats.Dot(c.direction, c.grad)
	t := 1.0
	if c.memory.len() == 0 || !(slope > 0) {
		copy(c.direction, c.grad)
		slope = floats.Dot(c.grad, c.grad)
		t = math.Min(1, 1/math.Sqrt(slope))
	}
	if !(slope > 0) || math.IsInf(slope, 1) {
		return false, nil
	}
	low, high := 0.0, math.Inf(1)
	for range mostTries {
		floats.AddScaledTo(c.toX, c.x, t, c.direction)
		value, err := c.evaluate(c.toX, c.toGrad)
		if err != nil {
			return false, err
		}
		switch {
		case !(value >= c.value+sufficient*t*slope):
			high = t
		case floats.Dot(c.toGrad, c.direction) > flatter*slope:
			low = t
		default:
			c.move(value)
			return true, nil
		}
		if t = 2 * low; !math.IsInf(high, 1) {
			t = (low + high) / 2
		}
	}
	return false, nil
}

// move goes to the point that was tried last.
func (c *climb) move(value float64) {
	floats.SubTo(c.s, c.toX, c.x)
	floats.SubTo(c.z, c.grad, c.toGrad)
	c.memory.add(c.s, c.z)
	rise := value - c.value
	c.ended = rise <= c.tolerance*math.Max(1, math.Max(math.Abs(value), math.Abs(c.value)))
	copy(c.x, c.toX)
	copy(c.grad, c.toGrad)
	c.value = value
	c.iterations++
}
