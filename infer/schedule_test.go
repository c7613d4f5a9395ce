package infer_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/infer"
)

// Values that are exact in binary, or within one rounding of the formula in the comment.
func TestSchedules(t *testing.T) {
	ramp := infer.Linear(0, 1, 10, 20)
	identity := infer.Schedule(func(t int64) float64 { return float64(t) })
	for name, c := range map[string]struct {
		schedule infer.Schedule
		at       int64
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
		"warm-up, 0":       {infer.Warmup(4, infer.Constant(8)), 0, 2}, // 8·1/4
		"warm-up, 2":       {infer.Warmup(4, infer.Constant(8)), 2, 6},
		"warm-up, 3":       {infer.Warmup(4, infer.Constant(8)), 3, 8},
		"warm-up, after":   {infer.Warmup(4, infer.Constant(8)), 4, 8},
		"warm-up of 0":     {infer.Warmup(0, infer.Constant(8)), 0, 8},
		"warm-up of 1":     {infer.Warmup(1, infer.Constant(8)), 0, 8},
		"warm-up, inside":  {infer.Warmup(4, identity), 2, 1.5}, // the schedule inside sees the same update
		"product":          {infer.Times(identity, infer.Constant(0.5)), 6, 3},
		"product, of both": {infer.Times(identity, identity), 3, 9},
		"composition":      {infer.Warmup(2, infer.Times(ramp, infer.Cosine(4, 20))), 15, 0.5 * 2 * (1 - math.Sqrt2/2)}, // cos 3π/4
	} {
		assert.InDelta(t, c.want, c.schedule(c.at), 1e-15*math.Max(1, math.Abs(c.want)), name)
	}
}

// The steps of Robbins and Monro: the last of 10⁶ values still follows a·(b + t)^(−γ), by logarithms.
func TestPolynomialDecay(t *testing.T) {
	s := infer.Polynomial(0.5, 10, 0.55)
	for step := int64(1); step <= 1_000_000; step *= 10 {
		want := math.Log(0.5) - 0.55*math.Log(10+float64(step))
		assert.InDelta(t, want, math.Log(s(step)), 1e-14)
	}
}

func TestPiecewise(t *testing.T) {
	identity := infer.Schedule(func(t int64) float64 { return float64(t) })
	s, err := infer.Piecewise(
		infer.Piece{From: 0, Schedule: infer.Constant(-1)},
		infer.Piece{From: 3, Schedule: identity}, // gets the updates since 3
		infer.Piece{From: 5, Schedule: infer.Warmup(2, infer.Constant(4))},
	)
	require.NoError(t, err)
	var got []float64
	for i := range int64(8) {
		got = append(got, s(i))
	}
	assert.Equal(t, []float64{-1, -1, -1, 0, 1, 2, 4, 4}, got)

	one, err := infer.Piecewise(infer.Piece{Schedule: identity})
	require.NoError(t, err)
	assert.Equal(t, 9.0, one(9))
}

func TestPiecewiseErrors(t *testing.T) {
	c := infer.Constant(1)
	const rule = ": the first part must start at 0, the others after the one before, and each needs a schedule: invalid configuration"
	for name, x := range map[string]struct {
		parts []infer.Piece
		want  string
	}{
		"none":          {nil, "infer.Piecewise: there are no parts: invalid configuration"},
		"late":          {[]infer.Piece{{From: 1, Schedule: c}}, "infer.Piecewise: part 0 starts at update 1" + rule},
		"early":         {[]infer.Piece{{From: -1, Schedule: c}}, "infer.Piecewise: part 0 starts at update -1" + rule},
		"equal":         {[]infer.Piece{{Schedule: c}, {From: 4, Schedule: c}, {From: 4, Schedule: c}}, "infer.Piecewise: part 2 starts at update 4" + rule},
		"back":          {[]infer.Piece{{Schedule: c}, {From: 4, Schedule: c}, {From: 3, Schedule: c}}, "infer.Piecewise: part 2 starts at update 3" + rule},
		"no schedule":   {[]infer.Piece{{Schedule: c}, {From: 4}}, "infer.Piecewise: part 1 starts at update 4" + rule},
		"none at first": {[]infer.Piece{{}}, "infer.Piecewise: part 0 starts at update 0" + rule},
	} {
		_, err := infer.Piecewise(x.parts...)
		assert.EqualError(t, err, x.want, name)
		assert.ErrorIs(t, err, infer.ErrConfig, name)
	}
}
