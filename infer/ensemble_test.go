package infer_test

import (
	"context"
	"errors"
	"testing"

	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
)

// wells is log p = Σ (x² − x⁴/10), with modes at ±√5.
func wells(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
	square := p.Flat.Square().T()
	return sum(torch.Of(square.MustSub(scaled(torch.Of(square.MustSquare(false)), 0.1).T(), false))), nil
}

// ensembleOf is an ensemble of 10 chains of SGHMC from different points, in groups.
func ensembleOf(t testing.TB, group int, c infer.Options) *infer.Result {
	t.Helper()
	start := make([]float64, 20)
	for i := range start {
		start[i] = float64(i)/10 - 1
	}
	p := pointOf(t, layoutOf(t, infer.Shapes{"x": {2}}), start...)
	transform := build(t, sgmcmc.SGHMC{LR: infer.Constant(0.05)}, wells)
	c.Group = group
	r, err := infertest.Run(context.Background(), transform, p, infer.Full(nil), c)
	require.NoError(t, err)
	return r
}

// Chains read the streams of their numbers whatever their group, so the grouping changes rounding at most; here, where
// no operation sums over chains, nothing.
func TestGroupsOfAnEnsembleAgree(t *testing.T) {
	c := infer.Options{Warmup: 49, Draws: 1, Seed: 3}
	want := ensembleOf(t, 0, c)
	assert.Equal(t, 10, want.Last.Chains())
	assert.Equal(t, 10, want.Draws.Chains())
	assert.Equal(t, 1, want.Draws.MinLen())
	assert.Equal(t, []int{10, 2}, shapeOf(want.Last.Flat))
	for _, group := range []int{1, 3, 5, 8, 10, 64} {
		got := ensembleOf(t, group, c)
		assert.Equal(t, floats(want.Last.Flat), floats(got.Last.Flat), "groups of %d", group)
		for k := range 10 {
			assert.Equal(t, want.Draws.Row(k, 0), got.Draws.Row(k, 0), "groups of %d, chain %d", group, k)
			assert.Equal(t, floats(want.Last.Flat)[2*k:2*k+2], got.Draws.Row(k, 0), "the draw is the last state")
		}
	}
	other := ensembleOf(t, 0, infer.Options{Warmup: 49, Draws: 1, Seed: 3, FirstChain: 1})
	assert.NotEqual(t, floats(want.Last.Flat), floats(other.Last.Flat), "chains of other numbers have other streams")
}

