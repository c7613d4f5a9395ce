package infer_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
)

// series are the first n values of a schedule.
func series(s infer.Schedule, n int) []float64 {
	out := make([]float64, n)
	for i := range n {
		out[i] = s(i)
	}
	return out
}

func near(t testing.TB, want, got []float64) {
	t.Helper()
	assert.InDeltaSlice(t, want, got, 1e-15)
}

func TestCyclicalCosine(t *testing.T) {
	s2 := math.Sqrt2 / 2
	c := infer.Cycles{Length: 4}
	err := c.Check()
	require.NoError(t, err)
	near(t, []float64{2, 1 + s2, 1, 1 - s2, 2, 1 + s2, 1, 1 - s2, 2}, series(c.Cosine(2), 9)) // cos 0, π/4, π/2, 3π/4
	assert.Equal(t, series(infer.Cosine(2, 4), 50), series(c.Cosine(2), 50), "without a start it is Cosine")

	c.From = 3 // the peak until the first cycle starts
	near(t, []float64{2, 2, 2, 2, 1 + s2, 1, 1 - s2, 2}, series(c.Cosine(2), 8))

	// The last value of a cycle is peak·sin²(π/(2L)), close to the π²/(4L²) of the doc comment.
	c = infer.Cycles{Length: 1000}
	assert.InDelta(t, math.Pow(math.Sin(math.Pi/2000), 2), c.Cosine(1)(999), 1e-16)
	assert.InEpsilon(t, math.Pi*math.Pi/4e6, c.Cosine(1)(999), 1e-5)
}

func TestCyclicalGlide(t *testing.T) {
	c := infer.Cycles{Length: 4, From: 2}
	near(t, []float64{3, 3, 3, 3 * math.Exp(-1./3), 3 * math.Exp(-1), 3 * math.Exp(-3), 3}, series(c.Glide(3), 7))
	// r/(1 − r) = log 2 at r = 0.409..., and exp(−3) at r = ¾.
	c = infer.Cycles{Length: 10000}
	assert.InDelta(t, 0.5, c.Glide(1)(4094), 1e-4)
	assert.InDelta(t, 0.0498, c.Glide(1)(7500), 1e-4)
	assert.InDelta(t, 0.1464, c.Cosine(1)(7500), 1e-4)
}

// A quarter of a cycle of 8 is 2 updates without noise.
func TestCyclicalTemperature(t *testing.T) {
	c := infer.Cycles{Length: 8, Explore: 0.25}
	want := []float64{0, 0, 5, 5, 5, 5, 5, 5, 0, 0, 5}
	assert.Equal(t, want, series(c.Temperature(infer.Constant(5)), 11))

	// The temperature sees the updates of the run, not of the cycle.
	identity := infer.Schedule(func(t int) float64 { return float64(t) })
	assert.Equal(t, []float64{0, 0, 2, 3, 4, 5, 6, 7, 0, 0, 10}, series(c.Temperature(identity), 11))

	c.From = 3 // exploring from the start of the run
	assert.Equal(t, []float64{0, 0, 0, 0, 0, 5}, series(c.Temperature(infer.Constant(5)), 6))

	c = infer.Cycles{Length: 3} // without exploration it is always warm
	assert.Equal(t, []float64{5, 5, 5, 5}, series(c.Temperature(infer.Constant(5)), 4))

	// A part that is not a whole number of updates: 0.3·5 = 1.5, so that r = 0 and r = 1/5 explore.
	c = infer.Cycles{Length: 5, Explore: 0.3}
	assert.Equal(t, []float64{0, 0, 5, 5, 5, 0}, series(c.Temperature(infer.Constant(5)), 6))
	// 0.1·30 is 3 and not a little more, whatever 3/30 is rounded to.
	c = infer.Cycles{Length: 30, Explore: 0.1}
	assert.False(t, c.Exploring(3))
	assert.True(t, c.Exploring(2))
}

