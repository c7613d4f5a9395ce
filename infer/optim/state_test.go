package optim_test

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
	"github.com/kelvin-ppl/kelvin/torch"
)

// An update changes nothing that it is given: replayed from old states it gives the same bits, in any order.
func TestUpdatesCanBeReplayed(t *testing.T) {
	w := newWells()
	for what, method := range methods() {
		t.Run(what, func(t *testing.T) {
			transform := build(t, method, w.logPosterior)
			batch := w.batch()
			states := []infer.State{begin(t, transform, params(w.layout, spread(3*w.layout.Dim()), 3))}
			for range 60 {
				next, _ := update(t, transform, states[len(states)-1], batch)
				states = append(states, next)
			}
			for i := len(states) - 2; i >= 0; i-- {
				next, _ := update(t, transform, states[i], batch)
				same(t, states[i+1], next, name("update %d", i))
			}
			identical(t, w.c[:3], values(batch["u"]), "the batch")
		})
	}
}

// Two states at one point have nothing in common, with each other or with the point, and start at update 0.
func TestStatesDoNotShareMemory(t *testing.T) {
	w := newWells()
	d := w.layout.Dim()
	for what, method := range methods() {
		t.Run(what, func(t *testing.T) {
			transform := build(t, method, w.logPosterior)
			start := params(w.layout, spread(d), 0)
			a, _ := update(t, transform, begin(t, transform, start), w.batch())
			b := begin(t, transform, start)
			assert.Zero(t, b.Steps())
			for name, x := range b.Save().Tensors {
				none := make([]float64, len(values(x)))
				if name != "params" {
					within(t, none, values(x), 0, name+" of a new state")
				}
				require.NoError(t, torch.CopyFrom(x, none))
			}
			infer.Free(b)
			identical(t, spread(d), values(start.Flat), "the point after a state was overwritten")
			again, _ := update(t, transform, begin(t, transform, start), w.batch())
			same(t, a, again, "another state at the point")

			c := begin(t, transform, start)
			require.NoError(t, torch.CopyFrom(start.Flat, make([]float64, d)))
			identical(t, spread(d), values(c.Position().Flat), "the state after the point was overwritten")
		})
	}
}

// A saved state goes on with the same bits.
func TestRestoredStatesGoOn(t *testing.T) {
	w := newWells()
	for what, method := range methods() {
		t.Run(what, func(t *testing.T) {
			transform := build(t, method, w.logPosterior)
			s, batch := begin(t, transform, params(w.layout, spread(2*w.layout.Dim()), 2)), w.batch()
			for range 7 {
				s, _ = update(t, transform, s, batch)
			}
			saved := infer.Saved{Steps: s.Steps(), Tensors: infer.Tensors{}}
			for name, x := range s.Save().Tensors {
				saved.Tensors[name] = vector(values(x), must(torch.Shape(x))...)
			}
			restored, err := build(t, method, w.logPosterior).(infer.Restorer).Restore(w.layout, saved)
			require.NoError(t, err)
			for range 60 {
				s, _ = update(t, transform, s, batch)
				restored, _ = update(t, transform, restored, batch)
			}
			same(t, s, restored, "after 60 more updates")
		})
	}
}

// A chain whose density or gradient is not finite stays where it is, with all that is remembered of it, and is flagged.
// The others move as if it were not there.
func TestChainsThatAreNotFiniteAreHeld(t *testing.T) {
	l := must(infer.NewLayout(infer.Shapes{"x": {2}}))
	logarithm := func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		return torch.Of(p.Flat.MustSub(b.Get("edge").T(), false).MustLog(false).MustSum(gotch.Double, false)), nil
	}
	// the second needs x > 1
	open, narrow := infer.Batch{"edge": vector([]float64{0})}, infer.Batch{"edge": vector([]float64{1})}
	for what, method := range methods() {
		if what == "optim.LBFGS" { // it steps over the edge, and has a test of its own
			continue
		}
		t.Run(what, func(t *testing.T) {
			transform := build(t, method, logarithm)
			s := begin(t, transform, params(l, []float64{2, 3, 2, 0.5, 3, 2}, 3))
			s, info := update(t, transform, s, open)
			require.Nil(t, info.Diverged)
			held, info := update(t, transform, s, narrow)
			assert.Equal(t, []bool{false, true, false}, info.Diverged)
			assert.True(t, math.IsNaN(info.LogPosterior[1]))

			healthy := begin(t, transform, params(l, []float64{2, 3, 2, 3, 3, 2}, 3))
			healthy, _ = update(t, transform, healthy, open)
			healthy, info = update(t, transform, healthy, narrow)
			require.Nil(t, info.Diverged)
			for name, x := range held.Save().Tensors {
				got, want := values(x), values(healthy.Save().Tensors[name])
				identical(t, values(s.Save().Tensors[name])[2:4], got[2:4], name+" of the chain that is held")
				within(t, want[:2], got[:2], golden, name+" of chain 0")
				within(t, want[4:], got[4:], golden, name+" of chain 2")
			}
			next, info := update(t, transform, held, open)
			assert.Nil(t, info.Diverged)
			assert.NotEqual(t, values(held.Position().Flat)[2:4], values(next.Position().Flat)[2:4],
				"it goes on when it can")
		})
	}
}