// Draws of cycles and averages of groups are side by side like the chains.
func TestEnsembleCollects(t *testing.T) {
	c := infer.Options{Warmup: 20, Draws: 4, Average: true, Cycles: &infer.Cycles{Length: 10}}
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

// At temperature 0 the members of an ensemble stop at modes, as deep ensembles do; each is where gradient ascent from
// its start leads. Momentum is that of SGD.
func TestDeepEnsembleIsTemperatureZero(t *testing.T) {
	l := layoutOf(t, infer.Shapes{"x": {2}})
	p := pointOf(t, l, 1, 1, -1, 1, 0.1, -3, -2, -0.2)
	batches := infer.Full(nil)
	c := infer.Options{Warmup: 499, Draws: 1, Group: 3}
	cold := build(t, sgmcmc.SymplecticSGHMC{LR: infer.Constant(0.05), Momentum: infer.Constant(0.5),
		Temperature: infer.Constant(0)}, wells)
	sgd := build(t, optim.SGD{LR: infer.Constant(0.05), Momentum: 0.5}, wells)
	a, err := infertest.Run(context.Background(), cold, p, batches, c)
	require.NoError(t, err)
	b, err := infertest.Run(context.Background(), sgd, p, batches, c)
	require.NoError(t, err)
	assert.Equal(t, floats(b.Last.Flat), floats(a.Last.Flat), "bit for bit")
	const mode = 2.2360679774997896 // √5
	assert.InDeltaSlice(t, []float64{mode, mode, -mode, mode, mode, -mode, -mode, -mode}, floats(a.Last.Flat), 1e-9)
}

// An ensemble that was stopped between groups, or within one, goes on where it was.
func TestEnsembleResumes(t *testing.T) {
	dir := t.TempDir()
	c := infer.Options{Warmup: 10, Draws: 6, Thin: 5, Seed: 9, Average: true}
	want := ensembleOf(t, 4, c)

	stop := errors.New("stop")
	updates := 0
	start := make([]float64, 20)
	for i := range start {
		start[i] = float64(i)/10 - 1
	}
	transform := build(t, sgmcmc.SGHMC{LR: infer.Constant(0.05)}, wells)
	p := pointOf(t, layoutOf(t, infer.Shapes{"x": {2}}), start...)
	once := func(limit int) (*infer.Result, error) {
		ctx, cancel := context.WithCancelCause(context.Background())
		cfg := c
		cfg.Group = 4
		cfg.Checkpoint = &infer.Checkpoint{Dir: dir, Every: 7, Resume: true}
		cfg.Observer = infer.ObserverFunc(func(infer.Progress) {
			if updates++; updates == limit {
				cancel(stop)
			}
		})
		return infertest.Run(ctx, transform, p, infer.Full(nil), cfg)
	}
	r, err := once(55) // within the second group of three
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "infer.Run: chains 4 to 7: ")
	assert.Positive(t, r.Draws.Len(3), "what ended is there")
	assert.Zero(t, r.Draws.Len(8))
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

func TestOptionsErrors(t *testing.T) {
	l := layoutOf(t, infer.Shapes{"x": {2}})
	p := pointOf(t, l, 1, 1, 2, 2)
	always := func(infer.Progress) bool { return true }
	program := infer.Handwritten(infer.Mean(wells, 0), p, nil)
	method := sgmcmc.SGHMC{LR: infer.Constant(0.05)}
	for want, o := range map[string]infer.Options{
		"infer.Options: Group is -1: it must be at least 1, or 0 for the default":              {Group: -1},
		"infer.Options: Chains is -2: it must be at least 1, or 0 for the default":             {Chains: -2},
		"infer.Options: Chains is 1099511627776: it must be at most 1048576":                   {Chains: 1 << 40},
		"infer.Options: Warmup is -3: it must be at least 1, 0 for the default, or infer.None": {Warmup: -3},
		"infer.Options: Draws is -3: it must be at least 1, 0 for the default, or infer.None":  {Draws: -3},
		"infer.Options: Draws is None: with Warmup None there is nothing to do": {
			Warmup: infer.None, Draws: infer.None},
		"infer.Options: Thin is -1: it must be at least 1, or 0 for the default":      {Thin: -1},
		"infer.Options: SaveEvery is -1: it must be at least 1, or 0 for the default": {SaveEvery: -1},
		"infer.Checkpoint: Every is -1: it must be at least 0": {
			Checkpoint: &infer.Checkpoint{Every: -1}},
		"infer.Cycles: Length is 0: it must be at least 1": {
			Cycles: &infer.Cycles{}},
		"the start has 2 chains and the run 3: set infer.Options{Chains: 2}, or start at one point": {Chains: 3},
		"infer.Options: Start is of 2 chains: it must be one point, or one for each of 3 chains":    {Chains: 3, Start: p},
		"infer.Options: Start is y[2]: its layout must be the program's, x[2]": {
			Start: pointOf(t, layoutOf(t, infer.Shapes{"y": {2}}), 1, 2)},
		"infer.Options: Until is given: it must be nil when Average is set and Group is less than Chains": {
			Average: true, Until: always, Chains: 2, Group: 1},
	} {
		d, err := infer.Sample(context.Background(), program, method, o)
		assert.ErrorContains(t, err, "infer.Sample: ")
		assert.ErrorContains(t, err, want)
		assert.Nil(t, d)
	}
	for want, f := range map[string]func() (*infer.Result, error){
		"the context is nil": func() (*infer.Result, error) {
			var none context.Context
			return infer.Run(none, program, method, infer.Options{})
		},
		"the program is nil": func() (*infer.Result, error) {
			return infer.Run(context.Background(), nil, method, infer.Options{})
		},
		"the method is nil": func() (*infer.Result, error) {
			return infer.Run(context.Background(), program, nil, infer.Options{})
		},
	} {
		r, err := f()
		assert.ErrorContains(t, err, "infer.Run: "+want)
		assert.ErrorIs(t, err, infer.ErrConfig)
		assert.Nil(t, r)
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

// Where products over data sum in another order for another number of chains, groups of 8 and all 64 agree after one
// update to rounding: the streams are the same.
func TestGroupsAgreeToRounding(t *testing.T) {
	m := newLogistic(200, 5)
	start := numbers(64*6, 0.3)
	p := pointOf(t, m.layout(t), start...)
	transform := build(t, sgmcmc.SGHMC{LR: infer.Constant(0.1), Temperature: infer.Constant(1.0 / 200)}, m.logPosterior)
	last := func(group int) []float64 {
		batches := minibatches(t, m.batch(), infer.MinibatchOptions{Size: 32, Seed: 1})
		r, err := infertest.Run(context.Background(), transform, p, batches,
			infer.Options{Warmup: 1, Draws: 1, Group: group, Seed: 8})
		require.NoError(t, err)
		return floats(r.Last.Flat)
	}
	// θ moves with the old momenta: the gradient of the first update is in θ after the second.
	assert.InDeltaSlice(t, last(64), last(8), 1e-14)
}

// A group that Until ended has ended when the ensemble is resumed; observers are told the number of
// a group's first chain.
func TestEnsembleWithUntilResumes(t *testing.T) {
	updates := 0
	var firsts []uint64
	c := infer.Options{Warmup: infer.None, Draws: 50, Seed: 3,
		Checkpoint: &infer.Checkpoint{Dir: t.TempDir(), Resume: true}, Until: func(p infer.Progress) bool {
			updates++
			if p.Step == 1 {
				firsts = append(firsts, p.FirstChain)
			}
			return p.Step >= 12
		}}
	want := ensembleOf(t, 4, c)
	assert.Equal(t, 36, updates)
	assert.Equal(t, []uint64{0, 4, 8}, firsts)
	got := ensembleOf(t, 4, c)
	assert.Equal(t, 36, updates, "nothing was left to do")
	assert.Equal(t, floats(want.Last.Flat), floats(got.Last.Flat))
	assert.Equal(t, 12, got.Draws.MinLen())
}
