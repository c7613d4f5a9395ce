package vi_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/infer/vi"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
	"github.com/kelvin-ppl/kelvin/torch"
)

// line is a regression of y on x with weights of shape [2, 2], which act as a vector, and a scalar noise: sites of
// several shapes.
func line(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
	w, logSD := p.Get("w").T().MustReshape([]int64{4}, false), p.Get("log_sd").T()
	r := b.Get("y").T().MustSub(b.Get("x").T().MustMv(w, false), false).MustDiv(logSD.MustExp(false), false)
	likelihood := r.MustSquare(false).MustMulScalar(ts.FloatScalar(-0.5), false).MustSub(logSD,
		false).MustMean(r.DType(), false)
	prior := p.Flat.MustDot(p.Flat, false).MustMulScalar(ts.FloatScalar(-0.5/30), false)
	return torch.Of(prior.MustAdd(likelihood, false)), infer.Aux{"residuals": r, "prior": prior}
}

func lineLayout() *infer.Layout { return layout(infer.Shapes{"w": {2, 2}, "log_sd": {}}) }

func lineData() infer.Batch {
	const n = 30
	x, y := spread(4*n), spread(7 * n)[6*n:]
	for i := range y {
		y[i] = 0.3*y[i] + x[4*i] - 0.5*x[4*i+2]
	}
	return infer.Batch{"x": vector(x, n, 4), "y": vector(y)}
}

var adam = optim.Adam{LR: infer.Polynomial(0.05, 1, 0.33)}

// An update changes nothing that it is given: replayed from old states, in any order, it gives the same bits, over 50
// updates of Adam, whose moments and counter are part of the state.
func TestUpdatesCanBeReplayed(t *testing.T) {
	b := lineData()
	for what, method := range methods(adam, 2, 0.1, nil) {
		t.Run(what, func(t *testing.T) {
			transform := build(t, method, line)
			states := []vi.State{begin(t, transform, params(lineLayout(), spread(15), 3), 1)}
			for range 50 {
				next, _ := update(t, transform, states[len(states)-1], b)
				states = append(states, next)
			}
			assert.EqualValues(t, 50, states[50].Steps())
			for i := len(states) - 2; i >= 0; i-- {
				next, _ := update(t, transform, states[i], b)
				same(t, states[i+1], next, name("update %d", i))
			}
			assert.NotEqual(t, values(states[1].Mean.Flat), values(states[2].Mean.Flat))
		})
	}
}

// Two states at one point have nothing in common, with each other or with the point, and start at update 0.
func TestStatesDoNotShareMemory(t *testing.T) {
	b := lineData()
	for what, method := range methods(adam, 1, 1, nil) {
		t.Run(what, func(t *testing.T) {
			transform := build(t, method, line)
			start := params(lineLayout(), spread(5), 0)
			one, _ := update(t, transform, begin(t, transform, start, 1), b)
			other := begin(t, transform, start, 1)
			assert.Zero(t, other.Steps())
			saved := other.Save().Tensors
			for name, x := range saved {
				if strings.HasSuffix(name, "first") || strings.HasSuffix(name, "second") {
					within(t, make([]float64, len(values(x))), values(x), 0, "the moments of a new state")
				}
				require.NoError(t, torch.CopyFrom(x, make([]float64, len(values(x)))))
			}
			infer.Free(other)
			identical(t, spread(5), values(start.Flat), "the point after a state was overwritten")
			again, _ := update(t, transform, begin(t, transform, start, 1), b)
			same(t, one, again, "another state at the point")

			last := begin(t, transform, start, 1)
			require.NoError(t, torch.CopyFrom(start.Flat, make([]float64, 5)))
			identical(t, spread(5), values(last.Position().Flat), "the state after the point was overwritten")
		})
	}
}

