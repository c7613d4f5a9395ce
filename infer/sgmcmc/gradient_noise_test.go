package sgmcmc_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"gonum.org/v1/gonum/mat"
)

// Gradient noise of a known variance V comes with every batch, drawn in Go. With β = V/T² the injected noise is smaller
// by just its part, and the law is that of exact gradients at the same step size; with β = 0 it is too wide, by as much
// as the recursion says: in one dimension SGLD has (T + εV/2)/(λ(1 − ελ/2)).
func TestBetaMakesUpForGradientNoise(t *testing.T) {
	seed := seeds()
	for _, precision := range targets() {
		for _, temperature := range []float64{0.25, 1, 4} {
			v := 1.2 * temperature
			for _, e := range []experiment{
				{setting: setting{eps: 0.35}},
				{setting: setting{eps: 0.35, alpha: 1.5, sigma: 1.4}, momenta: true},
			} {
				e.precision, e.temperature = precision, temperature
				exact := e.law().covariance() // of exact gradients
				e.noise, e.chains, e.copies, e.draws = v, 2, 256, 300

				biased := e
				biased.seed = seed()
				t.Run(biased.String(), func(t *testing.T) {
					sigma := biased.law().covariance()
					m := biased.run(t)
					m.tells(t, sigma, exact, "the one of exact gradients")
					m.check(t, sigma)
				})

				corrected := e
				corrected.beta, corrected.seed = v/(temperature*temperature), seed()
				t.Run(corrected.String(), func(t *testing.T) {
					assert.True(t, mat.EqualApprox(exact, corrected.law().covariance(), 1e-13),
						"the equations of the two are the same up to rounding")
					m := corrected.run(t)
					m.tells(t, exact, biased.law().covariance(), "the one without beta")
					m.check(t, exact)
				})
			}
		}
	}
}

// The closed form of the doc comment of the test above.
func TestClosedFormOfGradientNoise(t *testing.T) {
	for _, lambda := range []float64{0.5, 2} {
		for _, temperature := range []float64{0.25, 4} {
			s := setting{precision: scalar(lambda), eps: 0.3, temperature: temperature, noise: 0.7}
			assert.InEpsilon(t, (temperature+0.3*0.7/2)/(lambda*(1-0.3*lambda/2)), s.sgld().covariance().At(0, 0),
				1e-12)
		}
	}
}
