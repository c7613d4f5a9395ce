//go:build slow

package sgmcmc_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

// ATMC at more settings and seeds: little and much friction, more gradient noise than D makes up for (ξ is above D
// nearly always), cold and hot, and relativistic momenta at which the limit on the speed binds.
func TestATMCAtManySettings(t *testing.T) {
	seed := seeds()
	for _, e := range []thermostatted{
		{h: 0.05, friction: 1, mass: 1, temperature: 1, noise: 20, settle: 40, every: 2, draws: 250},
		{h: 0.05, friction: 1, mass: 11.1, temperature: 1, noise: 20, settle: 100, every: 5, draws: 100},
		{h: 0.025, friction: 1, mass: 1, temperature: 1, noise: 240, settle: 40, every: 2, draws: 100},
		{h: 0.025, friction: 0.2, mass: 1, temperature: 0.25, noise: 4, settle: 80, every: 2, draws: 100},
		{h: 0.025, friction: 5, mass: 1, temperature: 4, noise: 100, settle: 80, every: 4, draws: 100},
		{h: 0.02, friction: 1, mass: 11.1, speed: 1, temperature: 1, noise: 20, settle: 100, every: 5, draws: 100},
		{h: 0.02, friction: 1, mass: 2, speed: 1, temperature: 0.5, settle: 60, every: 2, draws: 150},
		{h: 0.02, friction: 1, mass: 0.5, speed: 1, temperature: 1, noise: 10, settle: 60, every: 2, draws: 150},
	} {
		for range 2 {
			e.copies, e.seed = 1024, seed()
			t.Run(e.String(), func(t *testing.T) {
				// By integration by parts E[(p∇K)] = T, and E[mT K''] = E[m(∇K)²]: the noise is absorbed at ξ* = hV/(2mT).
				mean := e.h * e.noise / (2 * e.mass * e.temperature)
				inverse := func(p float64) float64 {
					if e.speed == 0 {
						return 1
					}
					return 1 / math.Sqrt(1+p*p/math.Pow(e.mass*e.speed, 2))
				}
				a := e.run(t,
					func(_, _, xi float64) float64 { return xi },
					func(x, _, _ float64) float64 { return x * x },
					func(_, p, _ float64) float64 { return p * p * inverse(p) / e.mass })
				a.check(t, 0, mean, "mean of ξ")
				a.check(t, 1, e.temperature, "variance of θ")
				a.check(t, 2, e.temperature, "E[p ∇K]")
			})
		}
	}
}

// The bias in the step size with Gaussian momenta is of second order: E ξ² is T(1 + Ch²), and the excess at 2h is four
// times that at h. Orders 1 and 3 would be slopes of 1 and 3.
func TestATMCIsOfSecondOrder(t *testing.T) {
	excess := func(h float64) (mean, se float64) {
		e := thermostatted{h: h, friction: 1, mass: 1, temperature: 1, copies: 4096, settle: 40, every: 2, draws: 1200,
			seed: 5}
		mean, se = e.run(t, func(_, _, xi float64) float64 { return xi * xi }).estimate(0)
		return mean - 1, se
	}
	coarse, seCoarse := excess(0.2)
	fine, seFine := excess(0.1)
	slope := math.Log2(coarse / fine)
	se := math.Hypot(seCoarse/coarse, seFine/fine) / math.Ln2
	t.Logf("excess %.4f at 0.2 and %.4f at 0.1: slope %.2f, standard error %.2f", coarse, fine, slope, se)
	assert.InDelta(t, 2, slope, 0.2+allowed*se, "the next order adds a little to the slope at these steps")
	assert.Less(t, se, 0.1)
}
