package kernel

import (
	"fmt"
	"math"
)

// dualAveraging tunes log ε so that the mean acceptance a is the target δ (Nesterov 2009; Hoffman and Gelman 2014,
// 3.2). Update t = 1, 2, ... sets
//
//	s̄ ← (1 - 1/(t+t₀)) s̄ + (δ - a)/(t+t₀)
//	x = μ - s̄ √t/γ,  ε = e^x
//	x̄ ← (1 - t^-κ) x̄ + t^-κ x
//
// and the step size to keep is e^x̄.
type dualAveraging struct {
	Target float64 // δ; default 0.8, between 0 and 1
	Gamma  float64 // γ, how strongly x is drawn to μ; default 0.05
	T0     float64 // t₀, damps the first updates; default 10
	Kappa  float64 // κ, how fast old x are forgotten; default 0.75, from 0.5 (exclusive) to 1
	Pull   float64 // e^μ over the first step size; default 10
}

// dualAveragingState is the state of [dualAveraging], as plain numbers.
type dualAveragingState struct {
	Mu    float64 // μ: log(Pull ε₀)
	SBar  float64 // s̄
	XBar  float64 // x̄; log ε₀ before any update
	Count int     // t
}

// build fills in the defaults and checks the fields.
func (c dualAveraging) build() (dualAveraging, error) {
	check := checks{typ: "kernel.Options"}
	check.positive("TargetAccept", &c.Target, 0.8)
	check.require(c.Target < 1, "TargetAccept", c.Target, "it must be less than 1")
	check.positive("Gamma", &c.Gamma, 0.05)
	check.positive("T0", &c.T0, 10)
	check.positive("Kappa", &c.Kappa, 0.75)
	check.require(c.Kappa > 0.5 && c.Kappa <= 1, "Kappa", c.Kappa, "it must be more than 0.5 and at most 1")
	if c.Pull == 0 {
		c.Pull = 10
	}
	return c, check.err
}

// Init starts from a step size.
func (c dualAveraging) Init(stepSize float64) dualAveragingState {
	return dualAveragingState{Mu: math.Log(c.Pull * stepSize), XBar: math.Log(stepSize)}
}

// Update takes the acceptance of one transition, in [0, 1], and returns the new state with the step size for the next.
func (c dualAveraging) Update(s dualAveragingState, accept float64) (dualAveragingState, float64) {
	if !(accept > 0) {
		accept = 0
	}
	s.Count++
	t := float64(s.Count)
	eta := 1 / (t + c.T0)
	s.SBar = (1-eta)*s.SBar + eta*(c.Target-math.Min(1, accept))
	x := s.Mu - s.SBar*math.Sqrt(t)/c.Gamma
	w := math.Pow(t, -c.Kappa)
	s.XBar = (1-w)*s.XBar + w*x
	return s, math.Min(math.Max(math.Exp(x), 1e-300), 1e300)
}

// Final is the averaged step size e^x̄; before any update it is the one of Init.
func (s dualAveragingState) Final() float64 {
	return math.Min(math.Max(math.Exp(s.XBar), 1e-300), 1e300)
}

// initialStepSize finds a step size to start adaptation from (Hoffman and Gelman 2014, algorithm 4, with Stan's
// threshold): from the guess it doubles ε while one leapfrog step with fresh momenta keeps exp(H - H') above 0.8, or
// halves it while it stays below, and returns the first ε on the other side. s is not changed; rng moves on.
//
// An ε above 1e7 or below 1e-300 is an errStepSize: a density that never falls is no density, and one that is finite at
// the start only cannot be moved in.
func initialStepSize(s *position, guess, temperature float64, m massMatrix, g gradient, rng *stream) (float64, error) {
	if err := checkStep("kernel.initialStepSize", guess, temperature); err != nil {
		return 0, err
	}
	z := newPhase(len(s.X))
	threshold := math.Log(0.8)
	eps, up := guess, false
	for first := true; ; first = false {
		copy(z.X, s.X)
		copy(z.Grad, s.Grad)
		z.LogP, z.known = s.LogP, false
		m.Sample(z.P, rng)
		m.Velocity(z.V, z.P)
		h0 := z.Energy(temperature)
		if err := leapfrog(&z, eps, temperature, m, g); err != nil {
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
			return 0, fmt.Errorf("%w: energy is conserved with steps as long as %g; is the density improper?", errFlat, eps)
		}
		if eps < 1e-300 {
			return 0, fmt.Errorf("%w: none is small enough; is the density continuous at the start?", errStepSize)
		}
	}
}
