package kernel

import (
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/internal/philox"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The values are of arithmetic with 50 digits, where the function differs most from math.Erfinv. That is another
// algorithm (Wichura's AS 241) and no better than 4e-16 (1 + |z|) either, so that the two differ by at most twice as
// much: over all intervals of the table, near their ends, at the centre and in the tails beyond. The function is odd
// and rises.
func TestQuantile(t *testing.T) {
	for u, want := range map[float64]float64{
		0.015085794942065633: -2.16783044010734277,
		0.9996904047751437:   3.42306598338919053,
		0.010883125604311261: -2.2944223391271569,
		0.9429292157053878:   1.57984848687455209,
	} {
		assert.InDelta(t, want, quantile(u), 4e-16*(1+math.Abs(want)))
	}
	worst := 0.0
	check := func(u float64) {
		want, have := math.Sqrt2*math.Erfinv(2*u-1), quantile(u)
		worst = max(worst, math.Abs(have-want)/(1+math.Abs(want)))
		require.Equal(t, -have, quantile(1-u))
	}
	s := newStream(3, 1)
	for range 200000 {
		u := s.Float64()
		check(u)
		// As far out as the stream goes: 1 - u must be exact.
		check((math.Floor(u/(1<<20)*(1<<52)) + 0.5) / (1 << 52))
	}
	for i := range quantileRange<<quantileBits + 1 {
		edge := math.Float64frombits(uint64(i+quantileFirst) << quantileShift)
		below, above := edge-0.5/(1<<52), edge+0.5/(1<<52)
		check(below)
		if i < quantileRange<<quantileBits {
			check(above)
			require.LessOrEqual(t, quantile(below), quantile(above)+4e-16*(1+math.Abs(quantile(below))))
		}
	}
	t.Logf("largest error %.3g", worst)
	assert.LessOrEqual(t, worst, 8e-16)
	assert.Equal(t, math.Sqrt2*math.Erfinv(2*philox.Unit(0, 0)-1), quantile(philox.Unit(0, 0)))
}

// exp differs from math.Exp by less than the sum of their errors, 2 and 1 ulp, and is the same where it is no number,
// zero or infinite.
func TestExp(t *testing.T) {
	worst := 0.0
	s := newStream(4, 1)
	for range 200000 {
		x := 1400*s.Float64() - 700
		for _, x := range []float64{x, x / 100, x / 1e5, x / 1e12} {
			want := math.Exp(x)
			ulp := math.Nextafter(want, math.Inf(1)) - want
			worst = max(worst, math.Abs(exp(x)-want)/ulp)
		}
	}
	t.Logf("largest difference %.3g ulp", worst)
	assert.LessOrEqual(t, worst, 3.0)
	for _, x := range []float64{0, 710, -720, -1000, math.Inf(1), math.Inf(-1)} {
		assert.Equal(t, math.Exp(x), exp(x))
	}
	assert.True(t, math.IsNaN(exp(math.NaN())))
}
