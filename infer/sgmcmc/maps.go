package sgmcmc

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/method"
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
	return equivalent("sgmcmc.FromSGD", lr, momentum, 1, n)
}

// FromLangevin starts from the time step h and the friction γ of underdamped Langevin dynamics with unit mass on the
// energy of all n data: ℓ = nh², μ = 1 − hγ.
func FromLangevin(step, friction float64, n int) (Equivalent, error) {
	const name = "sgmcmc.FromLangevin"
	c := &method.Checks{Name: name}
	momentum := momentumOf(step * friction)
	c.Value("step", &step, 0, true)
	c.Require(friction > 0 && momentum >= 0, "friction", friction,
		fmt.Sprintf("it must be greater than 0 and at most 1/step = %g, or the momentum 1 − step·friction is not in [0, 1)",
			1/step))
	if err := c.Err(); err != nil {
		return Equivalent{}, err
	}
	e, err := equivalent(name, float64(n)*step*step, momentum, 1, n)
	e.Step, e.Friction = step, friction
	return e, err
}

// FromSGHMC starts from the step size ε, friction α and σ of [SGHMC], for n data: ℓ = ε²/σ², μ = 1 − εα/σ². A sigma of
// 0 means 1.
func FromSGHMC(epsilon, alpha, sigma float64, n int) (Equivalent, error) {
	const name = "sgmcmc.FromSGHMC"
	c := &method.Checks{Name: name}
	c.Value("epsilon", &epsilon, 0, true)
	c.Value("sigma", &sigma, 1, true)
	rho := 1 / (sigma * sigma)
	momentum := momentumOf(epsilon * rho * alpha)
	c.Require(alpha > 0 && momentum >= 0, "alpha", alpha,
		fmt.Sprintf("it must be greater than 0 and at most σ²/ε = %g, or the momentum 1 − εα/σ² is not in [0, 1)",
			1/(epsilon*rho)))
	if err := c.Err(); err != nil {
		return Equivalent{}, err
	}
	e, err := equivalent(name, epsilon*epsilon*rho, momentum, sigma, n)
	e.Epsilon, e.Alpha = epsilon, alpha
	return e, err
}

// momentumOf is 1 − x; an x that is 1 but for rounding, as on the way there and back, gives 0.
func momentumOf(x float64) float64 {
	if math.Abs(x-1) < 1e-14 {
		return 0
	}
	return 1 - x
}

// equivalent makes all numbers of ℓ, μ and σ.
func equivalent(name string, lr, momentum, sigma float64, n int) (Equivalent, error) {
	c := &method.Checks{Name: name}
	c.Value("lr", &lr, 0, true)
	c.Require(momentum >= 0 && momentum < 1, "momentum", momentum, "it must be at least 0 and less than 1")
	c.Require(n >= 1, "n", n, "it must be at least 1: the number of data")
	root := math.Sqrt(lr)
	return Equivalent{
		N: n, LR: lr, Momentum: momentum,
		Step: math.Sqrt(lr / float64(n)), Friction: (1 - momentum) * math.Sqrt(float64(n)/lr),
		Epsilon: root * sigma, Alpha: (1 - momentum) * sigma / root, Sigma: sigma,
	}, c.Err()
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
