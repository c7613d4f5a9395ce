package sgmcmc

import (
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/internal/langevin"
)

// Equivalent is one method with momentum in the numbers of three traditions. u is the gradient of the mean log
// posterior of N data. v is the velocity, the change of θ in one update:
//
//	v' = μv + ℓu + √(2(1 − μ)ℓT/N) z
//
//	SGD with momentum             ℓ, μ           v = ℓ·buffer
//	Wenzel et al. (2020), M = I   h = √(ℓ/N)     γ = (1 − μ)√(N/ℓ)      v = h·m, energy of all N data
//	SGHMC of this package         ℓ = ε²/σ²      μ = 1 − εα/σ²          v = εm/σ²
//
// What is not a matter of numbers is the order: [SGHMC] moves θ by the old v, SGD and the symplectic scheme of Wenzel
// et al. by the new one. At T = 0 [SymplecticSGHMC] is therefore SGD, and SGHMC is SGD one update behind.
//
// ℓ and μ leave one number of SGHMC open. FromSGD takes σ = 1, with ε = √ℓ: learning rate 0.01 and momentum 0.9 are ε =
// 0.1 and α = 1.
type Equivalent struct {
	N                     int     // data
	LR, Momentum          float64 // ℓ and μ of SGD
	Step, Friction        float64 // h and γ of Wenzel et al.
	Epsilon, Alpha, Sigma float64 // ε (the LR field), α and σ of SGHMC
}

// FromSGD starts from the learning rate and the momentum of SGD without dampening, on the mean loss of n data.
// Its errors, and those of the other two, name the argument, its value and what is allowed.
func FromSGD(lr, momentum float64, n int) (Equivalent, error) {
	e, err := langevin.FromSGD("sgmcmc.FromSGD", lr, momentum, n)
	return Equivalent(e), err
}

// FromLangevin starts from the time step h and the friction γ of underdamped Langevin dynamics with unit mass on the
// energy of all n data: ℓ = nh², μ = 1 − hγ.
func FromLangevin(step, friction float64, n int) (Equivalent, error) {
	e, err := langevin.FromLangevin("sgmcmc.FromLangevin", step, friction, n)
	return Equivalent(e), err
}

// FromSGHMC starts from the step size ε, friction α and σ of [SGHMC], for n data: ℓ = ε²/σ², μ = 1 − εα/σ². A sigma of
// 0 means 1.
func FromSGHMC(epsilon, alpha, sigma float64, n int) (Equivalent, error) {
	e, err := langevin.FromSGHMC("sgmcmc.FromSGHMC", epsilon, alpha, sigma, n)
	return Equivalent(e), err
}

// SGHMC is the sampler with these numbers. A nil temperature is 1, the Bayes posterior.
func (e Equivalent) SGHMC(temperature infer.Schedule) SGHMC {
	return SGHMC{LR: infer.Constant(e.Epsilon), Alpha: infer.Constant(e.Alpha), Sigma: e.Sigma,
		Temperature: temperature}
}

// Symplectic is the sampler whose limit at T = 0 is SGD with these numbers, bit for bit. A nil temperature is 1, the
// Bayes posterior.
func (e Equivalent) Symplectic(temperature infer.Schedule) SymplecticSGHMC {
	return SymplecticSGHMC{LR: infer.Constant(e.LR), Momentum: infer.Constant(e.Momentum), Temperature: temperature}
}
