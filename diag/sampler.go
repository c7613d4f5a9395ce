package diag

import (
	"math"

	"github.com/kelvin-ppl/kelvin/internal/sample"
)

// EBFMI is the estimated Bayesian fraction of missing information of one chain of Hamiltonian Monte Carlo, from the
// energies of its n draws:
//
//	E-BFMI = [Σ (E(i) - E(i-1))² / (n-1)] / [Σ (E(i) - mean)² / (n-1)]
//
// It compares the energy changes that fresh momenta bring with the spread of the energy. Below 0.3 the sampler walks
// slowly through the energy levels and the tails of the posterior are badly explored. Independent energies give 2.
// Betancourt (2016), arXiv:1604.00695. NaN for fewer than 4 draws, equal energies, and energies that are not finite.
func EBFMI(energy []float64) float64 {
	u := usable([][]float64{energy})
	if u == nil {
		return math.NaN()
	}
	y, _ := standardised(u)
	e := y[0]
	_, variance := sample.MeanVar(e)
	changes := 0.0
	for i := 1; i < len(e); i++ {
		d := e[i] - e[i-1]
		changes += d * d
	}
	return changes / float64(len(e)-1) / variance
}
