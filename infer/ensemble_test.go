package infer_test

import (
	"context"
	"errors"
	"testing"

	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
)

// wells is log p = Σ (x² − x⁴/10), with modes at ±√5.
func wells(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
	square := p.Flat.MustSquare(false)
	return torch.Of(sum(square.MustSub(scaled(square.MustSquare(false), 0.1), false))), nil
}

// ensembleOf is an ensemble of 10 chains of SGHMC from different points, in groups.
func ensembleOf(t testing.TB, group int, c infer.EnsembleConfig) *infer.EnsembleResult {
	t.Helper()
	start := make([]float64, 20)
	for i := range start {
		start[i] = float64(i)/10 - 1
	}
	p := pointOf(t, layoutOf(t, infer.Shapes{"x": {2}}), start...)
	transform := build(t, sgmcmc.SGHMC{LR: infer.Constant(0.05)}, wells)
	c.Group = group
	r, err := infer.RunEnsemble(context.Background(), transform, p, func() (infer.Batches, error) { return infer.Full(nil), nil }, c)
	require.NoError(t, err)
	return r
}

// Chains read the streams of their numbers whatever their group, so the grouping changes rounding at most; here, where no
// operation sums over chains, nothing.
func TestGroupsOfAnEnsembleAgree(t *testing.T) {
	c := infer.EnsembleConfig{LastOnly: true, Run: infer.RunConfig{Steps: 50, Seed: 3}}
	want := ensembleOf(t, 0, c)
	assert.Equal(t, 10, want.Chains)
	assert.Equal(t, 10, want.Draws.Chains())
	assert.Equal(t, 1, want.Draws.MinLen())
	assert.Equal(t, []int64{10, 2}, shapeOf(want.Last.Flat))
	for _, group := range []int{1, 3, 5, 8, 10, 64} {
		got := ensembleOf(t, group, c)
		assert.Equal(t, floats(want.Last.Flat), floats(got.Last.Flat), "groups of %d", group)
		for k := range 10 {
			assert.Equal(t, want.Draws.Row(k, 0), got.Draws.Row(k, 0), "groups of %d, chain %d", group, k)
			assert.Equal(t, floats(want.Last.Flat)[2*k:2*k+2], got.Draws.Row(k, 0), "the draw is the last state")
		}
	}
	other := ensembleOf(t, 0, infer.EnsembleConfig{LastOnly: true, Run: infer.RunConfig{Steps: 50, Seed: 3, FirstChain: 1}})
	assert.NotEqual(t, floats(want.Last.Flat), floats(other.Last.Flat), "chains of other numbers have other streams")
}

// Draws of cycles and averages of groups are side by side like the chains.
func TestEnsembleCollects(t *testing.T) {
	c := infer.EnsembleConfig{Run: infer.RunConfig{Steps: 60, BurnIn: 20, Average: true, Cycles: &infer.Cycles{Length: 10}}}
	want, got := ensembleOf(t, 0, c), ensembleOf(t, 4, c)
	assert.Equal(t, 4, got.Draws.MinLen(), "cycles that end after 30, 40, 50 and 60 updates")
	assert.Equal(t, floats(want.Average.Mean.Flat), floats(got.Average.Mean.Flat))
	assert.Equal(t, floats(want.Average.Variance.Flat), floats(got.Average.Variance.Flat))
	for k := range 10 {
		for i := range 4 {
			assert.Equal(t, want.Draws.Row(k, i), got.Draws.Row(k, i))
		}
	}
}

// At temperature 0 the members of an ensemble stop at modes, as deep ensembles do; each is where gradient ascent from its start
// leads. Momentum is that of SGD.
func TestDeepEnsembleIsTemperatureZero(t *testing.T) {
	l := layoutOf(t, infer.Shapes{"x": {2}})
	p := pointOf(t, l, 1, 1, -1, 1, 0.1, -3, -2, -0.2)
	batches := func() (infer.Batches, error) { return infer.Full(nil), nil }
	c := infer.EnsembleConfig{Group: 3, LastOnly: true, Run: infer.RunConfig{Steps: 500}}
	cold := build(t, sgmcmc.SymplecticSGHMC{LR: infer.Constant(0.05), Momentum: infer.Constant(0.5), Temperature: infer.Constant(0)}, wells)
	sgd := build(t, optim.SGD{LR: infer.Constant(0.05), Momentum: 0.5}, wells)
	a, err := infer.RunEnsemble(context.Background(), cold, p, batches, c)
	require.NoError(t, err)
	b, err := infer.RunEnsemble(context.Background(), sgd, p, batches, c)
	require.NoError(t, err)
	assert.Equal(t, floats(b.Last.Flat), floats(a.Last.Flat), "bit for bit")
	const mode = 2.2360679774997896 // √5
	assert.InDeltaSlice(t, []float64{mode, mode, -mode, mode, mode, -mode, -mode, -mode}, floats(a.Last.Flat), 1e-9)
}

