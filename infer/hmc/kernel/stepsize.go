package kernel

import (
	"fmt"
	"math"
)

// InitialStepSize finds a step size to start adaptation from (Hoffman and Gelman 2014, algorithm 4, with Stan's threshold):
// from the guess it doubles ε while one leapfrog step with fresh momenta keeps exp(H - H') above 0.8, or halves it while it
// stays below, and returns the first ε on the other side. s is not changed; rng moves on.
//
// An ε above 1e7 or below 1e-300 is an ErrStepSize: a density that never falls is no density, and one that is finite at
// the start only cannot be moved in.
func InitialStepSize(s *State, guess, temperature float64, m Metric, g Gradient, rng *Stream) (float64, error) {
	if err := checkStep("kernel.InitialStepSize", guess, temperature); err != nil {
		return 0, err
	}
	z := NewPhase(len(s.X))
	threshold := math.Log(0.8)
	eps, up := guess, false
	for first := true; ; first = false {
		copy(z.X, s.X)
		copy(z.Grad, s.Grad)
		z.LogP = s.LogP
		m.Sample(z.P, rng)
		m.Velocity(z.V, z.P)
		h0 := z.Energy(temperature)
		if err := Leapfrog(&z, eps, temperature, m, g); err != nil {
			return 0, err
		}
		good := h0-z.Energy(temperature) > threshold
		if first {
			up = good
		} else if good != up {
			return eps, nil
		}
		if up {
			eps *= 2
		} else {
			eps /= 2
		}
		if eps > 1e7 {
			return 0, fmt.Errorf("%w: energy is conserved with steps as long as %g; is the density improper?", ErrStepSize, eps)
		}
		if eps < 1e-300 {
			return 0, fmt.Errorf("%w: none is small enough; is the density continuous at the start?", ErrStepSize)
		}
	}
}
