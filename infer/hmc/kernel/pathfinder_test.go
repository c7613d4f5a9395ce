package kernel

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// The covariance that Pathfinder finds is the metric where the target is normal, and is not where it is Neal's funnel
// of ten dimensions, which no normal distribution is near.
func TestMetricOfWhatPathfinderFinds(t *testing.T) {
	funnel := Func(10, func(x, grad []float64) float64 {
		v, precision := x[0], math.Exp(-x[0])
		grad[0] = -v/9 - 4.5
		lp := -v*v/18 - 4.5*v
		for i, y := range x[1:] {
			lp -= y * y * precision / 2
			grad[0] += y * y * precision / 2
			grad[i+1] = -y * precision
		}
		return lp
	})
	normal := Func(10, func(x, grad []float64) float64 {
		lp := 0.0
		for i, v := range x {
			lp -= v * v * float64(i+1) / 2
			grad[i] = -v * float64(i+1)
		}
		return lp
	})
	o := Options{Chains: 8, Warmup: None, Draws: 1, Seed: 3, Pathfinder: true}
	far := 0.0 // the mean factor by which a variance is wrong
	for _, c := range run(t, normal, o).Chains {
		for i, v := range c.Metric.Diag {
			far += math.Abs(math.Log(v*float64(i+1))) / 80
		}
	}
	require.Less(t, math.Exp(far), 1.6)
	found := run(t, funnel, o)
	o.Pathfinder = false
	left := 0
	for k, c := range run(t, funnel, o).Chains {
		if slices.Equal(c.Metric.Diag, found.Chains[k].Metric.Diag) {
			left++
		}
	}
	require.Greater(t, left, 4)
}
