package infer_test

import (
	"context"
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
)

// A run that is cancelled in mid-run ends after the update under way, with the draws so far and an error that says why.
func TestRunCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	r, err := infertest.Run(ctx, counter{}, pointOf(t, layoutOf(t, infer.Shapes{"w": {}}), 0), infer.Full(nil),
		infer.Options{Warmup: 3, Draws: 17, Observer: infer.ObserverFunc(func(p infer.Progress) {
			if p.Step == 7 {
				cancel()
			}
		})})
	assert.ErrorIs(t, err, context.Canceled)
	assert.EqualError(t, err, "infer.Run: after 7 of 20 updates: context canceled")
	require.NotNil(t, r)
	assert.EqualValues(t, 7, r.Updates)
	assert.Equal(t, [][][]float64{{{4}, {5}, {6}, {7}}}, valuesOf(t, r, "w"))
	assert.Equal(t, []float64{7}, floats(r.State.Position().Flat), "the state can go on")

	// Cancelled before it begins: nothing is done.
	r, err = infertest.Run(ctx, counter{}, pointOf(t, layoutOf(t, infer.Shapes{"w": {}}), 5), infer.Full(nil),
		infer.Options{Warmup: infer.None, Draws: 20})
	assert.ErrorIs(t, err, context.Canceled)
	assert.Zero(t, r.Updates)
	assert.Zero(t, r.Unconstrained.Total())
	assert.Equal(t, []float64{5}, floats(r.State.Position().Flat))

	ctx, cancel = context.WithTimeout(context.Background(), 0)
	defer cancel()
	_, err = infertest.Run(ctx, counter{}, pointOf(t, layoutOf(t, infer.Shapes{"w": {}}), 5), infer.Full(nil),
		infer.Options{Warmup: infer.None, Draws: 20})
	assert.ErrorIs(t, err, context.DeadlineExceeded)
}

func valuesOf(t testing.TB, r *infer.Result, site string) [][][]float64 {
	t.Helper()
	v, err := r.Draws.Values(site)
	require.NoError(t, err)
	return v
}

// An update that fails ends the run with its error, and what there is until then.
func TestRunUpdateError(t *testing.T) {
	r, err := infertest.Run(context.Background(), counter{failAt: 5}, pointOf(t, layoutOf(t, infer.Shapes{"w": {}}), 0),
		infer.Full(nil), infer.Options{Warmup: infer.None, Draws: 9})
	assert.ErrorIs(t, err, errCounter)
	assert.EqualError(t, err, "infer.Run: after 4 of 9 updates: the counter is stuck")
	require.NotNil(t, r)
	assert.EqualValues(t, 4, r.Updates)
	assert.Equal(t, [][][]float64{{{1}, {2}, {3}, {4}}}, valuesOf(t, r, "w"))
	assert.Equal(t, []float64{4}, floats(r.State.Position().Flat))

	r, err = infertest.Run(context.Background(), counter{failAt: 1}, pointOf(t, layoutOf(t, infer.Shapes{"w": {}}), 0),
		infer.Full(nil), infer.Options{Warmup: infer.None, Draws: 9})
	assert.EqualError(t, err, "infer.Run: after 0 of 9 updates: the counter is stuck")
	assert.Zero(t, r.Unconstrained.Total())
	assert.Equal(t, []float64{0}, floats(r.State.Position().Flat))
}

// The same with real methods: a step size that turns negative, a model that fails on the last batch of the epoch.
func TestRunErrorsOfMethods(t *testing.T) {
	m := newLogistic(10, 2)
	p := pointOf(t, m.layout(t), 0.1, 0.2, 0.3)
	falling := build(t, sgmcmc.SGLD{LR: infer.Linear(0.3, -0.3, 0, 6)}, m.logPosterior)
	r, err := infertest.Run(context.Background(), falling, p,
		infer.Full(m.batch()), infer.Options{Warmup: infer.None, Draws: 9})
	// At update 3 the line crosses 0, which is allowed; at 4 it is 0.3 − 0.1·4 = −0.1.
	assert.ErrorContains(t, err, "infer.Run: after 4 of 9 updates: sgmcmc.SGLD: LR at update 4 is -0.")
	assert.ErrorIs(t, err, infer.ErrConfig)
	assert.Equal(t, 4, r.Draws.MinLen())
	assert.EqualValues(t, 4, r.State.Steps())

	fussy := func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		return sum(p.Flat).Mul(b.Get("y").T().MustView([]int64{4}, false).MustMean(b["y"].T().DType(), false)), nil
	}
	r, err = infertest.Run(context.Background(), build(t, optim.SGD{LR: infer.Constant(1)}, fussy), p,
		minibatches(t, m.batch(), infer.MinibatchOptions{Size: 4}), infer.Options{Warmup: infer.None, Draws: 9})
	assert.ErrorContains(t, err, "infer.Run: after 2 of 9 updates: optim.SGD: log posterior: libtorch: View([2] Double): ")
	assert.Equal(t, 2, r.Draws.MinLen())
}

