package pathfind

import (
	"errors"

	"gonum.org/v1/gonum/floats"
)

// MostApproach is how many evaluations of the density [Approach] makes at most, but for those of its last step.
const MostApproach = 500

// Approach climbs from a start of d numbers until it is as high as draws of the target are, and returns the point. A
// draw of a normal target is d/2 below the mode on average. With H the climb's inverse Hessian of -log p the mode is ½
// gᵀHg higher than a point, so the climb ends at the first point at which that, or the last rise, is at most d/2. It
// moves least where the target is flat, so that starts far apart stay so. It returns the start itself, without an
// error, where the density is not finite there.
func Approach(density Density, start []float64) ([]float64, error) {
	c, err := newClimb(density, start, Options{Tolerance: 1e-8, History: 6})
	if errors.Is(err, ErrStart) {
		return start, nil
	}
	enough := 0.5 * float64(len(start))
	for err == nil && c.evaluations < MostApproach {
		before, moved := c.value, false
		if moved, err = c.step(); !moved || c.ended || c.value-before <= enough {
			break
		}
		c.memory.ascend(c.direction, c.grad)
		if floats.Dot(c.direction, c.grad) <= 2*enough {
			break
		}
	}
	return c.x, err
}
