package vi_test

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/vi"
)

// stops is the first update at which a rule stops a run with the given NELBOs, one row an update, or 0.
func stops(rule func(infer.Progress) bool, rows ...[]float64) int64 {
	for i, row := range rows {
		if rule(infer.Progress{Step: int64(i + 1), Info: infer.Info{Stats: map[string][]float64{"nelbo": row}}}) {
			return int64(i + 1)
		}
	}
	return 0
}

func TestConverged(t *testing.T) {
	rule := must(vi.Converged(2, 0.1))
	// Means of the windows: 10, 6, 5, 4.6.
	falling := [][]float64{{12}, {8}, {7}, {5}, {5.5}, {4.5}, {4.6}, {4.6}}
	assert.EqualValues(t, 8, stops(rule, falling...))
	assert.EqualValues(t, 8, stops(rule, falling...), "it starts anew with a run")
	assert.Zero(t, stops(rule, falling[:7]...), "a window must be full")
	assert.Zero(t, stops(must(vi.Converged(2, 0.07)), falling...), "0.4 of 5 is more")
	assert.EqualValues(t, 4, stops(rule, []float64{0}, []float64{0}, []float64{0}, []float64{0}), "no difference from 0")
	assert.EqualValues(t, 4, stops(rule, []float64{-10}, []float64{-10}, []float64{-10.5}, []float64{-10.5}), "negative values")
	// All chains must agree, and a window with a chain that was held has no mean.
	assert.Zero(t, stops(rule, []float64{1, 1}, []float64{1, 1}, []float64{1, 2}, []float64{1, 2}))
	assert.Zero(t, stops(rule, []float64{1, 1}, []float64{1, 1}, []float64{2, 1}, []float64{2, 1}))
	assert.EqualValues(t, 6, stops(rule, []float64{1, 1}, []float64{1, 1}, []float64{1, 2}, []float64{1, 2}, []float64{1, 2}, []float64{1, 2}))
	nan := math.NaN()
	assert.EqualValues(t, 8, stops(rule, []float64{1}, []float64{1}, []float64{1}, []float64{nan}, []float64{1}, []float64{1}, []float64{1}, []float64{1}))
	// Another method has no NELBO.
	assert.False(t, rule(infer.Progress{Step: 1}))

	_, err := vi.Converged(0, 0.1)
	assert.ErrorContains(t, err, "vi.Converged: window is 0: it must be at least 1")
	_, err = vi.Converged(10, 0)
	assert.ErrorContains(t, err, "vi.Converged: relTol is 0")
	assert.ErrorIs(t, err, infer.ErrConfig)
}

// A run stops when the NELBO does not change any more, long before its last update; and its trace is that of the draws.
func TestRunStopsWhenConverged(t *testing.T) {
	transform := build(t, vi.Dense{Optimizer: adam, Samples: 4}, line)
	var trace vi.Trace
	r, err := infer.Run(context.Background(), transform, params(lineLayout(), []float64{2, 3, 3, 3, 3}, 0), infer.Full(lineData()),
		infer.RunConfig{Steps: 20000, Seed: 1, Until: must(vi.Converged(50, 0.02)), Observer: &trace})
	require.NoError(t, err)
	assert.Less(t, r.Steps, int64(5000))
	assert.Zero(t, r.Steps%50)
	require.Len(t, trace.NELBO, int(r.Steps))
	assert.Equal(t, r.Steps, trace.Steps[len(trace.Steps)-1])
	stored, err := r.Draws.Stat("nelbo", 0)
	require.NoError(t, err)
	for i, row := range trace.NELBO {
		require.Equal(t, stored[i], row[0])
	}
	// It is the rule that stopped it: applied to the trace it stops there.
	assert.Equal(t, r.Steps, stops(must(vi.Converged(50, 0.02)), trace.NELBO...))
}