// K chains are K fits: each moves as it does alone with its stream. A single point is the fit of chain 0.
func TestChainsAreSeparateFits(t *testing.T) {
	const chains, d = 3, 5
	b, flat := lineData(), spread(chains*d)
	for _, samples := range []int{1, 3} {
		for what, method := range methods(adam, samples, 0.1, &no) {
			transform := build(t, method, line)
			together := begin(t, transform, params(lineLayout(), flat, chains), 9)
			var alone []vi.State
			for k := range chains {
				s, err := transform.(infer.Seeded).InitStreams(params(lineLayout(), flat[k*d:(k+1)*d], 0),
					torch.Streams{Seed: 9, Chains: []uint64{uint64(k)}})
				require.NoError(t, err)
				alone = append(alone, s.(vi.State))
			}
			for range 30 {
				var info, own infer.Info
				together, info = update(t, transform, together, b)
				for k := range alone {
					alone[k], own = update(t, transform, alone[k], b)
					size := together.Variational().Layout.Dim()
					within(t, values(alone[k].Variational().Flat),
						values(together.Variational().Flat)[k*size:(k+1)*size], 1e-12, name("%s, chain %d", what, k))
					assert.InDelta(t, own.Stats["nelbo"][0], info.Stats["nelbo"][k], 1e-10)
					assert.InDelta(t, own.LogPosterior[0], info.LogPosterior[k], 1e-10)
					assert.Equal(t, []int64{chains, int64(samples), 30}, info.Aux["residuals"].MustSize())
					assert.Equal(t, []int64{int64(samples), 30}, own.Aux["residuals"].MustSize())
					assert.Equal(t, []int64{int64(samples)}, own.Aux["prior"].MustSize())
				}
			}
			within(t, values(alone[1].Mean.Flat), values(together.Mean.Flat)[d:2*d], 1e-12, "mean")
		}
	}
}

// What moves is in the type of the point, and near what it is in float64. Noise is not the same in both: with
// 20,000 samples it changes an element by up to a hundredth. LowRank begins with factors that are noise: of it the type
// alone is looked at.
func TestStatesKeepTheTypeOfThePoint(t *testing.T) {
	b := lineData()
	single := infer.Batch{}
	for name, x := range b {
		single[name] = must(torch.To(x, gotch.CPU, gotch.Float))
	}
	steady := optim.SGD{LR: infer.Constant(0.05)}
	for what, method := range methods(steady, 20000, 0.1, &no) {
		transform := build(t, method, line)
		wide := begin(t, transform, params(lineLayout(), spread(10), 2), 1)
		narrow := begin(t, transform, must(params(lineLayout(), spread(10), 2).To(gotch.CPU, gotch.Float)), 1)
		for range 5 {
			for name, x := range narrow.Save().Tensors {
				assert.Equal(t, gotch.Float, must(torch.DTypeOfTensor(x)), "%s of %s", name, what)
			}
			wide, _ = update(t, transform, wide, b)
			narrow, _ = update(t, transform, narrow, single)
			if what != "vi.LowRank" {
				within(t, values(wide.Variational().Flat), values(narrow.Variational().Flat), 0.03, what)
				within(t, values(must(wide.Covariance())), values(must(narrow.Covariance())), 0.03, what)
			}
		}
		streams := torch.NewStreams(1, 1)
		p, err := transform.(infer.Sampler).Sample(narrow, 3, &streams)
		require.NoError(t, err)
		assert.Equal(t, gotch.Float, p.Flat.DType())
	}
}

// A point that gradients are recorded for must not make the states parts of a graph.
func TestStatesAreNotPartOfAGraph(t *testing.T) {
	start := params(lineLayout(), spread(5), 0)
	start.Flat = must(torch.Leaf(start.Flat))
	for what, method := range methods(adam, 1, 1, nil) {
		transform := build(t, method, line)
		s := begin(t, transform, start, 1)
		for range 2 {
			for name, x := range s.Save().Tensors {
				recorded, err := x.RequiresGrad()
				require.NoError(t, err)
				assert.False(t, recorded, "%s of %s", name, what)
			}
			s, _ = update(t, transform, s, lineData())
		}
	}
}

