// Package langevin holds what is true of discretised Langevin dynamics whatever samples with them: the same method in
// the numbers of other traditions, the answer to a step size that is too large, and what a step does to the law.
package langevin

import (
	"errors"
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/method"
)

// Numbers are those of one method with momentum, as sgmcmc.Equivalent explains them.
type Numbers struct {
	N                     int     // data
	LR, Momentum          float64 // ℓ and μ of SGD
	Step, Friction        float64 // h and γ of Wenzel et al. (2020)
	Epsilon, Alpha, Sigma float64 // ε, α and σ of SGHMC
}

// FromSGD starts from the learning rate and the momentum of SGD, with σ = 1. name is that of the function that asks.
func FromSGD(name string, lr, momentum float64, n int) (Numbers, error) {
	return fill(name, lr, momentum, 1, n)
}

// FromLangevin starts from the time step h and the friction γ: ℓ = nh², μ = 1 − hγ.
func FromLangevin(name string, step, friction float64, n int) (Numbers, error) {
	c := &method.Checks{Name: name}
	momentum := momentumOf(step * friction)
	c.Value("step", &step, 0, true)
	c.Require(friction > 0 && momentum >= 0, "friction", friction,
		fmt.Sprintf("it must be greater than 0 and at most 1/step = %g, or the momentum 1 − step·friction is not in [0, 1)",
			1/step))
	if err := c.Err(); err != nil {
		return Numbers{}, err
	}
	e, err := fill(name, float64(n)*step*step, momentum, 1, n)
	e.Step, e.Friction = step, friction
	return e, err
}

// FromSGHMC starts from the step size ε, friction α and σ, 0 for 1: ℓ = ε²/σ², μ = 1 − εα/σ².
func FromSGHMC(name string, epsilon, alpha, sigma float64, n int) (Numbers, error) {
	c := &method.Checks{Name: name}
	c.Value("epsilon", &epsilon, 0, true)
	c.Value("sigma", &sigma, 1, true)
	rho := 1 / (sigma * sigma)
	momentum := momentumOf(epsilon * rho * alpha)
	c.Require(alpha > 0 && momentum >= 0, "alpha", alpha,
		fmt.Sprintf("it must be greater than 0 and at most σ²/ε = %g, or the momentum 1 − εα/σ² is not in [0, 1)",
			1/(epsilon*rho)))
	if err := c.Err(); err != nil {
		return Numbers{}, err
	}
	e, err := fill(name, epsilon*epsilon*rho, momentum, sigma, n)
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

// fill makes all numbers of ℓ, μ and σ.
func fill(name string, lr, momentum, sigma float64, n int) (Numbers, error) {
	c := &method.Checks{Name: name}
	c.Value("lr", &lr, 0, true)
	c.Require(momentum >= 0 && momentum < 1, "momentum", momentum, "it must be at least 0 and less than 1")
	c.Require(n >= 1, "n", n, "it must be at least 1: the number of data")
	root := math.Sqrt(lr)
	return Numbers{
		N: n, LR: lr, Momentum: momentum,
		Step: math.Sqrt(lr / float64(n)), Friction: (1 - momentum) * math.Sqrt(float64(n)/lr),
		Epsilon: root * sigma, Alpha: (1 - momentum) * sigma / root, Sigma: sigma,
	}, c.Err()
}

// ErrUnstable is wrapped by the errors of [Stable].
var ErrUnstable = errors.New("unstable")

// Stable judges the first step size of a method of the given name: nil, or an error that wraps [ErrUnstable]. lambda is
// the largest curvature, symbol what the equations of the method call the step size, and problem says what is wrong
// with one, "" for nothing.
func Stable(name, symbol string, lr infer.Schedule, lambda float64, problem func(eps float64) string) error {
	check := &method.Checks{Name: name}
	check.Value("lambda", &lambda, 0, true)
	check.LR(lr, "the step size to judge")
	if check.Err() != nil {
		return check.Err()
	}
	if what := problem(lr(0)); what != "" {
		return fmt.Errorf("%s: with step size %s = %g and curvature λ = %g the recursion is unstable: %s: %w", name,
			symbol, lr(0), lambda, what, ErrUnstable)
	}
	return nil
}

// Unless is "" where ok holds, else the formatted problem.
func Unless(ok bool, format string, a ...any) string {
	if ok {
		return ""
	}
	return fmt.Sprintf(format, a...)
}

// Thermostatted is λ Var x/τ of ATMC with Gaussian momenta and its friction b at rest, for the step h and r = λ/m; +Inf
// where that is unstable. The thermostat gives momenta the variance mτ whatever the step, so that the two stationary
// moments E[x'²] = E[x²] and E[x'p'] = h·mτ/(2m), with p' = ap − kλx + noise, a = e⁻ᵇʰ and k = (1 − a)/b, leave
//
//	λ Var x/τ = h(1 + a)/(2k) = (bh/2) coth(bh/2)
//
// It is that of the method where thermostats move little, τ ≪ D².
func Thermostatted(h, b, r float64) float64 {
	a := math.Exp(-b * h)
	k := -math.Expm1(-b*h) / b
	if h*k*r >= 2*(1+a) {
		return math.Inf(1)
	}
	return h * (1 + a) / (2 * k)
}
