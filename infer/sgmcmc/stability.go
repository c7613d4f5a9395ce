package sgmcmc

import (
	"errors"
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/method"
)

// ErrUnstable is wrapped by the errors of the Stable methods: at that step size a chain leaves any bound.
//
// Where the largest curvature λ of −logPosterior is known (the largest eigenvalue of its Hessian, at the mode or anywhere the
// chain goes), Stable says before a run whether the recursion is stable at the first update: nil, or an error that says what to
// change. It is exact for Gaussian targets of precisions from near 0 to λ with exact gradients, and necessary near any mode.
var ErrUnstable = errors.New("unstable")

// Stable says whether ελ < 2.
func (c SGLD) Stable(lambda float64) error {
	eps, err := stepFor("sgmcmc.SGLD", c.LR, lambda)
	if err != nil || eps*lambda < 2 {
		return err
	}
	return unstable("sgmcmc.SGLD", "ε", eps, lambda, fmt.Sprintf("ελ = %g must be below 2: LR below %g", eps*lambda, 2/lambda))
}

// Stable says whether ελ < α, and εα/σ² ≤ 2, which smaller curvatures need.
func (c SGHMC) Stable(lambda float64) error {
	eps, err := stepFor("sgmcmc.SGHMC", c.LR, lambda)
	if err != nil {
		return err
	}
	alpha, sigma := scheduled(c.Alpha, 1), c.Sigma
	if sigma == 0 {
		sigma = 1
	}
	rho := 1 / (sigma * sigma)
	switch {
	case eps*lambda >= alpha:
		return unstable("sgmcmc.SGHMC", "ε", eps, lambda, fmt.Sprintf("ελ = %g must be below the friction α = %g: LR below %g, or Alpha above %g",
			eps*lambda, alpha, alpha/lambda, eps*lambda))
	case eps*rho*alpha > 2:
		return unstable("sgmcmc.SGHMC", "ε", eps, lambda, fmt.Sprintf("εα/σ² = %g must be at most 2: LR or Alpha smaller", eps*rho*alpha))
	}
	return nil
}

// Stable says whether ε²λ < 4σ².
func (c BAOA) Stable(lambda float64) error {
	eps, err := stepFor("sgmcmc.BAOA", c.LR, lambda)
	if err != nil {
		return err
	}
	sigma := c.Sigma
	if sigma == 0 {
		sigma = 1
	}
	if eps*eps*lambda < 4*sigma*sigma {
		return nil
	}
	return unstable("sgmcmc.BAOA", "ε", eps, lambda, fmt.Sprintf("ε²λ = %g must be below 4σ² = %g: LR smaller or Sigma larger", eps*eps*lambda, 4*sigma*sigma))
}

// Stable says whether hγ < 2 and h²λ < 4 − 2hγ, for sites of mass 1.
func (c SymplecticSGHMC) Stable(lambda float64) error {
	lr, err := stepFor("sgmcmc.SymplecticSGHMC", c.LR, lambda)
	if err != nil {
		return err
	}
	// In the units of the momenta: c = C, damping 1 − μ and h² = ℓ with Momentum.
	cycle := scheduled(c.Cycle, 1)
	damp, square := cycle*lr*scheduled(c.Gamma, 1), cycle*cycle*lr*lr
	if c.Momentum != nil {
		damp, square = cycle*(1-c.Momentum(0)), cycle*cycle*lr
	}
	switch {
	case damp >= 2:
		return unstable("sgmcmc.SymplecticSGHMC", "LR", lr, lambda, fmt.Sprintf("hγ = %g must be below 2: LR or Gamma smaller", damp))
	case square*lambda >= 4-2*damp:
		return unstable("sgmcmc.SymplecticSGHMC", "LR", lr, lambda, fmt.Sprintf("h²λ = %g must be below 4 − 2hγ = %g: LR smaller", square*lambda, 4-2*damp))
	}
	return nil
}

// stepFor is the first step size, after a look at it and at λ.
func stepFor(name string, lr infer.Schedule, lambda float64) (float64, error) {
	if err := method.CheckValue(name, "lambda", lambda, 0, true); err != nil {
		return 0, err
	}
	checked, err := method.CheckSchedule(name, "LR", lr, nil, 0, true)
	if err != nil {
		return 0, err
	}
	return checked(0), nil
}

func scheduled(s infer.Schedule, def float64) float64 {
	if s == nil {
		return def
	}
	return s(0)
}

func unstable(method, name string, step, lambda float64, what string) error {
	return fmt.Errorf("%s: with step size %s = %g and curvature λ = %g the recursion is unstable: %s: %w", method, name, step, lambda, what, ErrUnstable)
}
