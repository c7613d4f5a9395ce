package infer_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/kelvin-ppl/kelvin/infer"
)

func TestRamp(t *testing.T) {
	assert.Equal(t, []float64{0, 0, 0, 0.5, 1, 1.5, 2, 2}, series(infer.Ramp(2, 6, 4), 8))
	assert.Equal(t, series(infer.Linear(0, 2, 2, 6), 20), series(infer.Ramp(2, 6, 4), 20),
		"a ramp is a line to the start of sampling")
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
	identity := infer.Schedule(func(t int) float64 { return float64(t) })
	assert.Equal(t, []float64{0, 3, 6}, series(identity.Scaled(3), 3))
	assert.Equal(t, []float64{1.5, 1.5, 2, 3}, series(identity.AtLeast(1.5), 4))

	assert.Equal(t, []float64{-1, -1, -1, 0, 1, 2}, series(infer.Constant(-1).Then(3, identity), 6))
	r := identity.Repeat(3)
	assert.Equal(t, []float64{0, 1, 2, 0, 1, 2, 0}, series(r, 7))
	// What is repeated starts at its own 0.
	assert.Equal(t, []float64{9, 9, 0, 1, 2, 0}, series(infer.Constant(9).Then(2, r), 6))
	assert.Equal(t, infer.Cosine(1, 1000)(4), infer.Cosine(1, 1000).Repeat(5)(14))
}