// States are in the type of the point.
func TestStatesKeepTheTypeOfThePoint(t *testing.T) {
	w := newWells()
	batch := infer.Batch{}
	for name, x := range w.batch() {
		batch[name] = must(torch.To(x, gotch.CPU, gotch.Float))
	}
	for what, method := range methods() {
		transform := build(t, method, w.logPosterior)
		s := begin(t, transform, must(params(w.layout, spread(3*w.layout.Dim()), 3).To(gotch.CPU, gotch.Float)))
		for range 3 {
			for name, x := range s.Save().Tensors {
				assert.Equal(t, gotch.Float, must(torch.DTypeOfTensor(x)), "%s of %s", name, what)
			}
			s, _ = update(t, transform, s, batch)
		}
	}
}

// A point that gradients are recorded for must not make the states parts of a graph: it would grow with every update
// and hold all states in memory.
func TestStatesAreNotPartOfAGraph(t *testing.T) {
	w := newWells()
	start := params(w.layout, spread(w.layout.Dim()), 0)
	start.Flat = must(torch.Leaf(start.Flat))
	for what, method := range methods() {
		transform := build(t, method, w.logPosterior)
		s := begin(t, transform, start)
		for range 2 {
			for name, x := range s.Save().Tensors {
				recorded, err := x.RequiresGrad()
				require.NoError(t, err)
				assert.False(t, recorded, "%s of %s", name, what)
			}
			s, _ = update(t, transform, s, w.batch())
		}
	}
}

// K chains are K independent starts: each moves as it does alone.
func TestChainsAreIndependentStarts(t *testing.T) {
	w := newWells()
	const chains = 4
	d := w.layout.Dim()
	for what, method := range methods() {
		transform := build(t, method, w.logPosterior)
		flat := spread(chains * d)
		together := begin(t, transform, params(w.layout, flat, chains))
		alone := make([]infer.State, chains)
		for k := range alone {
			alone[k] = begin(t, transform, params(w.layout, flat[k*d:(k+1)*d], 0))
		}
		for range 30 {
			together, _ = update(t, transform, together, w.batch())
			for k := range alone {
				alone[k], _ = update(t, transform, alone[k], w.batch())
				within(t, values(alone[k].Position().Flat), values(together.Position().Flat)[k*d:(k+1)*d], golden,
					name("%s, chain %d", what, k))
			}
		}
	}
}

// A checkpoint of Adam is not one of AdamW, though both have states of one type.
func TestCheckpointsTellAdamFromAdamW(t *testing.T) {
	dir := t.TempDir()
	f := func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
		return torch.Of(p.Flat.MustDot(p.Flat, false).MustNeg(false)), nil
	}
	run := func(m infer.Method, resume bool) error {
		transform, err := m.Build(infer.Sum(f, 1))
		require.NoError(t, err)
		layout, err := infer.NewLayout(infer.Shapes{"x": {2}})
		require.NoError(t, err)
		p, err := infer.NewParams(layout, []float64{1, 2})
		require.NoError(t, err)
		_, err = infertest.Run(context.Background(), transform, p, infer.Full(nil),
			infer.Options{Warmup: infer.None, Draws: 3, Checkpoint: &infer.Checkpoint{Dir: dir, Resume: resume}})
		return err
	}
	require.NoError(t, run(optim.Adam{LR: infer.Constant(0.1)}, false))
	require.NoError(t, run(optim.Adam{LR: infer.Constant(0.1)}, true))
	require.ErrorContains(t, run(optim.AdamW{LR: infer.Constant(0.1)}, true),
		"its method is optim.Adam, this run's optim.AdamW")
}
