package diag

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/internal/sample"
)

// Permuting chains changes nothing but rounding. Affine maps change nothing either, but for the scale of the standard
// errors. Rank statistics do not change under monotone maps; R-hat and ESS of quantiles under decreasing ones too.
func TestInvariance(t *testing.T) {
	for _, g := range golden {
		want := figures(t, g.x)

		reversed := slices.Clone(g.x)
		slices.Reverse(reversed)
		for k, v := range figures(t, reversed) {
			near(t, g.name+", chains reversed: "+goldenNames[k], v, want[k], 1e-12)
		}
		for _, affine := range []struct{ a, b float64 }{{0x1p-900, 0}, {0x1p900, 0}, {0.1, 1000}, {-1, 0}} {
			got := figures(t, sample.Mapped(g.x, func(v float64) float64 { return affine.a*v + affine.b }))
			for k, v := range got {
				switch name := goldenNames[k]; {
				case affine.a < 0 && (name == "ess q10" || name == "ess median" || name == "mcse q10" ||
					name == "mcse q90" || name == "ess tail"):
					continue // the other tail, and x <= q against x >= q
				case name[:4] == "mcse":
					v /= math.Abs(affine.a)
				}
				tolerance := 1e-9
				if affine.b != 0 && (goldenNames[k] == "rhat" || goldenNames[k] == "rhat folded") {
					tolerance = 0.02 // rounding parts draws that are equally far from the median
				}
				near(t, g.name+", affine: "+goldenNames[k], v, want[k], tolerance)
			}
		}
		for _, f := range []func(float64) float64{math.Atan, func(v float64) float64 { return math.Exp(v / 100) }} {
			y := sample.Mapped(g.x, f)
			near(t, g.name+", monotone: rhat bulk", rhatBulk(y), rhatBulk(g.x), 1e-12)
			near(t, g.name+", monotone: ess bulk", ESSBulk(y), ESSBulk(g.x), 1e-12)
			near(t, g.name+", monotone: ess tail", ESSTail(y), ESSTail(g.x), 1e-12)
		}
	}
}

func TestUndefined(t *testing.T) {
	ok := goldenAR(2, 20, 0.5, 0, 1)
	with := func(v float64) [][]float64 {
		x := sample.Mapped(ok, func(v float64) float64 { return v })
		x[1][7] = v
		return x
	}
	for name, x := range map[string][][]float64{
		"nil": nil, "no chains": {}, "no draws": {{}}, "three draws": {{1, 2, 3}, {1, 2, 3}},
		"one chain too short": {ok[0], {1, 2}},
		"constant":            {{2, 2, 2, 2, 2}, {2, 2, 2, 2, 2}},
		"NaN":                 with(nan),
		"Inf":                 with(inf),
		"-Inf":                with(-inf),
	} {
		for k, v := range figures(t, x) {
			if !math.IsNaN(v) {
				t.Errorf("%s: %s is %v, want NaN", name, goldenNames[k], v)
			}
		}
	}
	require.True(t, math.IsNaN(rhatClassic(ok[:1])), "one whole chain has nothing to compare with")
}

// The first draws count, as many as the shortest chain has.
func TestUnequalLengths(t *testing.T) {
	x := goldenAR(3, 50, 0.5, 0, 1)
	long := [][]float64{append(slices.Clone(x[0]), 100, 200), x[1], append(slices.Clone(x[2]), nan)}
	require.Equal(t, figures(t, x), figures(t, long))
}

// Chains that are constant but apart are the worst that can be; the coin is the coarsest that moves.
func TestStuckChains(t *testing.T) {
	apart := filled(2, 50, func(c, _ int) float64 { return float64(c) })
	require.True(t, RHat(apart) > 1e6)
	require.True(t, ESSBulk(apart) < 4)

	rng := source(1)
	coin := filled(4, 500, func(int, int) float64 { return float64(rng.IntN(2)) })
	require.InDelta(t, 1, RHat(coin), 0.01)
	require.InDelta(t, 2000, ESSMean(coin), 600)
}

// R-hat grows without limit as chains part, and the folded one sees chains of different spread but equal mean.
func TestRHatSeparation(t *testing.T) {
	rng := source(2)
	x := normals(rng, 4, 500)
	last := rhatSplit(x)
	require.Less(t, RHat(x), 1.01)
	for _, shift := range []float64{1, 10, 100, 1e4} {
		y := filled(4, 500, func(c, i int) float64 { return x[c][i] + shift*float64(c) })
		r := rhatSplit(y)
		require.Greater(t, r, 2*last/1.9)
		last = r
		// B/W of the scores is bounded, but far above the threshold.
		if shift >= 10 {
			require.Greater(t, RHat(y), 2.5)
		}
	}
	require.Greater(t, last, 1000.0)

	spread := filled(4, 500, func(c, i int) float64 { return x[c][i] * math.Pow(3, float64(c)) })
	require.Less(t, rhatBulk(spread), 1.05)
	require.Greater(t, rhatFolds(spread), 1.3)
	require.Equal(t, rhatFolds(spread), RHat(spread))
}

// For draws without moments the rank statistics still work, and the effective sample size is about the number of draws.
func TestCauchy(t *testing.T) {
	rng := source(3)
	x := filled(4, 1000, func(int, int) float64 { return math.Tan(math.Pi * (rng.Float64() - 0.5)) })
	require.InDelta(t, 1, RHat(x), 0.01)
	require.InDelta(t, 4000, ESSBulk(x), 600)
	require.InDelta(t, 4000, ESSTail(x), 1000)
}
