package vi_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/infer/vi"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
	"github.com/kelvin-ppl/kelvin/torch"
)

// notes are those of a fit of a number of updates.
func notes(t *testing.T, transform infer.Transform, start infer.Params, steps int) []draws.Note {
	t.Helper()
	r, err := infertest.Run(context.Background(), transform, start, infer.Full(nil),
		infer.Options{Warmup: steps, Draws: infer.None, Seed: 1})
	require.NoError(t, err)
	saved := r.State.Save()
	restored, err := transform.(infer.Restorer).Restore(start.Layout, saved)
	require.NoError(t, err)
	run := infer.RunSummary{Updates: steps, Info: infer.Info{Temperature: 1}}
	found := transform.(infer.Noter).Notes(r.State, run)
	assert.Equal(t, found, transform.(infer.Noter).Notes(restored, run), "a checkpoint keeps the NELBO so far")
	return found
}

// A fit that ends on its way up is a serious note with a field to set; one that has settled has none, whatever its
// length.
func TestNotesOfAFitThatHasNotSettled(t *testing.T) {
	n := correlated(3)
	start := params(n.layout(), []float64{8, -8, 8, 8, 8, -8}, 2)
	short := build(t, vi.Dense{Optimizer: optim.Adam{LR: infer.Constant(0.01)}}, n.logPosterior())
	found := notes(t, short, start, 300)
	require.Len(t, found, 1)
	assert.Equal(t, "elbo_not_settled", found[0].Kind)
	assert.True(t, found[0].Serious)
	assert.Contains(t, found[0].Text, "2 of 2 chains still climbs")
	assert.Contains(t, found[0].Advice, "infer.Options.Warmup")
	assert.Contains(t, found[0].Advice, "vi.Dense{Optimizer: optim.Adam{LR: ...}}")

	found = notes(t, short, start, 5)
	require.Len(t, found, 1)
	assert.Contains(t, found[0].Text, "5 updates, too few to tell")

	for _, steps := range []int{4000, 3333} {
		assert.Empty(t, notes(t, build(t, vi.Dense{}, n.logPosterior()), start, steps))
	}
}

// Two normal distributions at ±5, one of e⁻ʷ of the weight: fits that start at either end there, 10 standard deviations
// and w nats apart. Above a nat the better one is to be used; below, the draws would be an even mixture where the
// weights are 1 and e⁻ʷ.
func TestNotesOfDifferentOptima(t *testing.T) {
	hills := func(w float64) infer.LogPosterior {
		return func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
			left, right := p.Get("x").Add(5).Square().Mul(-0.5).Sub(w), p.Get("x").Sub(5).Square().Mul(-0.5)
			return torch.Stack(0, left, right).LogSumExp(0), nil
		}
	}
	start := params(layout(infer.Shapes{"x": {}}), []float64{-4, 4}, 2)
	found := notes(t, build(t, vi.Diag{}, hills(3)), start, 4000)
	require.Len(t, found, 1)
	assert.Equal(t, "different_optima", found[0].Kind)
	assert.Contains(t, found[0].Text, "the ELBO of chain 0 is 3 nats below that of chain 1")
	assert.Contains(t, found[0].Advice, "chain 1 alone")

	found = notes(t, build(t, vi.Diag{}, hills(0.5)), start, 4000)
	require.Len(t, found, 1)
	assert.Equal(t, "fits_differ", found[0].Kind)
	assert.True(t, found[0].Serious)
	assert.Equal(t, "The fits of the chains differ: their means of x are 10 standard deviations of the fits apart, their "+
		"ELBOs 0.5 nats.", found[0].Text)
	assert.Contains(t, found[0].Advice, "vi.Diag: the posterior may have several modes")
	assert.Empty(t, notes(t, build(t, vi.Diag{}, hills(0.5)), params(start.Layout, []float64{3, 4}, 2), 4000),
		"one optimum")
}