// An ensemble that was stopped between groups, or within one, goes on where it was.
func TestEnsembleResumes(t *testing.T) {
	dir := t.TempDir()
	c := infer.EnsembleConfig{Run: infer.RunConfig{Steps: 40, BurnIn: 10, Thin: 5, Seed: 9, Average: true}}
	want := ensembleOf(t, 4, c)

	stop := errors.New("stop")
	updates := 0
	start := make([]float64, 20)
	for i := range start {
		start[i] = float64(i)/10 - 1
	}
	transform := build(t, sgmcmc.SGHMC{LR: infer.Constant(0.05)}, wells)
	p := pointOf(t, layoutOf(t, infer.Shapes{"x": {2}}), start...)
	once := func(limit int) (*infer.EnsembleResult, error) {
		ctx, cancel := context.WithCancelCause(context.Background())
		cfg := c
		cfg.Group = 4
		cfg.Run.Checkpoint = &infer.Checkpoint{Dir: dir, Every: 7, Resume: true}
		cfg.Run.Observer = infer.ObserverFunc(func(infer.Progress) {
			if updates++; updates == limit {
				cancel(stop)
			}
		})
		return infer.RunEnsemble(ctx, transform, p, func() (infer.Batches, error) { return infer.Full(nil), nil }, cfg)
	}
	r, err := once(55) // within the second group of three
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "infer.RunEnsemble: chains 4 to 7: ")
	assert.Equal(t, 4, r.Chains, "what ended is there")
	assert.Equal(t, 4, r.Draws.Chains())
	got, err := once(-1)
	require.NoError(t, err)
	assert.Equal(t, 120, updates, "no update was made twice")
	assert.Equal(t, floats(want.Last.Flat), floats(got.Last.Flat))
	assert.Equal(t, floats(want.Average.Mean.Flat), floats(got.Average.Mean.Flat))
	assert.Equal(t, floats(want.Average.Variance.Flat), floats(got.Average.Variance.Flat))
	for k := range 10 {
		for i := range want.Draws.MinLen() {
			assert.Equal(t, want.Draws.Row(k, i), got.Draws.Row(k, i))
		}
	}
}

func TestEnsembleErrors(t *testing.T) {
	l := layoutOf(t, infer.Shapes{"x": {2}})
	p := pointOf(t, l, 1, 1, 2, 2)
	transform := build(t, sgmcmc.SGHMC{LR: infer.Constant(0.05)}, wells)
	full := func() (infer.Batches, error) { return infer.Full(nil), nil }
	for _, c := range []struct {
		name    string
		config  infer.EnsembleConfig
		batches func() (infer.Batches, error)
		text    string
	}{
		{"no batches", infer.EnsembleConfig{}, nil, "infer.RunEnsemble: newBatches is nil: it is needed: invalid configuration"},
		{"group", infer.EnsembleConfig{Group: -1}, full, "infer.RunEnsemble: infer.EnsembleConfig: Group is -1: it must be at least 0"},
		{"chains", infer.EnsembleConfig{Run: infer.RunConfig{Chains: 3, Steps: 1}}, full, "infer.RunEnsemble: Run.Chains is 3 and the params have 2: layout does not fit"},
		{"until", infer.EnsembleConfig{Run: infer.RunConfig{Steps: 1, Average: true, Until: func(infer.Progress) bool { return true }}}, full,
			"infer.RunEnsemble: infer.EnsembleConfig: Run.Until is given: it must be nil when Run.Average is set: groups that end at different times have " +
				"averages of different weights"},
		{"steps", infer.EnsembleConfig{}, full, "infer.RunEnsemble: chains 0 to 1: infer.Run: infer.RunConfig: Steps is 0: it must be at least 1"},
		{"broken", infer.EnsembleConfig{}, func() (infer.Batches, error) { return nil, errors.New("no file") },
			"infer.RunEnsemble: chains 0 to 1: batches: no file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := infer.RunEnsemble(context.Background(), transform, p, c.batches, c.config)
			require.EqualError(t, err, c.text)
		})
	}
}

// Each ensemble is a set of different chains, all sets are alike likely, and the seed decides.
func TestBootstrap(t *testing.T) {
	const chains, size, n = 7, 3, 20_000
	sets, err := infer.Bootstrap(chains, size, n, 5)
	require.NoError(t, err)
	counts := make([]float64, chains)
	for _, set := range sets {
		require.Len(t, set, size)
		seen := map[int]bool{}
		for _, k := range set {
			require.False(t, seen[k], "chain %d is twice in %v", k, set)
			seen[k] = true
			counts[k]++
		}
	}
	for k, c := range counts { // binomial: sd √(20000·(3/7)(4/7)) = 70
		assert.InDelta(t, n*3.0/7, c, 4*70, "chain %d", k)
	}
	again, err := infer.Bootstrap(chains, size, 2, 5)
	require.NoError(t, err)
	assert.Equal(t, sets[:2], again, "fewer ensembles are the first ones")
	_, err = infer.Bootstrap(3, 4, 1, 0)
	require.EqualError(t, err, "infer.Bootstrap: size is 4: it must be from 1 to the 3 chains")
	_, err = infer.Bootstrap(3, 2, 0, 0)
	require.EqualError(t, err, "infer.Bootstrap: n is 0: it must be at least 1")
}

