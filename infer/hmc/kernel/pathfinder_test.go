package kernel

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// The covariance that Pathfinder finds is the metric where the target is normal: its variances are right within a
// factor of 1.6, where those of the unit metric are wrong by 450. It is not where the target is Neal's funnel of ten
// dimensions, a tenth as wide, which no normal distribution is near.
func TestMetricOfWhatPathfinderFinds(t *testing.T) {
	funnel := Func(10, func(x, grad []float64) float64 {
		v, precision := x[0], math.Exp(-x[0])
		grad[0] = -v/9 - 4.5
		lp := -v*v/18 - 4.5*v
		for i, y := range x[1:] {
			lp -= 100 * y * y * precision / 2
			grad[0] += 100 * y * y * precision / 2
			grad[i+1] = -100 * y * precision
		}
		return lp
	})
	normal := Func(10, func(x, grad []float64) float64 {
		lp := 0.0
		for i, v := range x {
			lp -= 100 * v * v * float64(i+1) / 2
			grad[i] = -100 * v * float64(i+1)
		}
		return lp
	})
	o := Options{Chains: 8, Warmup: None, Draws: 1, Seed: 3, Pathfinder: true}
	far := 0.0 // the mean factor by which a variance is wrong
	for _, c := range run(t, normal, o).Chains {
		require.Len(t, c.Metric.Diag, 10)
		for i, v := range c.Metric.Diag {
			far += math.Abs(math.Log(100*v*float64(i+1))) / 80
		}
	}
	t.Logf("variances are wrong by a factor of %.2f", math.Exp(far))
	require.Less(t, math.Exp(far), 1.6)
	found := run(t, funnel, o)
	o.Pathfinder = false
	left := 0
	for k, c := range run(t, funnel, o).Chains {
		searched := found.Chains[k].Gradients > c.Gradients+20 // more than the steps to see that there is no unit scale
		if searched && slices.Equal(c.Metric.Diag, found.Chains[k].Metric.Diag) {
			left++
		}
	}
	require.Greater(t, left, 4) // most of eight
}

// A target of unit scale is left as it is: the draws are those of a run without Pathfinder, after at most ten gradients
// more than that.
func TestPathfinderLeavesUnitScale(t *testing.T) {
	normal := Func(10, func(x, grad []float64) float64 {
		lp := 0.0
		for i, v := range x {
			precision := 0.5 + 0.5*float64(i)
			lp -= v * v * precision / 2
			grad[i] = -v * precision
		}
		return lp
	})
	o := Options{Chains: 4, Warmup: 50, Draws: 50, Seed: 9}
	plain := run(t, normal, o)
	o.Pathfinder = true
	for k, c := range run(t, normal, o).Chains {
		require.Equal(t, plain.Chains[k].Draws, c.Draws)
		more := c.Gradients - plain.Chains[k].Gradients
		require.Positive(t, more)
		require.LessOrEqual(t, more, int64(10))
	}
}