// A chain with a sample whose density is not finite stays as it is, with all that is remembered of it, and is flagged.
// The others move as if it were not there.
func TestChainsThatAreNotFiniteAreHeld(t *testing.T) {
	l := layout(infer.Shapes{"x": {2}})
	logarithm := func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		return torch.Of(p.Flat.MustSub(b.Get("edge").T(), false).MustLog(false).MustSum(gotch.Double, false)), nil
	}
	open, narrow := infer.Batch{"edge": vector([]float64{-50})}, infer.Batch{"edge": vector([]float64{0})}
	for what, method := range map[string]infer.Method{
		"vi.Diag":    vi.Diag{Optimizer: adam, Samples: 4, InitScale: 0.05},
		"vi.Dense":   vi.Dense{Optimizer: adam, Samples: 4, InitScale: 0.05},
		"vi.LowRank": vi.LowRank{Optimizer: adam, Samples: 4, InitScale: 0.05},
	} {
		t.Run(what, func(t *testing.T) {
			transform := build(t, method, logarithm)
			s := begin(t, transform, params(l, []float64{2, 3, 0, 2, 3, 2}, 3), 1)
			healthy := begin(t, transform, params(l, []float64{2, 3, 2, 3, 3, 2}, 3), 1)
			s, info := update(t, transform, s, open)
			require.Nil(t, info.Diverged)
			healthy, _ = update(t, transform, healthy, open)
			held, info := update(t, transform, s, narrow)
			assert.Equal(t, []bool{false, true, false}, info.Diverged)
			assert.True(t, math.IsNaN(info.Stats["nelbo"][1]))
			healthy, info = update(t, transform, healthy, narrow)
			require.Nil(t, info.Diverged)
			for name, x := range held.Save().Tensors {
				got, want := values(x), values(healthy.Save().Tensors[name])
				size := len(got) / 3
				identical(t, values(s.Save().Tensors[name])[size:2*size], got[size:2*size],
					name+" of the chain that is held")
				within(t, want[:size], got[:size], 1e-12, name+" of chain 0")
				within(t, want[2*size:], got[2*size:], 1e-12, name+" of chain 2")
			}
			next, info := update(t, transform, held, open)
			assert.Nil(t, info.Diverged)
			assert.NotEqual(t, values(held.Mean.Flat)[2:4], values(next.Mean.Flat)[2:4], "it goes on when it can")
		})
	}
}

// A factor that overflows is held too, not an error of libtorch's. At T = 0, where the scale goes that way, it does not
// count.
func TestScaleThatOverflowsIsHeld(t *testing.T) {
	for _, temperature := range []float64{1, 0} {
		transform := build(t, vi.LowRank{Optimizer: adam, Rank: 2, Temperature: infer.Constant(temperature)},
			correlated(3).logPosterior())
		s := begin(t, transform, params(correlated(3).layout(), make([]float64, 3), 0), 1)
		phi := values(s.Variational().Flat)
		for i := 6; i < 9; i++ {
			phi[i] = -700 // so that (W/e^s)² is not finite
		}
		place(t, s, phi)
		next, info := update(t, transform, s, nil)
		if temperature == 0 {
			assert.Nil(t, info.Diverged)
			assert.NotEqual(t, phi, values(next.Variational().Flat))
			continue
		}
		assert.Equal(t, []bool{true}, info.Diverged)
		identical(t, phi, values(next.Variational().Flat), "the parameters")
	}
}

// What remains of a run that was stopped goes on with the same bits, on minibatches, with the optimiser's moments.
func TestRunsAreResumed(t *testing.T) {
	for what, method := range methods(adam, 2, 0.1, nil) {
		t.Run(what, func(t *testing.T) {
			start := params(lineLayout(), spread(5), 0)
			run := func(ctx context.Context, steps int64, c *infer.Checkpoint, o infer.Observer) (*infer.Result,
				error) {
				batches := must(infer.Minibatches(lineData(), infer.MinibatchOptions{Size: 7, Seed: 3}))
				return infertest.Run(ctx, build(t, method, line), start, batches,
					infer.Options{Warmup: int(steps), Draws: infer.None, Chains: 2, Seed: 4, Checkpoint: c, Observer: o})
			}
			var all, first, after vi.Trace
			whole, err := run(context.Background(), 40, nil, &all)
			require.NoError(t, err)
			dir := t.TempDir()
			ctx, stop := context.WithCancel(context.Background())
			_, err = run(ctx, 40, &infer.Checkpoint{Dir: dir, Every: 10}, infer.ObserverFunc(func(p infer.Progress) {
				if first.Observe(p); p.Step == 23 {
					stop()
				}
			}))
			require.ErrorIs(t, err, context.Canceled)
			rest, err := run(context.Background(), 40, &infer.Checkpoint{Dir: dir, Every: 10, Resume: true}, &after)
			require.NoError(t, err)
			require.Len(t, all.NELBO, 40)
			require.Equal(t, all.Steps, append(first.Steps, after.Steps...))
			assert.Equal(t, all.NELBO, append(first.NELBO, after.NELBO...), "the NELBO of each update")
			same(t, whole.State, rest.State, "the state")
			assert.Equal(t, whole.State.Save().Extra, rest.State.Save().Extra, "the NELBO so far")
		})
	}
}

