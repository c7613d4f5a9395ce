package ladder

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A cubic goes through its points, rises between them, and is inverted; a straight line stays one.
func TestCubic(t *testing.T) {
	for _, c := range [][2][]float64{
		{{0, 1, 3, 3.5, 9}, {0, 0.001, 5, 5.5, 7}}, {{1, 0.5, 0.1, 0}, {0, 2, 2.001, 9}}, {{0, 2}, {1, 5}},
	} {
		m := newCubic(c[0], c[1])
		for i := range len(m.x) - 1 {
			last := m.y[i]
			for step := range 101 {
				u := float64(step) / 100
				v := m.at(i, u)
				assert.GreaterOrEqual(t, v, last-1e-12)
				last = v
				assert.InDelta(t, m.x[i]+u*(m.x[i+1]-m.x[i]), m.inverse(v), 1e-6)
			}
			assert.InDelta(t, m.y[i+1], last, 1e-12)
		}
	}
	line := newCubic([]float64{0, 1, 5, 6}, []float64{0, 2, 10, 12})
	assert.InDelta(t, 3.7, line.inverse(7.4), 1e-9)
}

// Where the barrier is Λ(x) = log(1 + 99x), rungs at which it is i/8 of its total are x = (100^(i/8) − 1)/99. Ladders
// of 9 rungs that are adapted a few times with the exact Λ come there with either curve, from evenly spaced rungs that
// rise or fall.
func TestEqual(t *testing.T) {
	const n = 9
	barrier := func(x float64) float64 { return math.Log1p(99 * x) }
	for name, curve := range map[string]Curve{"lines": Line, "cubics": Cubic} {
		for _, falls := range []bool{false, true} {
			x, want := make([]float64, n), make([]float64, n)
			for i := range x {
				k := i
				if falls {
					k = n - 1 - i
				}
				x[i] = float64(k) / (n - 1)
				want[i] = (math.Pow(100, float64(k)/(n-1)) - 1) / 99
			}
			for range 40 {
				refused := make([]float64, n-1)
				for i := range refused {
					refused[i] = math.Abs(barrier(x[i+1]) - barrier(x[i]))
				}
				x = Equal(x, refused, n, curve)
			}
			assert.InDeltaSlice(t, want, x, 1e-9, "%s, falls: %v", name, falls)
		}
	}
}

// A pair that never refuses keeps a place: of a barrier of 0.001 + 0.001 half is the first interval's. More rungs than
// before share the pieces between them.
func TestEqualKeepsPairsThatNeverRefuse(t *testing.T) {
	assert.InDeltaSlice(t, []float64{0, 0.9, 1}, Equal([]float64{0, 0.9, 1}, []float64{0, 0}, 3, Line), 1e-15)
	assert.InDeltaSlice(t, []float64{1, 2, 3, 4, 5}, Equal([]float64{1, 5}, []float64{0.4}, 5, Line), 1e-15)
	assert.Equal(t, []float64{3, 7}, Equal([]float64{3, 4, 7}, []float64{0.4, 0.2}, 2, Cubic))
}
