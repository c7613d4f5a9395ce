package vi_test

import (
	"context"
	"encoding/json"
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/infer/vi"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
)

// stops is the first update at which a rule stops a run with the given NELBOs, one row an update, or 0. The temperature
// is 0.
func stops(rule func(infer.Progress) bool, rows ...[]float64) int { return stopsAt(0, rule, rows...) }

// stopsAt is the same at a temperature.
func stopsAt(temperature float64, rule func(infer.Progress) bool, rows ...[]float64) int {
	for i, row := range rows {
		if rule(infer.Progress{Step: i + 1, Info: infer.Info{Temperature: temperature,
			Stats: map[string][]float64{"nelbo": row}}}) {
			return i + 1
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
	assert.EqualValues(t, 4, stops(rule, []float64{0}, []float64{0}, []float64{0}, []float64{0}),
		"no difference from 0")
	assert.EqualValues(t, 4, stops(rule, []float64{-10}, []float64{-10}, []float64{-10.5}, []float64{-10.5}),
		"negative values")
	// All chains must agree, and a window with a chain that was held has no mean.
	assert.Zero(t, stops(rule, []float64{1, 1}, []float64{1, 1}, []float64{1, 2}, []float64{1, 2}))
	assert.Zero(t, stops(rule, []float64{1, 1}, []float64{1, 1}, []float64{2, 1}, []float64{2, 1}))
	assert.EqualValues(t, 6, stops(rule, []float64{1, 1}, []float64{1, 1}, []float64{1, 2}, []float64{1, 2},
		[]float64{1, 2}, []float64{1, 2}))
	nan := math.NaN()
	assert.EqualValues(t, 8, stops(rule, []float64{1}, []float64{1}, []float64{1}, []float64{nan}, []float64{1},
		[]float64{1}, []float64{1}, []float64{1}))
	// Another method has no NELBO.
	assert.False(t, rule(infer.Progress{Step: 1}))

	// An NELBO that goes to 0, halving in each window, is never within a tenth of itself: 0.1 nats are enough, in the
	// units of any scale of the log posterior. The windows differ by T·4, 2, 1, ½, ¼, ⅛ and 1/16.
	for _, scale := range []float64{1, 1e-3, 1e3} {
		var halving [][]float64
		for i := range 20 {
			halving = append(halving, []float64{8 * scale * math.Pow(0.5, float64(i/2))})
		}
		assert.EqualValues(t, 16, stopsAt(scale, rule, halving...), "T = %g", scale)
		assert.Zero(t, stops(rule, halving...), "there is no unit at T = 0")
	}
	assert.EqualValues(t, 8, stopsAt(4, rule, falling...), "T below the values makes no difference")

	_, err := vi.Converged(0, 0.1)
	assert.ErrorContains(t, err, "vi.Converged: window is 0: it must be at least 1")
	_, err = vi.Converged(10, 0)
	assert.ErrorContains(t, err, "vi.Converged: relTol is 0")
	assert.ErrorIs(t, err, infer.ErrConfig)
}

// A run stops when the NELBO does not change any more, long before its last update; and an observer has its trace.
func TestRunStopsWhenConverged(t *testing.T) {
	transform := build(t, vi.Dense{Optimizer: adam, Samples: 4}, line)
	var trace vi.Trace
	r, err := infertest.Run(context.Background(), transform, params(lineLayout(), []float64{2, 3, 3, 3, 3}, 0),
		infer.Full(lineData()),
		infer.Options{Warmup: 20000, Draws: infer.None, Seed: 1, Until: must(vi.Converged(50, 0.02)), Observer: &trace})
	require.NoError(t, err)
	assert.Less(t, r.Updates, 5000)
	assert.Zero(t, r.Updates%50)
	require.Len(t, trace.NELBO, r.Updates)
	assert.Equal(t, r.Updates, trace.Steps[len(trace.Steps)-1])
	// The state keeps the same NELBO, as means over windows of the trace.
	var kept struct {
		Length int
		Means  [][]float64
	}
	require.NoError(t, json.Unmarshal(r.State.Save().Extra, &kept))
	require.Len(t, kept.Means, 1)
	require.Equal(t, (len(trace.NELBO)+kept.Length-1)/kept.Length, len(kept.Means[0]))
	for i, mean := range kept.Means[0] {
		window := trace.NELBO[i*kept.Length : min((i+1)*kept.Length, len(trace.NELBO))]
		want := 0.0
		for _, v := range window {
			want += v[0] / float64(len(window))
		}
		assert.InEpsilon(t, want, mean, 1e-12, "window %d", i)
	}
	// It is the rule that stopped it: applied to the trace it stops there.
	assert.Equal(t, r.Updates, stopsAt(1, must(vi.Converged(50, 0.02)), trace.NELBO...))
}

// Where q can be p the NELBO of a normalised density goes to 0, each sample's by itself, so that no relative change is
// small. With the mean of N the NELBO is 1/N of it, at T = 1/N.
func TestRunStopsWhereTheNELBOIsZero(t *testing.T) {
	n := correlated(2)
	for _, temperature := range []float64{1, 0.001} {
		f := func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
			value, _ := n.logPosterior()(p, b)
			return torch.Of(value.T().MustMulScalar(ts.FloatScalar(temperature), false)), nil
		}
		o := optim.Adam{LR: infer.Constant(0.05)}
		transform := build(t, vi.Dense{Optimizer: o, Samples: 8, Temperature: infer.Constant(temperature)}, f)
		r, err := infertest.Run(context.Background(), transform, params(n.layout(), make([]float64, 2), 0), infer.Full(nil),
			infer.Options{Warmup: 3000, Draws: infer.None, Seed: 1, Until: must(vi.Converged(50, 0.01))})
		require.NoError(t, err)
		assert.Less(t, r.Updates, 3000, "T = %g", temperature)
		within(t, n.m, must(r.State.Position().Values()), 0.02, "the mean")
	}
}
