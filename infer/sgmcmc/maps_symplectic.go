package sgmcmc

import "github.com/kelvin-ppl/kelvin/infer"

// Symplectic is the sampler whose limit at T = 0 is SGD with these numbers, bit for bit, for the mean log posterior. The
// temperature is that of the posterior, 1 for Bayes, and nil means 1: the sampler gets T/N.
func (e Equivalent) Symplectic(temperature infer.Schedule) SymplecticSGHMC {
	return SymplecticSGHMC{LR: infer.Constant(e.LR), Momentum: infer.Constant(e.Momentum), Temperature: perDatum(temperature, e.N)}
}
