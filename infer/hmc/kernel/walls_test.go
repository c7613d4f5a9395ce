package kernel

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A particle that goes on in steps of 0.001 and turns at each wall ends where Bounce says, in the direction that it
// says.
func TestBounce(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct{ lower, upper float64 }{{-1, 2}, {-inf, 0.5}, {-0.25, inf}, {-inf, inf}} {
		for _, end := range []float64{0.1, 1.9, 2.1, -1.3, 4.7, 8.2, -7.6, -40.3} {
			x, direction := 0.0, math.Copysign(1, end)
			begin := direction
			for range int(math.Round(math.Abs(end) / 0.001)) {
				if x += 0.001 * direction; x > c.upper {
					x, direction = 2*c.upper-x, -direction
				} else if x < c.lower {
					x, direction = 2*c.lower-x, -direction
				}
			}
			have, back := Bounce(end, c.lower, c.upper)
			assert.InDelta(t, x, have, 1e-9, "%v in %v", end, c) // the rounding of 40,000 steps
			assert.Equal(t, begin != direction, back, "%v in %v", end, c)
		}
	}
	for _, x := range []float64{inf, -inf} {
		have, back := Bounce(x, -1, 1)
		assert.Equal(t, x, have)
		assert.False(t, back)
	}
	nan, _ := Bounce(math.NaN(), -1, 1)
	assert.True(t, math.IsNaN(nan))
}
