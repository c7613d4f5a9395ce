package kernel

import "math"

// DualAveraging tunes log ε so that the mean acceptance a is the target δ (Nesterov 2009; Hoffman and Gelman 2014, 3.2).
// Update t = 1, 2, ... sets
//
//	s̄ ← (1 - 1/(t+t₀)) s̄ + (δ - a)/(t+t₀)
//	x = μ - s̄ √t/γ,  ε = e^x
//	x̄ ← (1 - t^-κ) x̄ + t^-κ x
//
// and the step size to keep is e^x̄.
type DualAveraging struct {
	Target float64 // δ; default 0.8, between 0 and 1
	Gamma  float64 // γ, how strongly x is drawn to μ; default 0.05
	T0     float64 // t₀, damps the first updates; default 10
	Kappa  float64 // κ, how fast old x are forgotten; default 0.75, from 0.5 (exclusive) to 1
}

// DualAveragingState is the state of [DualAveraging], as plain numbers.
type DualAveragingState struct {
	Mu    float64 // μ: log(10 ε₀)
	SBar  float64 // s̄
	XBar  float64 // x̄
	Count int     // t
}

// Build fills in the defaults and checks the fields.
func (c DualAveraging) Build() (DualAveraging, error) {
	const typ = "kernel.DualAveraging"
	if err := positive(typ, "Target", &c.Target, 0.8); err != nil {
		return c, err
	}
	if c.Target >= 1 {
		return c, &FieldError{typ, "Target", c.Target, "it must be less than 1"}
	}
	if err := positive(typ, "Gamma", &c.Gamma, 0.05); err != nil {
		return c, err
	}
	if err := positive(typ, "T0", &c.T0, 10); err != nil {
		return c, err
	}
	if err := positive(typ, "Kappa", &c.Kappa, 0.75); err != nil {
		return c, err
	}
	if c.Kappa <= 0.5 || c.Kappa > 1 {
		return c, &FieldError{typ, "Kappa", c.Kappa, "it must be more than 0.5 and at most 1"}
	}
	return c, nil
}

// Init starts from a step size.
func (c DualAveraging) Init(stepSize float64) DualAveragingState {
	return DualAveragingState{Mu: math.Log(10 * stepSize)}
}

// Update takes the acceptance of one transition, in [0, 1], and returns the new state with the step size for the next.
func (c DualAveraging) Update(s DualAveragingState, accept float64) (DualAveragingState, float64) {
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
func (s DualAveragingState) Final() float64 {
	if s.Count == 0 {
		return math.Exp(s.Mu) / 10
	}
	return math.Min(math.Max(math.Exp(s.XBar), 1e-300), 1e300)
}
