//go:build slow

package sgmcmc_test

import (
	"testing"

	"gonum.org/v1/gonum/mat"
)

// The stationary laws with many more draws, at several steps: 768 comparisons, so that a right method fails for about
// one choice of seeds in nineteen.
func TestStationaryLawsOfSplitSchemesWithManyDraws(t *testing.T) {
	seed := seeds()
	for _, precision := range targets() {
		for _, temperature := range []float64{0.25, 1, 4} {
			for _, eps := range []float64{0.2, 0.7} {
				for _, sigma := range []float64{1, 1.3} {
					s := setting{precision: precision, eps: eps, temperature: temperature, alpha: 1.2, sigma: sigma}
					for _, e := range []trial{s.baoaTrial(), s.symplecticTrial()} {
						e.chains, e.draws = 512, 200
						e.seed = seed()
						t.Run(e.String(), func(t *testing.T) { e.run(t).check(t, e.law.covariance()) })
					}
				}
			}
		}
	}
}

// SGNHT with several times the draws, at all temperatures and with σ ≠ 1.
func TestSGNHTHasTheLawOfItsBalancedFrictionWithManyDraws(t *testing.T) {
	seed := seeds()
	for _, precision := range targets() {
		for _, temperature := range []float64{0.25, 1, 4} {
			for _, sigma := range []float64{1, 1.5} {
				e := thermo{setting: setting{precision: precision, eps: 0.1, temperature: temperature, alpha: 1.5,
					sigma: sigma},
					chains: 64, copies: 192, settle: 600, draws: 60, thin: 15, seed: seed()}
				t.Run(e.String(), func(t *testing.T) {
					var sigma *mat.Dense
					e.balanced, sigma = e.balance(t)
					d := e.dim()
					e.compare(t, e.run(t), e.law(sigma, 0), func(i, j int) bool { return j < 2*d || i != j })
				})
			}
		}
	}
}
