package kernel

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// One step of HMC at N(0, σ²) is accepted with a probability that depends on ε/σ alone. Trials must come to an ε at
// which the chain then accepts from 0.6 to 0.7 of its proposals on average, up to the noise of 10 trajectories in the
// trial and one factor of 0.9: in 1 dimension the acceptance of a trial of 10 has a standard error of at most 0.16.
func TestTrials(t *testing.T) {
	accepted, n := 0.0, 0
	var steps []float64
	for seed := range uint64(20) {
		r := run(t, gaussian(4), Options{Kernel: HMC{Steps: 1}, Chains: 1, Warmup: 100, Draws: 400, Trials: 10,
			TrialEvery: 50, Metric: Unit, Seed: seed})
		steps = append(steps, r.StepSizes[0])
		for _, a := range r.Chains[0].Accept {
			accepted += a
			n++
		}
		// The proposal of a step ε: each is a power of 0.9 of one that was found by doubling.
		assert.Positive(t, r.StepSizes[0])
	}
	mean := accepted / float64(n)
	t.Logf("mean acceptance %.3f, steps %.2f", mean, steps)
	assert.InDelta(t, 0.65, mean, 0.05+4*0.16/math.Sqrt(20))
}

// In a box no ε is wider than the median of its half-widths: in a box that is narrow against the density every step is
// accepted whose end is inside, and the trials would go on.
func TestTrialsInABox(t *testing.T) {
	box := HMC{Steps: 1, Lower: []float64{-1, -2, -3}, Upper: []float64{1, 2, 3}}
	r := run(t, gaussian(1e6, 1e6, 1e6), Options{Kernel: box, Chains: 1, Warmup: 60, Draws: 10, Trials: 10,
		TargetAccept: 0.05, Metric: Unit, Init: [][]float64{{0, 0, 0}}})
	assert.LessOrEqual(t, r.StepSizes[0], 2.0)
}

// A descent goes to the mode: on a Gaussian with standard deviations of 0.5 and 3 the energy is below 1e-3 after 400
// steps, from 200. Every step that it takes goes down, and the chain goes on from there.
func TestDescent(t *testing.T) {
	density := gaussian(0.25, 9)
	r, err := newRunner(density, Options{Chains: 1, Minimise: 400, Init: [][]float64{{10, 3}}})
	require.NoError(t, err)
	c, g := r.chains[0], gradientOf(density)
	last, calls := math.Inf(-1), 0
	c.gradient = func(x, grad []float64) (float64, error) { calls++; return g(x, grad) }
	s, err := newState([]float64{10, 3}, g)
	require.NoError(t, err)
	for range 8 {
		r.Minimise = 50
		require.NoError(t, r.descend(c, &s))
		assert.GreaterOrEqual(t, s.LogP, last)
		last = s.LogP
	}
	assert.Equal(t, 400, calls, "a step takes a gradient")
	assert.Greater(t, last, -1e-3)
	// The whole, as Run does it, with a momentum that is kept over all of it.
	var first []float64
	_, err = Run(context.Background(), density, Options{Chains: 1, Warmup: None, Draws: 1, Minimise: 400, KeepStep: true,
		StepSize: 1e-9, Init: [][]float64{{10, 3}}, Record: func(_, _ int, x []float64, _ Info) error {
			first = append(first, x...)
			return nil
		}})
	require.NoError(t, err)
	assert.InDelta(t, 0, first[0], 0.5*0.05)
	assert.InDelta(t, 0, first[1], 3*0.05)
}
