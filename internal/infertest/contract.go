package infertest

import (
	"context"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// Ground is what [Contract] tries methods on.
type Ground struct {
	Posterior infer.LogPosterior // with a [Wall], which what the methods themselves hold of the model has too
	Layout    *infer.Layout
	Batch     infer.Batch
	Updates   int     // of a chain beside others; 0 means 20
	Tolerance float64 // of such a chain against the same alone, whose sums are rounded otherwise; 0 means 1e-12
	Run       infer.Options
	Minibatch int    // rows of the batches of a run; 0 for all
	Stops     []int  // updates after which a run is stopped and resumed
	Optional  string // a tensor that saved states need not have
	Together  bool   // a chain that is not finite holds all others too
}

// Wall is 0 where the first element of the point is above −1000, and not a number below, with its gradient.
func Wall(p infer.Params) torch.Tensor { return p.Flat.At(0).Add(1000).Log().Mul(0) }

// Walled is a log posterior with a [Wall].
func Walled(f infer.LogPosterior) infer.LogPosterior {
	return func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		v, aux := f(p, b)
		return v.Add(Wall(p)), aux
	}
}

// Contract is the contract of states and updates that every method of one update for each batch keeps. Each clause is a
// test of each method.
func Contract(t *testing.T, methods map[string]infer.Method, on Ground) {
	t.Helper()
	if on.Updates == 0 {
		on.Updates = 20
	}
	if on.Tolerance == 0 {
		on.Tolerance = 1e-12
	}
	for _, what := range slices.Sorted(maps.Keys(methods)) {
		c := contract{on, methods[what]}
		for _, clause := range []struct {
			name string
			hold func(*testing.T)
		}{
			{"updates can be replayed", c.replayed},
			{"states do not share memory", c.apart},
			{"saved states go on", c.restored},
			{"runs are resumed bit for bit", c.resumed},
			{"chains do not depend on each other", c.independent},
			{"chains that are not finite are held", c.held},
			{"states have the type of the point", c.typed},
			{"what does not fit is refused", c.refused},
		} {
			t.Run(what+"/"+clause.name, clause.hold)
		}
	}
}

type contract struct {
	Ground
	method infer.Method
}

func (c contract) build(t *testing.T) infer.Transform { return Build(t, c.method, c.Posterior) }

// start is a state of K chains at different points, or of one point where K is 0.
func (c contract) start(t *testing.T, transform infer.Transform, chains int, seed uint64) infer.State {
	return Begin[infer.State](t, transform, c.at(chains), seed)
}

func (c contract) at(chains int) infer.Params {
	return Params(c.Layout, Spread(max(chains, 1)*c.Layout.Dim()), chains)
}

// tensors are all numbers of a state.
func tensors(s infer.State) map[string][]float64 {
	out := map[string][]float64{}
	for name, x := range s.Save().Tensors {
		out[name] = Values(x.T())
	}
	return out
}

// row is chain k of K of a tensor.
func row(x []float64, k, chains int) []float64 { return x[k*len(x)/chains : (k+1)*len(x)/chains] }

// An update changes nothing that it is given: replayed from old states, in any order, it gives the same bits.
func (c contract) replayed(t *testing.T) {
	transform, given := c.build(t), map[string][]float64{}
	for name, x := range c.Batch {
		given[name] = Values(x.T())
	}
	states := []infer.State{c.start(t, transform, 3, 5)}
	var infos []infer.Info
	for i := range 40 {
		next, info := Update(t, transform, states[i], c.Batch)
		states, infos = append(states, next), append(infos, info)
	}
	for i := len(infos) - 1; i >= 0; i-- {
		next, info := Update(t, transform, states[i], c.Batch)
		Same(t, states[i+1], next, Name("update %d", i))
		assert.Equal(t, infos[i].LogPosterior, info.LogPosterior)
		assert.Equal(t, infos[i].Stats, info.Stats)
		assert.Equal(t, i, states[i].Steps())
	}
	for name, x := range c.Batch {
		Identical(t, given[name], Values(x.T()), "the batch's "+name)
	}
	assert.NotEqual(t, tensors(states[0]), tensors(states[1]))
}

