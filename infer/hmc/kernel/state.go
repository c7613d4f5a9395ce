package kernel

import (
	"fmt"
	"math"
)

// State is where a chain is: a point with its density and gradient, and the momentum if the kernel keeps one.
type State struct {
	X        []float64
	Grad     []float64 // ∇logp(X), not divided by T
	LogP     float64   // logp(X), not divided by T
	Momentum []float64 `json:",omitempty"` // only of HMC with partial refreshment; nil is drawn afresh
}

// NewState evaluates a gradient at x, which is copied. A point that is not finite is an ErrNonFinite.
func NewState(x []float64, g Gradient) (State, error) {
	s := State{X: append([]float64(nil), x...), Grad: make([]float64, len(x))}
	var err error
	if s.LogP, err = point(g, s.X, s.Grad); err != nil {
		return State{}, err
	}
	if math.IsNaN(s.LogP) || !allFinite(x) {
		return State{}, fmt.Errorf("log density or gradient at the start: %w", ErrNonFinite)
	}
	return s, nil
}

// clone shares no memory with s.
func (s State) clone() State {
	s.X = append([]float64(nil), s.X...)
	s.Grad = append([]float64(nil), s.Grad...)
	s.Momentum = append([]float64(nil), s.Momentum...)
	return s
}

// Info is what one transition tells.
type Info struct {
	LogP      float64 // of the point it ended at, not divided by T
	Accept    float64 // acceptance probability; for NUTS its mean over the points of the tree
	StepSize  float64 // ε
	Energy    float64 // H = -logp/T + K of the point it ended at
	Depth     int     // doublings of the tree that were kept; 0 except in NUTS
	Leapfrogs int     // gradients
	Accepted  bool    // the point is another than before
	Divergent bool    // the trajectory met a point that is not finite, or an energy too high
	Turning   bool    // the tree ended by the U-turn criterion
	MaxDepth  bool    // the tree ended because it was as deep as is allowed
	Warmup    bool    // made in the warm-up of a run
}

// Kernel is the configuration of a transition: [NUTS], [HMC] or [MALA].
type Kernel interface {
	// Build checks the configuration for d dimensions.
	Build(d int) (Transition, error)
}

// Transition moves a chain. It has scratch memory, all of it made by Build, and serves one chain at a time.
type Transition interface {
	// Step makes one transition that leaves exp(logp/temperature) invariant, with step size ε and metric m. It changes s
	// and rng; on an error, which is the gradient's, it leaves both as they were.
	Step(s *State, stepSize, temperature float64, m Metric, g Gradient, rng *Stream) (Info, error)
	// Target is the mean acceptance to which the step size is adapted when nothing else is said.
	Target() float64
}

// checkStep refuses step sizes and temperatures with which a transition would mean nothing.
func checkStep(typ string, stepSize, temperature float64) error {
	if !(stepSize > 0) || !finite(stepSize) {
		return &FieldError{typ, "stepSize", stepSize, "it must be a positive number"}
	}
	if !(temperature > 0) || !finite(temperature) {
		return &FieldError{typ, "temperature", temperature, "it must be a positive number; use an optimiser for temperature 0"}
	}
	return nil
}