func TestCycleEnds(t *testing.T) {
	c := infer.Cycles{Length: 4, From: 3}
	var ends []int
	for updates := range 20 {
		if c.Ends(updates) {
			ends = append(ends, updates)
		}
	}
	assert.Equal(t, []int{7, 11, 15, 19}, ends)
	for updates, want := range map[int]int{0: 0, 3: 0, 6: 0, 7: 1, 10: 1, 11: 2} {
		assert.Equal(t, want, c.Done(updates), "after %d", updates)
	}
	// The update that ends a cycle is the one with the smallest step: the next one is at the peak again.
	assert.Less(t, c.Cosine(1)(6), c.Cosine(1)(5))
	assert.Equal(t, 1.0, c.Cosine(1)(7))
	// 1500 epochs, from epoch 150 in cycles of 50: the 27 samples of Wenzel et al.
	assert.Equal(t, 27, infer.Cycles{Length: 50, From: 150}.Done(1500))
}

// What Ends picks from the states of a run is what Warmup and Thin keep.
func TestCycleEndsAreTheDrawsOfARun(t *testing.T) {
	c := infer.Cycles{Length: 4, From: 3}
	l := layoutOf(t, infer.Shapes{"x": {2}})
	f := func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
		return scaled(sum(p.Flat.Square()), -0.5), nil
	}
	transform := build(t, optim.SGD{LR: c.Cosine(0.3)}, f)
	var want [][]float64
	r, err := infertest.Run(context.Background(), transform, pointOf(t, l, 1, -2), infer.Full(nil),
		infer.Options{Warmup: c.From, Draws: 4, Thin: c.Length,
			Observer: infer.ObserverFunc(func(p infer.Progress) {
				if c.Ends(p.State.Steps()) {
					want = append(want, floats(p.State.Position().Flat))
				}
			})})
	require.NoError(t, err)
	require.Len(t, want, 4)
	require.Equal(t, 4, r.Draws.Len(0))
	for i := range want {
		assert.Equal(t, want[i], r.Draws.Row(0, i))
	}
}

func TestCyclesErrors(t *testing.T) {
	for want, c := range map[string]infer.Cycles{
		"infer.Cycles: Length is 0: it must be at least 1":                     {},
		"infer.Cycles: Length is -3: it must be at least 1":                    {Length: -3},
		"infer.Cycles: From is -1: it must be at least 0":                      {Length: 1, From: -1},
		"infer.Cycles: Explore is 1: it must be at least 0 and less than 1":    {Length: 1, Explore: 1},
		"infer.Cycles: Explore is -0.1: it must be at least 0 and less than 1": {Length: 1, Explore: -0.1},
		"infer.Cycles: Explore is NaN: it must be at least 0 and less than 1":  {Length: 1, Explore: math.NaN()},
	} {
		err := c.Check()
		assert.EqualError(t, err, want)
		assert.ErrorIs(t, err, infer.ErrConfig)
	}
	// A zero value that was not checked does not divide by 0.
	assert.Equal(t, 2.0, infer.Cycles{}.Cosine(2)(5))
	assert.Equal(t, 2.0, infer.Cycles{}.Glide(2)(5))
}

// Cycles of 4 updates after 2 updates of warm-up, the first quarter of each without noise.
func ExampleCycles() {
	c := infer.Cycles{Length: 4, From: 2, Explore: 0.25}
	err := c.Check()
	if err != nil {
		fmt.Println(err)
		return
	}
	lr, temperature := c.Cosine(0.1).Warmup(2), c.Temperature(infer.Constant(1))
	for t := range 7 {
		fmt.Printf("%.3f at T = %g", lr(t), temperature(t))
		if c.Ends(t + 1) { // after this update
			fmt.Print(", keep a sample")
		}
		fmt.Println()
	}
	// Output:
	// 0.050 at T = 0
	// 0.100 at T = 0
	// 0.100 at T = 0
	// 0.085 at T = 1
	// 0.050 at T = 1
	// 0.015 at T = 1, keep a sample
	// 0.100 at T = 0
}
