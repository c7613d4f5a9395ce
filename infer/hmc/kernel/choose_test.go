package kernel

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The cost of a metric by its formula, worked out by hand. Rows at (±2, 0) and (0, ±1) have the covariance diag(8,
// 2)/3, their gradients (∓1, 0) and (0, ∓2) have diag(2, 8)/3.
func TestPredictedCost(t *testing.T) {
	x := []float64{2, 0, -2, 0, 0, 1, 0, -1}
	g := []float64{-1, 0, 1, 0, 0, -2, 0, 2}
	assert.InDelta(t, 8./3*math.Sqrt(8./3), predictedCost(unitMetric(2).diagonal(), x, g), 1e-12)
	assert.InDelta(t, 4./3*math.Sqrt(4./3), predictedCost(diagonalMetric([]float64{2, 0.5}), x, g), 1e-12)
	// Along (1, 1)/√2 the unit metric has the variance 4: the first eigenvalue of the draws is that of
	// (5/3 1; 1 5/3 ∓ ...) = D^-½ Σ D^-½ with D = I + 3uuᵀ.
	low := lowRankMetric([]float64{1, 1}, []float64{math.Sqrt2 / 2, math.Sqrt2 / 2}, []float64{4})
	wide, narrow := 0.0, 0.0
	for i := range 360 { // the greatest variance over all directions
		a := math.Pi * float64(i) / 360
		u, v := math.Cos(a), math.Sin(a)
		half, twice := u+v, u+v
		s, w := (u-half/2)+half/4, (v-half/2)+half/4 // M^-½ u
		p, q := (u-twice/2)+twice, (v-twice/2)+twice // M^½ u
		wide, narrow = math.Max(wide, (8*s*s+2*w*w)/3), math.Max(narrow, (2*p*p+8*q*q)/3)
	}
	assert.InEpsilon(t, wide*math.Sqrt(narrow), predictedCost(low, x, g), 1e-3)
	candidates := []Metric{diagonalMetric([]float64{1, 1}), diagonalMetric([]float64{2, 0.5}), {}}
	long, gradients := slices.Repeat(x, 13), slices.Repeat(g, 13)
	assert.Equal(t, plain, cheapest(candidates, fisher, long, gradients))
	assert.Equal(t, fisher, cheapest(candidates, fisher, x, g), "four draws do not judge variances")
	assert.Equal(t, fisher, cheapest([]Metric{candidates[1], candidates[0], {}}, plain, long, gradients))
	near := []Metric{diagonalMetric([]float64{2, 0.5}), diagonalMetric([]float64{2.1, 0.5}), {}}
	assert.Equal(t, plain, cheapest(near, plain, long, gradients), "the form in use stays where another is little better")
}

func (m Metric) diagonal() Metric { return diagonalMetric(slices.Repeat([]float64{1}, m.Dim)) }

// With strong correlations all chains of twenty seeds end with a metric that has them, and its condition number is
// below that of the best diagonal, (1 + ρ)/(1 − ρ) = 1999, by 100; of independent numbers none does, and the metric is
// exact.
func TestChosenForm(t *testing.T) {
	for seed := range uint64(20) {
		r := run(t, pair(0.999), Options{Chains: 2, Draws: 1, Seed: seed, Warmup: 400})
		for _, c := range r.Snapshot.Chains {
			require.Equal(t, correlated, c.Form)
			require.Less(t, condition(t, inverse(t, denseMetric(2, []float64{1, 0.999, 0.999, 1})), inverse(t, c.Metric)), 20.0)
		}
		r = run(t, gaussian(1e-4, 1, 1e4, 1, 1, 1, 1, 1, 1, 1), Options{Chains: 2, Draws: 1, Seed: seed, Warmup: 400})
		for _, c := range r.Snapshot.Chains {
			require.NotEqual(t, correlated, c.Form)
		}
	}
}

// noise is a density that is not the integral of its gradient: chains are lost in it.
var noise = Func(3, func(x, grad []float64) float64 {
	lp := 0.0
	for i, e := range x {
		grad[i] = -e
		lp += -e*e/2 + 1e6*math.Sin(1e9*e)
	}
	return lp
})

// A chain that is lost tries three other starts, and says so; a run goes on from between them to the same draws.
func TestRestartsResume(t *testing.T) {
	var between *Snapshot
	o := Options{Chains: 4, Warmup: 200, Draws: 20, Seed: 5, CheckpointEvery: 5, Checkpoint: func(s *Snapshot) error {
		if between == nil && slices.ContainsFunc(s.Chains, func(c chainState) bool { return c.Restarts == 1 }) {
			between = s
		}
		return nil
	}}
	full := run(t, noise, o)
	require.NotNil(t, between)
	o.Checkpoint = func(*Snapshot) error { return nil }
	rest, err := resume(noise, o, carry(t, between, "gob"))
	require.NoError(t, err)
	joined(t, full, full, rest)
	require.Equal(t, full.Lost, rest.Lost)
	require.NotEmpty(t, full.Lost)
	for _, l := range full.Lost {
		assert.Equal(t, mostRestarts, l.Restarts)
		assert.NotZero(t, l.Gradient)
	}
}

// A chain that stands still begins anew at another start, and its draws are of the target: a normal distribution up to
// 20, and noise far below it beyond, where the chain starts at 21. Another start is between −21 and 21, and three are
// beyond 20 once in 70,000.
func TestLostChainBeginsAnew(t *testing.T) {
	cliff := Func(2, func(x, grad []float64) float64 {
		grad[0], grad[1] = -x[0], -x[1]
		lp := -(x[0]*x[0] + x[1]*x[1]) / 2
		if x[0] > 20 {
			lp += 1e6*math.Sin(1e9*x[0]) - 1e8
		}
		return lp
	})
	for seed := range uint64(20) {
		for _, k := range []Kernel{NUTS{}, HMC{}} {
			r := run(t, cliff, Options{Kernel: k, Chains: 1, Warmup: 300, Draws: 200, Seed: seed, Init: [][]float64{{21, 0.5}}})
			assert.Empty(t, r.Lost)
			for i := range 200 {
				require.Less(t, math.Abs(r.Chains[0].Draw(i)[0]), 8.0)
			}
		}
	}
}
