package infer_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/torch"
)

// stat is the trace of a statistic in one chain.
func stat(t testing.TB, r *infer.Result, name string, chain int) []float64 {
	t.Helper()
	v, err := r.Draws.Stat(name, chain)
	require.NoError(t, err)
	return v
}

// The counter makes known numbers: a draw after update n is the start plus n, with lp = −n − k/8, grad_norm = n, own =
// 2n and also = k. So the draws say which updates they were taken after, and that chains and columns are not mixed up.
func TestRunDraws(t *testing.T) {
	l := layoutOf(t, infer.Shapes{"a": {}, "w": {2}})
	for _, c := range []struct {
		warmup, draws, thin int
		after               []float64 // the updates that lead to a draw
	}{
		{warmup: infer.None, draws: 5, after: []float64{1, 2, 3, 4, 5}},
		{warmup: infer.None, draws: 5, thin: 1, after: []float64{1, 2, 3, 4, 5}},
		{warmup: 2, draws: 3, after: []float64{3, 4, 5}},
		{warmup: 4, draws: 1, after: []float64{5}},
		{warmup: infer.None, draws: 3, thin: 3, after: []float64{3, 6, 9}},
		{warmup: 1, draws: 3, thin: 3, after: []float64{4, 7, 10}},
		{warmup: 2, draws: 2, thin: 4, after: []float64{6, 10}},
		{warmup: infer.None, draws: 1, after: []float64{1}},
	} {
		t.Run(fmt.Sprintf("warm-up %d, %d draws, thin %d", c.warmup, c.draws, c.thin), func(t *testing.T) {
			p := pointOf(t, l, 100, 200, 300, 1000, 2000, 3000)
			r := ran(t, counter{}, p, infer.Full(nil),
				infer.Options{Warmup: c.warmup, Draws: c.draws, Thin: c.thin})
			updates := int(c.after[len(c.after)-1])
			assert.Equal(t, updates, r.Updates)
			assert.Equal(t, updates, r.State.Steps())
			assert.Zero(t, r.Held)
			if diff := cmp.Diff(l.Sites, r.Draws.Sites()); diff != "" {
				t.Error(diff)
			}
			require.Equal(t, 2, r.Draws.Chains())
			assert.Equal(t, []string{"lp", "grad_norm", "held", "also", "own"}, r.Draws.Stats(), "the method's own are sorted")
			for k, start := range []float64{100, 1000} {
				require.Equal(t, len(c.after), r.Draws.Len(k))
				for i, n := range c.after {
					assert.Equal(t, []float64{start + n, 2*start + n, 3*start + n}, r.Draws.Row(k, i))
					assert.Equal(t, -n-1-float64(k)/8, stat(t, r, "lp", k)[i], "at the draw: the next evaluation tells")
					assert.Equal(t, n+1, stat(t, r, "grad_norm", k)[i])
					assert.Equal(t, 2*n, stat(t, r, "own", k)[i])
					assert.Equal(t, float64(k), stat(t, r, "also", k)[i])
					assert.Zero(t, stat(t, r, "held", k)[i])
				}
			}
			last := float64(updates)
			assert.Equal(t, []float64{100 + last, 200 + last, 300 + last, 1000 + last, 2000 + last, 3000 + last},
				floats(r.State.Position().Flat))
			assert.Equal(t, []float64{100, 200, 300, 1000, 2000, 3000}, floats(p.Flat),
				"the start is not changed, though the counter keeps it as it is")
		})
	}
}

// Without draws there is no container.
func TestRunWithoutDraws(t *testing.T) {
	r := ran(t, counter{}, pointOf(t, layoutOf(t, infer.Shapes{"w": {}}), 0), infer.Full(nil),
		infer.Options{Warmup: 4, Draws: infer.None})
	assert.Nil(t, r.Draws)
	assert.Equal(t, []float64{4}, floats(r.State.Position().Flat))
}