// Where products over data sum in another order for another number of chains, groups of 8 and all 64 agree after one update
// to rounding: the streams are the same.
func TestGroupsAgreeToRounding(t *testing.T) {
	m := newLogistic(200, 5)
	start := numbers(64*6, 0.3)
	p := pointOf(t, m.layout(t), start...)
	transform := build(t, sgmcmc.SGHMC{LR: infer.Constant(0.1), Temperature: infer.Constant(1.0 / 200)}, m.logPosterior)
	last := func(group int) []float64 {
		r, err := infer.RunEnsemble(context.Background(), transform, p, func() (infer.Batches, error) {
			return minibatches(t, m.batch(), infer.MinibatchOptions{Size: 32, Seed: 1}), nil
		}, infer.EnsembleConfig{Group: group, LastOnly: true, Run: infer.RunConfig{Steps: 2, Seed: 8}})
		require.NoError(t, err)
		return floats(r.Last.Flat)
	}
	// θ moves with the old momenta: the gradient of the first update is in θ after the second.
	assert.InDeltaSlice(t, last(64), last(8), 1e-14)
}

// LastOnly takes the last state whatever ends a run, and leaves the average its own burn-in.
func TestLastOnlyWithItsCompanions(t *testing.T) {
	until := infer.EnsembleConfig{LastOnly: true, Run: infer.RunConfig{Steps: 50, Seed: 3, Until: func(p infer.Progress) bool { return p.Step == 20 }}}
	r := ensembleOf(t, 4, until)
	assert.Equal(t, 1, r.Draws.MinLen())
	assert.Equal(t, floats(r.Last.Flat)[6:8], r.Draws.Row(3, 0))
	assert.Equal(t, floats(ensembleOf(t, 0, infer.EnsembleConfig{LastOnly: true, Run: infer.RunConfig{Steps: 20, Seed: 3}}).Last.Flat), floats(r.Last.Flat))

	average := infer.RunConfig{Steps: 50, BurnIn: 10, Seed: 3, Average: true}
	want := ensembleOf(t, 4, infer.EnsembleConfig{Run: average})
	got := ensembleOf(t, 4, infer.EnsembleConfig{LastOnly: true, Run: average})
	assert.Equal(t, 1, got.Draws.MinLen())
	assert.Equal(t, floats(want.Average.Variance.Flat), floats(got.Average.Variance.Flat))
}

// A group that Until ended has ended when the ensemble is resumed; observers are told the number of a group's first chain.
func TestEnsembleWithUntilResumes(t *testing.T) {
	updates := 0
	var firsts []uint64
	c := infer.EnsembleConfig{Run: infer.RunConfig{Steps: 50, Seed: 3, Checkpoint: &infer.Checkpoint{Dir: t.TempDir(), Resume: true},
		Until: func(p infer.Progress) bool {
			updates++
			if p.Step == 1 {
				firsts = append(firsts, p.FirstChain)
			}
			return p.Step >= 12
		}}}
	want := ensembleOf(t, 4, c)
	assert.Equal(t, 36, updates)
	assert.Equal(t, []uint64{0, 4, 8}, firsts)
	got := ensembleOf(t, 4, c)
	assert.Equal(t, 36, updates, "nothing was left to do")
	assert.Equal(t, floats(want.Last.Flat), floats(got.Last.Flat))
	assert.Equal(t, 12, got.Draws.MinLen())
}

// Groups of HMC have the streams of their chains too.
func TestGroupsOfHMC(t *testing.T) {
	p := pointOf(t, layoutOf(t, infer.Shapes{"x": {2}}), 0.5, -0.5)
	transform := build(t, hmc.HMC{Adaptation: hmc.Adaptation{Warmup: 10}}, wells)
	last := func(group int) []float64 {
		r, err := infer.RunEnsemble(context.Background(), transform, p, func() (infer.Batches, error) { return infer.Full(nil), nil },
			infer.EnsembleConfig{Group: group, LastOnly: true, Run: infer.RunConfig{Chains: 4, Steps: 20, Seed: 2}})
		require.NoError(t, err)
		return floats(r.Last.Flat)
	}
	want := last(0)
	assert.InDeltaSlice(t, want, last(2), 1e-9)
	assert.NotEqual(t, want[:4], want[4:])
}
