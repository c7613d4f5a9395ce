//go:build slow

package sgmcmc_test

import "testing"

// The stationary laws at small steps, where they are only some per cent away from the target's, with several seeds.
// These are 400 comparisons: a right method fails for about one choice of seeds in forty.

func TestStationaryLawOfSGLDAtSmallSteps(t *testing.T) {
	seed := seeds()
	for _, precision := range targets() {
		for _, temperature := range []float64{0.25, 1, 4} {
			for range 3 {
				stationary(t, experiment{
					setting: setting{precision: precision, eps: 0.1, temperature: temperature},
					chains:  256, copies: 4, draws: 1200, seed: seed(),
				})
			}
		}
	}
}

func TestStationaryLawOfSGHMCAtSmallSteps(t *testing.T) {
	seed := seeds()
	for _, precision := range targets() {
		for _, temperature := range []float64{0.25, 1, 4} {
			for _, sigma := range []float64{1, 1.6} {
				stationary(t, experiment{
					setting: setting{precision: precision, eps: 0.08, temperature: temperature, alpha: 1.5,
						sigma: sigma},
					momenta: true, chains: 256, copies: 4, draws: 800, seed: seed(),
				})
			}
		}
	}
}

// Gradient noise at a small step, where it moves the variance by less than the step itself.
func TestBetaMakesUpForGradientNoiseAtSmallSteps(t *testing.T) {
	seed := seeds()
	for _, momenta := range []bool{false, true} {
		e := experiment{
			setting: setting{precision: correlated(), eps: 0.1, temperature: 0.5, alpha: 1.5, sigma: 1.3, noise: 0.6},
			momenta: momenta, chains: 2, copies: 512, draws: 1200,
		}
		biased := e.law().covariance()
		for range 3 {
			e.beta, e.seed = e.noise/(e.temperature*e.temperature), seed()
			t.Run(e.String(), func(t *testing.T) {
				exact := e.law().covariance()
				m := e.run(t)
				m.tells(t, exact, biased, "the one without beta")
				m.check(t, exact)
			})
		}
	}
}