// Two states at one point have nothing in common, with each other or with the point. A state outlives the one it came
// from, and the scope that it was made in.
func (c contract) apart(t *testing.T) {
	transform, point := c.build(t), c.at(0)
	a := Begin[infer.State](t, transform, point, 5)
	want, _ := Update(t, transform, a, c.Batch)
	b := Begin[infer.State](t, transform, point, 5)
	Same(t, a, b, "two states of one seed")
	for _, x := range b.Save().Tensors {
		require.NoError(t, torch.CopyFrom(x, make([]float64, len(Values(x.T())))))
	}
	infer.Free(b)
	Identical(t, Spread(c.Layout.Dim()), Values(point.Flat.T()), "the point after the other state was overwritten")
	require.NoError(t, torch.CopyFrom(point.Flat, make([]float64, c.Layout.Dim())))
	again, _ := Update(t, transform, a, c.Batch)
	Same(t, want, again, "an update after the point was overwritten")

	var next infer.State
	require.NoError(t, torch.Do(func(scope *torch.Scope) error {
		s := c.start(t, transform, 0, 5)
		next, _ = Update(t, transform, s, c.Batch)
		method.Keep(scope, next)
		infer.Free(s)
		return nil
	}))
	Same(t, want, next, "a state that outlives its scope")
	_, _ = Update(t, transform, next, c.Batch)

	if _, ok := transform.(infer.Seeded); ok {
		one, other := c.start(t, transform, 3, 5), c.start(t, transform, 3, 6)
		for range 2 {
			one, _ = Update(t, transform, one, c.Batch)
			other, _ = Update(t, transform, other, c.Batch)
		}
		assert.NotEqual(t, Values(one.Position().Flat.T()), Values(other.Position().Flat.T()), "another seed is other noise")
	}
}

// A saved state goes on with the same bits, in a transform that was built anew. One that lacks a tensor is of another
// method.
func (c contract) restored(t *testing.T) {
	transform := c.build(t)
	s := c.start(t, transform, 2, 5)
	for range 7 {
		s, _ = Update(t, transform, s, c.Batch)
	}
	saved := s.Save()
	all := infer.Tensors{}
	for _, part := range []infer.Tensors{saved.Tensors, saved.Shared} {
		for name, x := range part {
			all[name] = Must(torch.Copy(x))
		}
	}
	owned := saved.Tensors
	saved.Tensors, saved.Shared = all, nil
	fresh := c.build(t)
	restored, err := fresh.(infer.Restorer).Restore(c.Layout, saved)
	require.NoError(t, err)
	for range 7 {
		s, _ = Update(t, transform, s, c.Batch)
		restored, _ = Update(t, fresh, restored, c.Batch)
	}
	Same(t, s, restored, "after 7 more updates")
	for missing := range owned {
		if missing == c.Optional {
			continue
		}
		part := saved
		part.Tensors = maps.Clone(all)
		delete(part.Tensors, missing)
		_, err := fresh.(infer.Restorer).Restore(c.Layout, part)
		require.ErrorIs(t, err, infer.ErrCheckpoint, "without %s", missing)
	}
	if sampler, ok := transform.(infer.Sampler); ok {
		one, two := torch.NewStreams(1, 1), torch.NewStreams(1, 1)
		Identical(t, Values(Must(sampler.Sample(s, 3, &one)).Flat.T()),
			Values(Must(sampler.Sample(restored, 3, &two)).Flat.T()),
			"draws of a restored state")
	}
}

