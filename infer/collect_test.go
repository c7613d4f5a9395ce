package infer_test

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
	"github.com/kelvin-ppl/kelvin/torch"
)

// drawnAt are the numbers of the updates that draws were taken after: the counter's position is the
// number of its updates.
func drawnAt(t *testing.T, c infer.Options) []float64 {
	t.Helper()
	r := ran(t, restorable{}, pointOf(t, layoutOf(t, infer.Shapes{"x": {1}}), 0), infer.Full(nil), c)
	return r.Draws.Element(0, 0)
}

func TestDrawsAtTheEndsOfCycles(t *testing.T) {
	cycles := &infer.Cycles{Length: 10, From: 5}
	assert.Equal(t, []float64{15, 25, 35}, drawnAt(t, infer.Options{Warmup: infer.None, Draws: 3, Cycles: cycles}))
	assert.Equal(t, []float64{25, 35}, drawnAt(t, infer.Options{Warmup: 15, Draws: 2, Cycles: cycles}))
	assert.Equal(t, []float64{25, 45}, drawnAt(t, infer.Options{Warmup: infer.None, Draws: 2, Thin: 2, Cycles: cycles}))
	assert.Equal(t, []float64{35}, drawnAt(t, infer.Options{Warmup: 16, Draws: 1, Thin: 2, Cycles: cycles}))

	transform := restorable{}
	p := pointOf(t, layoutOf(t, infer.Shapes{"x": {1}}), 0)
	_, err := infertest.Run(context.Background(), transform, p, infer.Full(nil),
		infer.Options{Warmup: infer.None, Draws: 1, Cycles: &infer.Cycles{Length: 1, Explore: 2}})
	require.EqualError(t, err, "infer.Run: infer.Cycles: Explore is 2: it must be at least 0 and less than 1")
}

// Update t, counted from 0, leaves position t with step size 1/(t + 1): the weighted sums over t = 10,
// ..., 499 are closed.
func TestAverageIsWeightedByTheStep(t *testing.T) {
	c := infer.Options{Warmup: 10, Draws: 490, Discard: true, Average: true}
	p := pointOf(t, layoutOf(t, infer.Shapes{"x": {1}}), 0)
	r := ran(t, counter{lr: func(step int) float64 { return 1 / float64(step+1) }}, p, infer.Full(nil), c)
	var weight, first, second float64
	for i := 10; i < 500; i++ {
		weight += 1 / float64(i+1)
		first += float64(i) / float64(i+1)
		second += float64(i*i) / float64(i+1)
	}
	mean := first / weight
	assert.InEpsilon(t, weight, r.Average.Weight, 1e-13)
	assert.InEpsilon(t, mean, floats(r.Average.Mean.Flat)[0], 1e-13)
	assert.InEpsilon(t, second/weight-mean*mean, floats(r.Average.Variance.Flat)[0], 1e-12)

	// With equal steps it is the average of the positions 10 to 19.
	plain := ran(t, restorable{}, p, infer.Full(nil), infer.Options{Warmup: 10, Draws: 10, Average: true})
	assert.InDelta(t, 14.5, floats(plain.Average.Mean.Flat)[0], 1e-13)
	assert.InDelta(t, 8.25, floats(plain.Average.Variance.Flat)[0], 1e-12)

	// A chain that never moves, with weight 0, has none.
	none := ran(t, counter{lr: infer.Constant(0)}, p, infer.Full(nil),
		infer.Options{Warmup: infer.None, Draws: 20, Average: true})
	assert.Nil(t, none.Average)
}

// The average is kept in float64: at 2²² a float32 has steps of a half, which the mean of 20,000 positions must not
// round to.
func TestAverageOfFloat32(t *testing.T) {
	p := in32(t, pointOf(t, layoutOf(t, infer.Shapes{"x": {1}}), 1<<22))
	var average *infer.Average
	require.NoError(t, torch.Do(func(*torch.Scope) error {
		average = ran(t, counter{}, p, infer.Full(nil),
			infer.Options{Warmup: infer.None, Draws: 20000, Discard: true, Average: true}).Average
		return nil
	}))
	assert.InDelta(t, 1<<22+9999.5, floats(average.Mean.Flat)[0], 1e-6)
	// of n equally spaced numbers, also after the caller's scope
	assert.InEpsilon(t, (20_000.0*20_000-1)/12, floats(average.Variance.Flat)[0], 1e-9)
}

func TestUntilEndsARun(t *testing.T) {
	p := pointOf(t, layoutOf(t, infer.Shapes{"x": {1}}), 0)
	dir := t.TempDir()
	seen := 0
	c := infer.Options{Warmup: infer.None, Draws: 100,
		Until: func(p infer.Progress) bool { seen++; return p.Step == 17 }, Checkpoint: &infer.Checkpoint{Dir: dir}}
	r := ran(t, restorable{}, p, infer.Full(nil), c)
	assert.EqualValues(t, 17, r.Updates)
	assert.Equal(t, 17, seen)
	assert.Equal(t, 17, r.Draws.MinLen())
	// It was saved where it ended, and has ended when it is resumed.
	c.Checkpoint.Resume = true
	r = ran(t, restorable{}, p, infer.Full(nil), c)
	assert.EqualValues(t, 17, r.Updates)
	assert.Equal(t, 17, seen, "no update was made")
	// Without Until it goes on from there.
	var resumed int
	c.Until, c.Observer = nil, infer.ObserverFunc(func(p infer.Progress) { resumed = p.Resumed })
	r = ran(t, restorable{}, p, infer.Full(nil), c)
	assert.EqualValues(t, 100, r.Updates)
	assert.EqualValues(t, 17, resumed)
	assert.False(t, math.IsNaN(r.Draws.Row(0, 99)[0]))
}

// A transform that prepares itself sees the batches that its updates see afterwards, and the run's own order stays.
func TestPrepareSeesTheBatchesToCome(t *testing.T) {
	data := infer.Batch{"x": vec([]float64{0, 1, 2, 3, 4, 5, 6, 7})}
	var updates, prepared []float64
	transform := &preparing{seen: &updates, prepared: &prepared}
	p := pointOf(t, layoutOf(t, infer.Shapes{"x": {1}}), 0)
	ran(t, transform, p, minibatches(t, data, infer.MinibatchOptions{Size: 2, Seed: 4}),
		infer.Options{Warmup: 8, Draws: infer.None})
	assert.Len(t, updates, 16)
	assert.Equal(t, slices.Concat(updates[:6], updates[8:14]), prepared, "the first three batches of each epoch")
	assert.Equal(t, 2, transform.count, "before the first update of each of two epochs")
}