// A state that another method saved is refused with an error.
func TestRestoreRefusesOthers(t *testing.T) {
	start := params(lineLayout(), spread(5), 0)
	of := methods(adam, 1, 1, nil)
	for what, method := range of {
		saved := begin(t, build(t, method, line), start, 1).Save()
		for other, m := range of {
			s, err := build(t, m, line).(infer.Restorer).Restore(lineLayout(), saved)
			if other == what {
				require.NoError(t, err)
				same(t, begin(t, build(t, method, line), start, 1), s, "restored")
				continue
			}
			assert.ErrorIs(t, err, infer.ErrCheckpoint, "%s from %s", other, what)
		}
		_, err := build(t, methods(climb, 1, 1, nil)[what], line).(infer.Restorer).Restore(lineLayout(), saved)
		assert.ErrorContains(t, err, `"buffer"`, "another optimiser")
		_, _, err = build(t, adam, line).Update(begin(t, build(t, method, line), start, 1), lineData())
		assert.ErrorContains(t, err, "vi.State")
		for _, other := range []infer.State{vi.State{}, begin(t, build(t, of["vi.Diag"], line), start, 1),
			begin(t, build(t, of["vi.Dense"], line), start, 1)} {
			_, _, err = build(t, of["vi.LowRank"], line).Update(other, lineData())
			assert.ErrorContains(t, err, "vi.LowRank: the state is of another family")
		}
	}
	empty := vi.State{}
	_, err := empty.Covariance()
	assert.ErrorContains(t, err, "the state is empty")
	_, err = empty.ScaleFactor()
	assert.ErrorContains(t, err, "the state is empty")
	_, err = empty.SD()
	assert.ErrorContains(t, err, "the state is empty")
	assert.Zero(t, empty.Steps())
	assert.Zero(t, empty.Position())
	assert.Zero(t, empty.Variational())
	infer.Free(empty)
	for what, method := range of {
		_, err = build(t, method, line).(infer.Restorer).Restore(lineLayout(), empty.Save())
		assert.ErrorIs(t, err, infer.ErrCheckpoint, what)
	}
	saved := begin(t, build(t, vi.LowRank{Optimizer: adam, Rank: 2}, line), start, 1).Save()
	_, err = build(t, vi.LowRank{Optimizer: adam, Rank: 3}, line).(infer.Restorer).Restore(lineLayout(), saved)
	assert.ErrorIs(t, err, infer.ErrCheckpoint, "another rank")
	_, err = build(t, vi.Diag{Optimizer: adam}, line).(infer.Restorer).Restore(lineLayout(), infer.Saved{})
	assert.ErrorIs(t, err, infer.ErrCheckpoint)
}

// Minibatches of equal size have the full gradient on average over an epoch: the sum of steps from one state, with one
// noise.
func TestMinibatchesAverageToTheWhole(t *testing.T) {
	for what, method := range methods(climb, 2, 0.1, nil) {
		transform := build(t, method, line)
		s := begin(t, transform, params(lineLayout(), spread(5), 0), 1)
		whole, _ := update(t, transform, s, lineData())
		batches := must(infer.Minibatches(lineData(), infer.MinibatchOptions{Size: 6, Seed: 1}))
		mean := make([]float64, len(values(whole.Variational().Flat)))
		for range 5 {
			b, err := batches.Next()
			require.NoError(t, err)
			next, _ := update(t, transform, s, b)
			for i, v := range values(next.Variational().Flat) {
				mean[i] += v / 5
			}
		}
		within(t, values(whole.Variational().Flat), mean, 1e-12, what)
	}
}

// A mistake inside the log posterior is an error that says where it was.
func TestModelErrors(t *testing.T) {
	for what, method := range methods(adam, 2, 1, nil) {
		transform := build(t, method, line)
		s := begin(t, transform, params(lineLayout(), spread(5), 0), 1)
		_, _, err := transform.Update(s, infer.Batch{"x": lineData()["x"]})
		var model *infer.ModelError
		require.True(t, errors.As(err, &model), "%v", err)
		assert.ErrorContains(t, err, what)
		assert.ErrorContains(t, err, `"y"`)
	}
}