// A run that is stopped, and resumed from its checkpoint, ends with the bits of one that is not.
func (c contract) resumed(t *testing.T) {
	for _, chains := range []int{0, 3} {
		run := func(ctx context.Context, dir string, observe func(infer.Progress)) (*infer.Result, error) {
			o := c.Run
			o.Seed, o.Observer = 6, infer.ObserverFunc(observe)
			if dir != "" {
				o.Checkpoint = &infer.Checkpoint{Dir: dir, Every: 1000, Resume: true}
			}
			batches := infer.Full(c.Batch)
			if c.Minibatch > 0 {
				batches = Must(infer.Minibatches(c.Batch, infer.MinibatchOptions{Size: c.Minibatch, Seed: 3}))
			}
			return Run(ctx, c.build(t), c.at(chains), batches, o)
		}
		want, err := run(context.Background(), "", func(infer.Progress) {})
		require.NoError(t, err)
		for _, at := range c.Stops {
			dir := filepath.Join(t.TempDir(), "run")
			ctx, stop := context.WithCancel(context.Background())
			_, err := run(ctx, dir, func(p infer.Progress) {
				if p.Step == at {
					stop()
				}
			})
			require.ErrorIs(t, err, context.Canceled)
			got, err := run(context.Background(), dir, func(infer.Progress) {})
			require.NoError(t, err)
			what := Name("%d chains, stopped at %d", chains, at)
			Same(t, want.State, got.State, what)
			assert.Equal(t, want.State.Save().Extra, got.State.Save().Extra, what)
			if want.Draws == nil {
				continue
			}
			require.Equal(t, want.Draws.MinLen(), got.Draws.MinLen(), what)
			assert.Equal(t, want.Draws.Stats(), got.Draws.Stats(), what)
			for k := range want.Draws.Chains() {
				for i := range want.Draws.Len(k) {
					Identical(t, want.Draws.Row(k, i), got.Draws.Row(k, i), what)
				}
			}
		}
	}
}

// A chain is what it is alone, with the stream of its number, however many others there are.
func (c contract) independent(t *testing.T) {
	transform := c.build(t)
	const chains = 5
	together := c.start(t, transform, chains, 9)
	require.Equal(t, chains, together.Position().Chains())
	d := c.Layout.Dim()
	alone := make([]infer.State, chains)
	for k := range alone {
		p := Params(c.Layout, row(Spread(chains*d), k, chains), 0)
		if seeded, ok := transform.(infer.Seeded); ok {
			alone[k] = Must(seeded.InitStreams(p, torch.Streams{Seed: 9, Chains: []uint64{uint64(k)}}))
		} else {
			alone[k] = Begin[infer.State](t, transform, p, 9)
		}
	}
	single := c.start(t, transform, 0, 9)
	Same(t, alone[0], single, "a single point is chain 0")
	for range c.Updates {
		var info, own infer.Info
		together, info = Update(t, transform, together, c.Batch)
		all := tensors(together)
		for k := range alone {
			alone[k], own = Update(t, transform, alone[k], c.Batch)
			assert.InDelta(t, own.LogPosterior[0], info.LogPosterior[k], 100*c.Tolerance)
			assert.InDelta(t, own.GradNorm[0], info.GradNorm[k], 100*c.Tolerance)
			for name, x := range tensors(alone[k]) {
				if !Within(t, x, row(all[name], k, chains), c.Tolerance, Name("%s of chain %d", name, k)) {
					return
				}
			}
		}
	}
	one := Begin[infer.State](t, transform, Params(c.Layout, Spread(d), 1), 9)
	assert.True(t, one.Position().Batched(), "a chain axis of 1 stays")
	for name, x := range tensors(single) {
		Within(t, x, tensors(one)[name], c.Tolerance, name+" of a chain axis of 1")
	}
}