// A single point is repeated for the chains asked for; params that have the chains already are taken as they are, and
// one chain with a chain axis keeps it.
func TestRunChains(t *testing.T) {
	l := layoutOf(t, infer.Shapes{"w": {2}})
	one := pointOf(t, l, 10, 20)
	three := pointOf(t, l, 10, 20, 30, 40, 50, 60)
	row, err := one.Repeat(1)
	require.NoError(t, err)
	for name, c := range map[string]struct {
		p      infer.Params
		chains int
		want   []float64
		shape  []int
	}{
		"one":            {one, 0, []float64{11, 21}, []int{2}},
		"one, asked for": {one, 1, []float64{11, 21}, []int{2}},
		"one row":        {row, 0, []float64{11, 21}, []int{1, 2}},
		"one row, asked": {row, 1, []float64{11, 21}, []int{1, 2}},
		"repeated":       {one, 3, []float64{11, 21, 11, 21, 11, 21}, []int{3, 2}},
		"three":          {three, 0, []float64{11, 21, 31, 41, 51, 61}, []int{3, 2}},
		"three, asked":   {three, 3, []float64{11, 21, 31, 41, 51, 61}, []int{3, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			r := ran(t, counter{}, c.p, infer.Full(nil), infer.Options{Warmup: infer.None, Draws: 1, Chains: c.chains})
			assert.Equal(t, c.shape, shapeOf(r.State.Position().Flat))
			assert.Equal(t, c.want, floats(r.State.Position().Flat))
			require.Equal(t, len(c.want)/2, r.Draws.Chains())
			for k := range r.Draws.Chains() {
				assert.Equal(t, c.want[2*k:2*k+2], r.Draws.Row(k, 0))
			}
		})
	}
}

// Chains that start at one point have streams of their own: SGLD moves each somewhere else.
func TestRunRepeatedChainsDiffer(t *testing.T) {
	m := newLogistic(20, 2)
	r := ran(t, build(t, sgmcmc.SGLD{LR: infer.Constant(0.1)}, m.logPosterior), pointOf(t, m.layout(t), 0, 0, 0),
		infer.Full(m.batch()), infer.Options{Warmup: infer.None, Draws: 1, Chains: 4})
	seen := map[string]bool{}
	for k := range 4 {
		seen[fmt.Sprint(r.Draws.Row(k, 0))] = true
	}
	assert.Len(t, seen, 4)
}

// With SGLD: burn-in and thinning pick draws out of the run without them. A run draws the same random numbers whatever
// is recorded, so the picked draws have the same bits.
func TestRunPicksDraws(t *testing.T) {
	m := newLogistic(20, 2)
	run := func(c infer.Options) *infer.Result {
		c.Chains, c.Seed = 2, 4
		return ran(t, build(t, sgmcmc.SGLD{LR: infer.Constant(0.1)}, m.logPosterior), pointOf(t, m.layout(t), 0.5, -0.5, 1),
			minibatches(t, m.batch(), infer.MinibatchOptions{Size: 7}), c)
	}
	all, some := run(infer.Options{Warmup: infer.None, Draws: 20}), run(infer.Options{Warmup: 5, Draws: 3, Thin: 4})
	require.Equal(t, 3, some.Draws.MinLen())
	for i, update := range []int{9, 13, 17} {
		for k := range 2 {
			sameBits(t, all.Draws.Row(k, update-1), some.Draws.Row(k, i), "draws")
			sameBits(t, stat(t, all, "lp", k)[update-1:update], stat(t, some, "lp", k)[i:i+1], "lp")
		}
	}
}

// lp is the density at the draw, and grad_norm the norm of the gradient there. The density is written out in Go.
func TestRunStatistics(t *testing.T) {
	m := newLogistic(20, 2)
	const k = 2
	start := numbers(k*3, 1)
	r := ran(t, build(t, sgmcmc.SGHMC{LR: infer.Constant(0.1)}, m.logPosterior), pointOf(t, m.layout(t), start...),
		infer.Full(m.batch()), infer.Options{Warmup: infer.None, Draws: 6})
	for c := range k {
		for i := range 6 {
			at := r.Draws.Row(c, i)
			e := evaluate(t, m.logPosterior, pointOf(t, m.layout(t), at...), m.batch())
			assert.InDelta(t, m.value(at), stat(t, r, "lp", c)[i], 1e-14)
			assert.InDelta(t, e.Norms[0], stat(t, r, "grad_norm", c)[i], 1e-14)
		}
	}
}