// The density log θ is not a number below 0, and −∞ at 0: at the start that is an error, which names the first chain
// that has it, and its value.
func TestRunNotFiniteAtTheStart(t *testing.T) {
	logarithm := func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
		return p.Get("w").Log(), nil
	}
	root := func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
		return p.Get("w").Sqrt(), nil
	}
	l := layoutOf(t, infer.Shapes{"w": {}})
	for name, c := range map[string]struct {
		f    infer.LogPosterior
		p    []float64
		want string
	}{
		"NaN in one chain": {logarithm, []float64{1, 2, -1, 3},
			"the log posterior of chain 2 is NaN and the norm of its gradient 1 at the start: not finite"},
		"the only chain": {logarithm, []float64{0},
			"the log posterior of chain 0 is -Inf and the norm of its gradient +Inf at the start: not finite"},
		"a gradient is not finite": {root, []float64{4, 0},
			"the log posterior of chain 1 is 0 and the norm of its gradient +Inf at the start: not finite"},
	} {
		for method, m := range map[string]infer.Method{
			"sgmcmc.SGLD":  sgmcmc.SGLD{LR: infer.Constant(0.1)},
			"sgmcmc.SGHMC": sgmcmc.SGHMC{LR: infer.Constant(0.1)},
			"optim.Adam":   optim.Adam{LR: infer.Constant(0.1)},
		} {
			t.Run(name+", "+method, func(t *testing.T) {
				r, err := infertest.Run(context.Background(), build(t, m, c.f), pointOf(t, l, c.p...), infer.Full(nil),
					infer.Options{Warmup: infer.None, Draws: 9})
				assert.ErrorIs(t, err, infer.ErrNonFinite)
				assert.ErrorContains(t, err, "after 1 of 9 updates: "+c.want)
				require.NotNil(t, r)
				assert.Zero(t, r.Unconstrained.Total())
			})
		}
	}
	// A transform that says that a chain diverged, and nothing more.
	_, err := infertest.Run(context.Background(), counter{plain: true, diverges: func(int, int) bool { return true }},
		pointOf(t, l, 1), infer.Full(nil), infer.Options{Warmup: infer.None, Draws: 9})
	assert.ErrorContains(t, err,
		"the log posterior of chain 0 is NaN and the norm of its gradient NaN at the start: not finite")
}

// cliff has gradient 1 and density θ below the edge, and at and beyond it no number: 0·log(edge − θ).
func cliff(edge float64) infer.LogPosterior {
	return func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
		w := p.Get("w").T()
		gone := w.MustMulScalar(ts.FloatScalar(-1), false).MustAddScalar(ts.FloatScalar(edge), false).MustLog(false)
		return torch.Of(w.MustAdd(scaled(torch.Of(gone), 0).T(), false)), nil
	}
}

// Gradient ascent with step 1 counts: chain 0 goes −100, −99, ...; chain 1 goes 0, 1, 2, 3 and is at the edge after
// update 3. From update 4 on its gradient is not a number: it is held, each update is counted, and chain 0 goes on.
func TestRunNotFiniteLater(t *testing.T) {
	r := ran(t, build(t, optim.SGD{LR: infer.Constant(1)}, cliff(3)),
		pointOf(t, layoutOf(t, infer.Shapes{"w": {}}), -100, 0), infer.Full(nil),
		infer.Options{Warmup: infer.None, Draws: 6})
	assert.EqualValues(t, 3, r.Held)
	assert.Equal(t, [][][]float64{{{-99}, {-98}, {-97}, {-96}, {-95}, {-94}}, {{1}, {2}, {3}, {3}, {3}, {3}}},
		valuesOf(t, r, "w"))
	assert.Equal(t, []float64{0, 0, 0, 1, 1, 1}, stat(t, r, "held", 1))
	assert.Equal(t, []float64{0, 0, 0, 0, 0, 0}, stat(t, r, "held", 0))
	assert.Equal(t, []float64{1, 2}, stat(t, r, "lp", 1)[:2], "at the draw, not before it")
	for _, lp := range stat(t, r, "lp", 1)[2:] {
		assert.True(t, math.IsNaN(lp))
	}
	assert.Equal(t, []float64{-99, -98, -97, -96, -95, -94}, stat(t, r, "lp", 0))
}

// With noise and all kinds of state: a chain that is held keeps every part of its state to the bit, and the others are
// bit for bit where they would be beside a chain that never fails.
func TestRunHoldsOneChain(t *testing.T) {
	l := layoutOf(t, infer.Shapes{"w": {}})
	for name, m := range map[string]infer.Method{
		"SGLD":  sgmcmc.SGLD{LR: infer.Constant(0.1), Temperature: infer.Constant(0.01)},
		"SGHMC": sgmcmc.SGHMC{LR: infer.Constant(0.5), Temperature: infer.Constant(0.01)},
		"SGD":   optim.SGD{LR: infer.Constant(0.1), Momentum: 0.9},
		"Adam":  optim.Adam{LR: infer.Constant(0.1)},
	} {
		t.Run(name, func(t *testing.T) {
			run := func(second float64, steps int) (*infer.Result, []bool) {
				bad := make([]bool, 0, steps)
				r := ran(t, build(t, m, cliff(3)), pointOf(t, l, -100, second, -200), infer.Full(nil),
					infer.Options{Warmup: infer.None, Draws: steps, Seed: 3, Observer: infer.ObserverFunc(func(p infer.Progress) {
						bad = append(bad, p.Info.Diverged != nil && p.Info.Diverged[1])
					})})
				return r, bad
			}
			held, bad := run(2.9, 60)
			free, _ := run(-300, 60)
			first := 0
			for first < len(bad) && !bad[first] {
				first++
			}
			require.Less(t, first, 59, "the chain reaches the edge")
			assert.Zero(t, free.Held)
			assert.EqualValues(t, 60-first, held.Held)
			for _, k := range []int{0, 2} {
				for i := range 60 {
					sameBits(t, free.Draws.Row(k, i), held.Draws.Row(k, i), "a draw of another chain")
				}
			}
			// The state of the held chain after its last good update and at the end.
			before, _ := run(2.9, first)
			for name, x := range before.State.Save().Tensors {
				sameBits(t, floats(x)[1:2], floats(held.State.Save().Tensors[name])[1:2], name)
			}
		})
	}
}
