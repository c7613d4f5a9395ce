package sbc

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// With L = 1 ranks are coins, and P is the two-sided binomial p-value: 16 of 20 or further out has the probability
// 2·(4845 + 1140 + 190 + 20 + 1)/2²⁰, simulated 4000 times.
func TestPOfCoins(t *testing.T) {
	r := &Result{Draws: 1, Ranks: map[string][]int{"x": make([]int, 20)}}
	for i := range 4 {
		r.Ranks["x"][i] = 1
	}
	c, err := r.Curve("x", 0.95)
	require.NoError(t, err)
	p := 2 * 6196 / math.Pow(2, 20)
	assert.InDelta(t, p, c.P, 4*math.Sqrt(p*(1-p)/simulations))
	assert.Equal(t, []float64{0.5}, c.Z)
	assert.InDelta(t, 0.3, c.Difference[0], 1e-15)
	// The 95 % interval of 20 coins is 6 to 14: further out has probability 0.041, one less 0.115.
	assert.InDelta(t, 6./20-0.5, c.Low[0], 1e-15)
	assert.InDelta(t, 14./20-0.5, c.High[0], 1e-15)
}

// Uniform ranks are rejected at 5 % as often as that: the simulated quantile has a standard error too, of as many sets.
func TestLevel(t *testing.T) {
	const n, l = 100, 19
	e := newEnvelope(n, l)
	limit := e.null()[simulations/20]
	random := rand.New(rand.NewPCG(3, 4))
	ranks, out := make([]int, n), 0
	for range simulations {
		for i := range ranks {
			ranks[i] = random.IntN(l + 1)
		}
		if e.gamma(e.counts(ranks)) < limit {
			out++
		}
	}
	se := math.Sqrt(2 * 0.05 * 0.95 / simulations)
	assert.InDelta(t, 0.05, float64(out)/simulations, 4*se)
}

// The band and P say the same: ranks that leave the 95 % band somewhere have P up to 0.05, others more.
func TestBandAgreesWithP(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	seen := map[bool]int{}
	for i := range 12 {
		ranks := make([]int, 80)
		for k := range ranks { // from uniform to far from it
			ranks[k] = int(30 * math.Pow(random.Float64(), 1+float64(i)/15))
		}
		c, err := (&Result{Draws: 29, Ranks: map[string][]int{"x": ranks}}).Curve("x", 0.95)
		require.NoError(t, err)
		outside := false
		for k := range c.Z {
			outside = outside || c.Difference[k] < c.Low[k]-1e-12 || c.Difference[k] > c.High[k]+1e-12
		}
		assert.Equal(t, c.P <= 0.05+1e-3, outside, "p = %v", c.P)
		seen[outside]++
	}
	assert.Len(t, seen, 2)
}

// The binomial distribution function by its recurrence of probabilities.
func TestBinomial(t *testing.T) {
	cdf := binomial(4, 0.25)
	assert.InDeltaSlice(t, []float64{81. / 256, 189. / 256, 243. / 256, 255. / 256, 1}, cdf, 1e-14)
}
