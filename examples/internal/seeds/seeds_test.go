package seeds

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

// 1, 2 and 3 are 2 ± √(1/3), beyond two errors of 0; −1, 2 and 5 are 2 ± √3, which is not.
func TestPositive(t *testing.T) {
	assert.InDelta(t, math.Sqrt(1.0/3), Over([]float64{1, 2, 3}).SE, 1e-15)
	assert.True(t, Positive([]float64{1, 2, 3}))
	assert.False(t, Positive([]float64{-1, 2, 5}))
	assert.False(t, Positive([]float64{-1, -2, -3}))
	assert.False(t, Positive([]float64{0, 0}), "no margin is none above 0")
	assert.True(t, Positive([]float64{2, 2}))
	assert.False(t, Positive([]float64{2}), "one seed has no standard error")
	assert.Equal(t, []string{"?", "?", "yes", "no"}, []string{Verdict(1, true), Verdict(1, false), Verdict(2, true),
		Verdict(2, false)})
	assert.Equal(t, []string{"one seed", "3 seeds"}, []string{Count(1), Count(3)})
}
