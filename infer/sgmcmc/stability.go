package sgmcmc

import (
	"cmp"
	"errors"
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/method"
)

// ErrUnstable is wrapped by the errors of the Stable methods: at that step size a chain leaves any bound.
//
// If the largest curvature λ of −logPosterior is known (the largest eigenvalue of its Hessian, at the mode or anywhere
// the chain goes), Stable says before a run whether the recursion is stable at the first update: nil, or an error that
// says what to change. It is exact for Gaussian targets of precisions from near 0 to λ with exact gradients, and
// necessary near any mode.
var ErrUnstable = errors.New("unstable")

// Stable says whether ελ < 2.
func (c SGLD) Stable(lambda float64) error {
	return stable("sgmcmc.SGLD", "ε", c.LR, lambda, func(eps float64) string {
		return unless(eps*lambda < 2, "ελ = %g must be below 2: LR below %g", eps*lambda, 2/lambda)
	})
}

// Stable says whether ελ < α, and εα/σ² ≤ 2, which smaller curvatures need.
func (c SGHMC) Stable(lambda float64) error {
	alpha, rho := valueOr(c.Alpha, 1), 1/math.Pow(cmp.Or(c.Sigma, 1), 2)
	return stable("sgmcmc.SGHMC", "ε", c.LR, lambda, func(eps float64) string {
		if eps*lambda >= alpha {
			return fmt.Sprintf("ελ = %g must be below the friction α = %g: LR below %g, or Alpha above %g",
				eps*lambda, alpha, alpha/lambda, eps*lambda)
		}
		return unless(eps*rho*alpha <= 2, "εα/σ² = %g must be at most 2: LR or Alpha smaller", eps*rho*alpha)
	})
}

// Stable says whether ε²λ < 4σ².
func (c BAOA) Stable(lambda float64) error {
	limit := 4 * math.Pow(cmp.Or(c.Sigma, 1), 2)
	return stable("sgmcmc.BAOA", "ε", c.LR, lambda, func(eps float64) string {
		return unless(eps*eps*lambda < limit, "ε²λ = %g must be below 4σ² = %g: LR smaller or Sigma larger",
			eps*eps*lambda, limit)
	})
}

// Stable says whether hγ < 2 and h²λ < 4 − 2hγ, for sites of mass 1.
func (c SymplecticSGHMC) Stable(lambda float64) error {
	return stable("sgmcmc.SymplecticSGHMC", "LR", c.LR, lambda, func(lr float64) string {
		// In the units of the momenta: c = C, damping 1 − μ and h² = ℓ with Momentum.
		cycle := valueOr(c.Cycle, 1)
		damp, square := cycle*lr*valueOr(c.Gamma, 1), cycle*cycle*lr*lr
		if c.Momentum != nil {
			damp, square = cycle*(1-c.Momentum(0)), cycle*cycle*lr
		}
		if damp >= 2 {
			return fmt.Sprintf("hγ = %g must be below 2: LR or Gamma smaller", damp)
		}
		return unless(square*lambda < 4-2*damp, "h²λ = %g must be below 4 − 2hγ = %g: LR smaller", square*lambda,
			4-2*damp)
	})
}

// valueOr is the first value of a schedule; def for nil.
func valueOr(s infer.Schedule, def float64) float64 {
	if s == nil {
		return def
	}
	return s(0)
}

// stable judges the first step size of a method of the given name: nil, or an error that wraps ErrUnstable. lambda is
// the largest curvature, symbol what the equations of the method call the step size, and problem says what is wrong
// with one, "" for nothing.
func stable(name, symbol string, lr infer.Schedule, lambda float64, problem func(eps float64) string) error {
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

// unless is "" where ok holds, else the formatted problem.
func unless(ok bool, format string, a ...any) string {
	if ok {
		return ""
	}
	return fmt.Sprintf(format, a...)
}
