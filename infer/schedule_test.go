package infer_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
)

// Values that are exact in binary, or within one rounding of the formula in the comment.
func TestSchedules(t *testing.T) {
	ramp := infer.Linear(0, 1, 10, 20)
	identity := infer.Schedule(func(t int) float64 { return float64(t) })
	for name, c := range map[string]struct {
		schedule infer.Schedule
		at       int
		want     float64
	}{
		"constant":         {infer.Constant(0.3), 0, 0.3},
		"constant, late":   {infer.Constant(0.3), math.MaxInt64, 0.3},
		"polynomial":       {infer.Polynomial(3, 4, 0.5), 0, 1.5},     // 3/√4
		"polynomial, 5":    {infer.Polynomial(3, 4, 0.5), 5, 1},       // 3/√9
		"polynomial, γ=1":  {infer.Polynomial(6, 1, 1), 2, 2},         // 6/3
		"polynomial, γ=0":  {infer.Polynomial(6, 1, 0), 7, 6},         // x⁰ = 1
		"cosine, 0":        {infer.Cosine(2, 4), 0, 2},                // cos 0 = 1
		"cosine, 1":        {infer.Cosine(2, 4), 1, 1 + math.Sqrt2/2}, // cos π/4
		"cosine, 2":        {infer.Cosine(2, 4), 2, 1},                // cos π/2 = 0
		"cosine, 3":        {infer.Cosine(2, 4), 3, 1 - math.Sqrt2/2}, // cos 3π/4
		"cosine, restart":  {infer.Cosine(2, 4), 4, 2},
		"cosine, far":      {infer.Cosine(2, 4), 4_000_000_001, 1 + math.Sqrt2/2},
		"cosine, cycle 1":  {infer.Cosine(2, 1), 17, 2}, // always at the start of a cycle
		"cosine, cycle 0":  {infer.Cosine(2, 0), 17, 2}, // taken as 1
		"linear, before":   {ramp, 0, 0},
		"linear, start":    {ramp, 10, 0},
		"linear, one on":   {ramp, 11, 0.1},
		"linear, middle":   {ramp, 15, 0.5},
		"linear, one off":  {ramp, 19, 0.9},
		"linear, end":      {ramp, 20, 1},
		"linear, after":    {ramp, 1000, 1},
		"linear, falling":  {infer.Linear(3, -1, 0, 4), 1, 2},
		"linear, a step":   {infer.Linear(3, 5, 7, 7), 7, 3}, // start and end together: the first number still holds there
		"linear, stepped":  {infer.Linear(3, 5, 7, 7), 8, 5},
		"warm-up, 0":       {infer.Constant(8).Warmup(4), 0, 2}, // 8·1/4
		"warm-up, 2":       {infer.Constant(8).Warmup(4), 2, 6},
		"warm-up, 3":       {infer.Constant(8).Warmup(4), 3, 8},
		"warm-up, after":   {infer.Constant(8).Warmup(4), 4, 8},
		"warm-up of 0":     {infer.Constant(8).Warmup(0), 0, 8},
		"warm-up of 1":     {infer.Constant(8).Warmup(1), 0, 8},
		"warm-up, inside":  {identity.Warmup(4), 2, 1.5}, // the schedule inside sees the same update
		"product":          {identity.Times(infer.Constant(0.5)), 6, 3},
		"product, of both": {identity.Times(identity), 3, 9},
		"composition":      {ramp.Times(infer.Cosine(4, 20)).Warmup(2), 15, 0.5 * 2 * (1 - math.Sqrt2/2)}, // cos 3π/4
	} {
		assert.InDelta(t, c.want, c.schedule(c.at), 1e-15*math.Max(1, math.Abs(c.want)), name)
	}
}

// The steps of Robbins and Monro: the last of 10⁶ values still follows a·(b + t)^(−γ), by logarithms.
func TestPolynomialDecay(t *testing.T) {
	s := infer.Polynomial(0.5, 10, 0.55)
	for step := 1; step <= 1_000_000; step *= 10 {
		want := math.Log(0.5) - 0.55*math.Log(10+float64(step))
		assert.InDelta(t, want, math.Log(s(step)), 1e-14)
	}
}

func TestPieces(t *testing.T) {
	identity := infer.Schedule(func(t int) float64 { return float64(t) })
	s := infer.Constant(-1).Then(3, identity).Then(5, infer.Constant(4).Warmup(2))
	var got []float64
	for i := range 8 {
		got = append(got, s(i))
	}
	assert.Equal(t, []float64{-1, -1, -1, 0, 1, 2, 4, 4}, got)
	assert.Equal(t, 9.0, infer.Constant(1).Then(0, identity)(9))
}

// A schedule that lacks a part is none, which a method says by its field.
func TestSchedulesThatLackAPart(t *testing.T) {
	c := infer.Constant(1)
	var none infer.Schedule
	for name, s := range map[string]infer.Schedule{
		"then": c.Then(2, nil), "first": none.Then(2, c), "repeat": none.Repeat(4), "times": c.Times(nil),
		"scaled":  none.Scaled(2),
		"warm-up": none.Warmup(2), "floor": none.AtLeast(1),
	} {
		assert.Nil(t, s, name)
		_, err := sgmcmc.SGLD{LR: s}.Build(infer.Mean(wells, 0))
		assert.ErrorContains(t, err, "sgmcmc.SGLD: LR is missing", name)
	}
}