// A method that tells nothing about its updates has NaN where a number is missing, and no columns of its own.
func TestRunWithoutStatistics(t *testing.T) {
	r := ran(t, counter{plain: true}, pointOf(t, layoutOf(t, infer.Shapes{"w": {}}), 0, 10), infer.Full(nil),
		infer.Options{Warmup: infer.None, Draws: 2})
	assert.Equal(t, []string{"lp", "grad_norm", "held"}, r.Draws.Stats())
	for _, v := range append(stat(t, r, "lp", 1), stat(t, r, "grad_norm", 0)...) {
		assert.NotEqual(t, v, v, "NaN")
	}
	assert.Equal(t, []float64{0, 0}, stat(t, r, "held", 1))
}

// The observer is called once after every update, in order, with the counts so far and the state of that moment.
func TestRunObserver(t *testing.T) {
	var seen []infer.Progress
	var positions [][]float64
	r := ran(t, counter{diverges: func(update int, chain int) bool { return chain == 1 && update > 4 }},
		pointOf(t, layoutOf(t, infer.Shapes{"w": {}}), 0, 10), infer.Full(nil),
		infer.Options{Warmup: 2, Draws: 2, Thin: 2, Observer: infer.ObserverFunc(func(p infer.Progress) {
			positions = append(positions, floats(p.State.Position().Flat))
			assert.Equal(t, p.Step, p.State.Steps())
			assert.Equal(t, 0.5, p.Info.LR)
			assert.Equal(t, []float64{-float64(p.Step), -float64(p.Step) - 0.125}, p.Info.LogPosterior)
			assert.GreaterOrEqual(t, int(p.Elapsed), 0)
			assert.IsType(t, counter{}, p.Transform)
			assert.Equal(t, "infer_test.counter", p.Method)
			assert.Equal(t, 2*p.Step, p.Gradients)
			p.State, p.Transform, p.Info, p.Elapsed, p.Method, p.Gradients = nil, nil, infer.Info{}, 0, "", 0
			require.Equal(t, 2, p.Chains)
			p.Chains = 0
			seen = append(seen, p)
		})})
	want := []infer.Progress{
		{Step: 1, Steps: 6, Warming: true}, {Step: 2, Steps: 6, Warming: true}, {Step: 3, Steps: 6}, {Step: 4, Steps: 6},
		{Step: 5, Steps: 6, Draws: 1, Held: 1}, {Step: 6, Steps: 6, Draws: 1, Held: 2},
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Error(diff)
	}
	assert.Equal(t, [][]float64{{1, 11}, {2, 12}, {3, 13}, {4, 14}, {5, 15}, {6, 16}}, positions)
	assert.EqualValues(t, 2, r.Held)
	assert.Equal(t, []float64{0, 1}, stat(t, r, "held", 1))
	assert.Equal(t, []float64{0, 0}, stat(t, r, "held", 0))
}

// An observer may look at the aux of the update. After the update it is gone.
func TestRunObserverSeesAux(t *testing.T) {
	m := newLogistic(6, 2)
	var last infer.Aux
	ran(t, build(t, optim.SGD{LR: infer.Constant(0.1)}, m.logPosterior), pointOf(t, m.layout(t), 0, 0, 0, 1, 1, 1),
		infer.Full(m.batch()),
		infer.Options{Warmup: infer.None, Draws: 3, Observer: infer.ObserverFunc(func(p infer.Progress) {
			last = p.Info.Aux
			assert.Equal(t, []int{2, 6}, shapeOf(last["eta"]))
		})})
	assert.True(t, torch.Freed(last["eta"]))
}

// Batches go on where they stand, one for each update.
func TestRunTakesOneBatchForEachUpdate(t *testing.T) {
	b := minibatches(t, numbered(10), infer.MinibatchOptions{Size: 4})
	p := pointOf(t, layoutOf(t, infer.Shapes{"w": {}}), 0)
	ran(t, counter{}, p, b, infer.Options{Warmup: infer.None, Draws: 5})
	assert.Equal(t, infer.Position{Epoch: 1, Index: 2}, b.Position())
	ran(t, counter{}, p, b, infer.Options{Warmup: infer.None, Draws: 2})
	assert.Equal(t, infer.Position{Epoch: 2, Index: 1}, b.Position())
}