// A chain whose density or gradient is not finite stays as it is, with all that is remembered of it, and is flagged.
// The others move as if it were not there, and it goes on when it can.
func (c contract) held(t *testing.T) {
	transform, d := c.build(t), c.Layout.Dim()
	beyond := Spread(3 * d)
	beyond[d] = -2000
	healthy := c.start(t, transform, 3, 2)
	sick := Begin[infer.State](t, transform, Params(c.Layout, beyond, 3), 2)
	before := tensors(sick)
	want, info := Update(t, transform, healthy, c.Batch)
	require.Nil(t, info.Diverged)
	got, info := Update(t, transform, sick, c.Batch)
	assert.Equal(t, []bool{false, true, false}, info.Diverged)
	assert.True(t, math.IsNaN(info.LogPosterior[1]) || math.IsNaN(info.GradNorm[1]))
	moved := 0
	for name, x := range tensors(got) {
		Identical(t, row(before[name], 1, 3), row(x, 1, 3), name+" of the chain that is held")
		for _, k := range []int{0, 2} {
			if c.Together {
				Identical(t, row(before[name], k, 3), row(x, k, 3), Name("%s of chain %d, which is held too", name, k))
				continue
			}
			Within(t, row(tensors(want)[name], k, 3), row(x, k, 3), c.Tolerance, Name("%s of chain %d", name, k))
		}
		if !slices.Equal(row(before[name], 0, 3), row(x, 0, 3)) {
			moved++
		}
	}
	assert.Equal(t, !c.Together, moved > 0, "the others move")
	assert.Equal(t, 1, got.Steps())
	single := Begin[infer.State](t, transform, Params(c.Layout, row(beyond, 1, 3), 0), 2)
	after, info := Update(t, transform, single, c.Batch)
	assert.Equal(t, []bool{true}, info.Diverged)
	assert.Equal(t, tensors(single), tensors(after), "a single point")

	undefined := infer.Batch{}
	for name, x := range c.Batch {
		undefined[name] = torch.Of(x.T().MustMulScalar(ts.FloatScalar(math.NaN()), false))
	}
	stays, info := Update(t, transform, healthy, undefined)
	assert.Equal(t, []bool{true, true, true}, info.Diverged)
	assert.Equal(t, tensors(healthy), tensors(stays), "held chains")
	next := stays
	for range 5 { // a proposal may be rejected
		next, info = Update(t, transform, next, c.Batch)
		assert.Nil(t, info.Diverged)
	}
	assert.NotEqual(t, tensors(stays), tensors(next), "they go on when they can")
}

// States are in the type of the point, and outside any graph of gradients, also where the point is in one: a graph
// would grow with every update and hold all states in memory.
func (c contract) typed(t *testing.T) {
	transform, batch := c.build(t), infer.Batch{}
	for name, x := range c.Batch {
		batch[name] = Must(torch.To(x, gotch.CPU, gotch.Float))
	}
	start := Must(c.at(3).To(gotch.CPU, gotch.Float))
	start.Flat = Must(torch.Leaf(start.Flat))
	s := Begin[infer.State](t, transform, start, 2)
	for range 3 {
		for name, x := range s.Save().Tensors {
			assert.Equal(t, gotch.Float, Must(torch.DTypeOfTensor(x)), name)
			assert.False(t, Must(x.T().RequiresGrad()), name)
		}
		s, _ = Update(t, transform, s, batch)
	}
	if sampler, ok := transform.(infer.Sampler); ok {
		streams := torch.NewStreams(1, 1)
		assert.Equal(t, gotch.Float, Must(sampler.Sample(s, 2, &streams)).Flat.T().DType(), "draws")
	}
}

// stranger is a state that no method made.
type stranger struct{ method.State }

// What does not fit is an error that names the method.
func (c contract) refused(t *testing.T) {
	transform := c.build(t)
	name := transform.(interface{ Name() string }).Name()
	_, _, err := transform.Update(stranger{}, c.Batch)
	require.ErrorContains(t, err, name+": the state is a infertest.stranger, expected ")
	_, err = transform.(infer.Restorer).Restore(c.Layout, infer.Saved{})
	require.ErrorIs(t, err, infer.ErrCheckpoint)
	bad := c.at(2)
	require.NoError(t, torch.CopyFrom(torch.Of(bad.Flat.T().MustSelect(0, 1, false).MustNarrow(0, 0, 1, false)),
		[]float64{math.NaN()}))
	_, err = transform.Init(bad)
	require.ErrorContains(t, err, name+": ")
	require.ErrorContains(t, err, "of chain 1 is NaN at the start: not finite")
	if seeded, ok := transform.(infer.Seeded); ok {
		_, err = seeded.InitStreams(c.at(2), torch.NewStreams(0, 3))
		require.EqualError(t, err,
			name+": 3 random streams for 2 chains: there must be one for each: invalid configuration")
	}
	other := infer.Batch{}
	for _, x := range c.Batch {
		other["other"] = x
	}
	_, _, err = transform.Update(c.start(t, transform, 0, 1), other)
	require.ErrorContains(t, err, name+": ")
	require.ErrorContains(t, err, `which does not exist; there are: ["other"]`)
}
