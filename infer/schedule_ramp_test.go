package infer_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/infer"
)

func TestRamp(t *testing.T) {
	assert.Equal(t, []float64{0, 0, 0, 0.5, 1, 1.5, 2, 2}, series(infer.Ramp(2, 6, 4), 8))
	assert.Equal(t, series(infer.Linear(0, 2, 2, 6), 20), series(infer.Ramp(2, 6, 4), 20), "a ramp is a line to the start of sampling")
	assert.Equal(t, []float64{0, 0, 2, 2}, series(infer.Ramp(2, 2, 0), 4), "a step")
	assert.Equal(t, []float64{1, 1.5, 2}, series(infer.Ramp(2, 2, 4), 3), "already on the way up at the start")
	assert.Equal(t, []float64{2, 2}, series(infer.Ramp(2, 0, 5), 2), "sampling from the start")
}

func TestCyclicalRamp(t *testing.T) {
	c := infer.Cycles{Length: 8, Explore: 0.25}
	// r = 0 ... 7/8; up from ¼ to ¾, that is over 4 updates.
	near(t, []float64{0, 0, 0, 1, 2, 3, 4, 4, 0, 0, 0, 1}, series(c.Ramp(4, 0.75), 12))
	assert.Equal(t, series(c.Temperature(infer.Constant(4)), 30), series(c.Ramp(4, 0.25), 30), "in one step")
	assert.Equal(t, series(c.Temperature(infer.Constant(4)), 30), series(c.Ramp(4, 0), 30), "in one step")
	c = infer.Cycles{Length: 4, From: 2}
	near(t, []float64{0, 0, 0, 2, 4, 4, 0, 2}, series(c.Ramp(4, 0.5), 8))
}

func TestCombinators(t *testing.T) {
	identity := infer.Schedule(func(t int64) float64 { return float64(t) })
	assert.Equal(t, []float64{0, 3, 6}, series(infer.Scaled(3, identity), 3))
	assert.Equal(t, []float64{1.5, 1.5, 2, 3}, series(infer.AtLeast(1.5, identity), 4))

	s, err := infer.Then(3, infer.Constant(-1), identity)
	require.NoError(t, err)
	assert.Equal(t, []float64{-1, -1, -1, 0, 1, 2}, series(s, 6))
	p, err := infer.Piecewise(infer.Piece{Schedule: infer.Constant(-1)}, infer.Piece{From: 3, Schedule: identity})
	require.NoError(t, err)
	assert.Equal(t, series(p, 20), series(s, 20), "two pieces")

	r, err := infer.Repeat(3, identity)
	require.NoError(t, err)
	assert.Equal(t, []float64{0, 1, 2, 0, 1, 2, 0}, series(r, 7))
	both, err := infer.Then(2, infer.Constant(9), r) // what is repeated starts at its own 0
	require.NoError(t, err)
	assert.Equal(t, []float64{9, 9, 0, 1, 2, 0}, series(both, 6))

	cosine, err := infer.Repeat(5, infer.Cosine(1, 1000))
	require.NoError(t, err)
	assert.Equal(t, infer.Cosine(1, 1000)(4), cosine(14))
}

func TestCombinatorErrors(t *testing.T) {
	c := infer.Constant(1)
	for want, f := range map[string]func() (infer.Schedule, error){
		"infer.Then: the first schedule has 0 updates: it must have at least 1, and both schedules are needed: invalid configuration": func() (infer.Schedule, error) { return infer.Then(0, c, c) },
		"infer.Then: the first schedule has 2 updates: it must have at least 1, and both schedules are needed: invalid configuration": func() (infer.Schedule, error) { return infer.Then(2, c, nil) },
		"infer.Repeat: the schedule is repeated after 0 updates: there must be at least 1, and a schedule: invalid configuration":     func() (infer.Schedule, error) { return infer.Repeat(0, c) },
		"infer.Repeat: the schedule is repeated after 4 updates: there must be at least 1, and a schedule: invalid configuration":     func() (infer.Schedule, error) { return infer.Repeat(4, nil) },
	} {
		_, err := f()
		assert.EqualError(t, err, want)
		assert.ErrorIs(t, err, infer.ErrConfig)
	}
}
