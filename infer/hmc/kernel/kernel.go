package kernel

import (
	"math"
)

// position is where a chain is: a point with its density and gradient, and the momentum if the kernel keeps one.
type position struct {
	X        []float64
	Grad     []float64 // ∇logp(X), not divided by T
	LogP     float64   // logp(X), not divided by T
	Momentum []float64 `json:",omitempty"` // of kernels that keep it; nil is drawn afresh
	Length   float64   `json:",omitempty"` // of trajectories, where the warm-up has found one
}

// clone shares no memory with s.
func (s position) clone() position {
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
	Gradients int     // evaluated for the chain since the last transition that was recorded
	// Replica is which replica of the ladder is at the chain's rung, and RoundTrips how often its replicas have come from
	// the first rung to the last and back; 0 without a Ladder.
	Replica    int
	RoundTrips int
	// StartLogP and StartNorm are log density and norm of its gradient where it began; of a Stepper only.
	StartLogP, StartNorm float64

	symmetric float64 // acceptance that does not know the direction of the energy error
}

// Kernel is the configuration of a transition: [NUTS], [HMC] or [Microcanonical].
type Kernel interface {
	// build checks the configuration for d dimensions.
	build(d int) (transition, error)
}

// transition moves a chain. It has scratch memory, all of it made by build, and serves one chain at a time.
type transition interface {
	// Step makes one transition that leaves exp(logp/temperature) invariant, with step size ε and metric m. It changes
	// s and rng; on an error, which is the gradient's, it leaves both as they were.
	Step(s *position, stepSize, temperature float64, m massMatrix, g gradient, rng *stream) (Info, error)
	// Target is the mean acceptance to which the step size is adapted when nothing else is said.
	Target() float64
}

// checkStep refuses step sizes and temperatures with which a transition would mean nothing.
func checkStep(typ string, stepSize, temperature float64) error {
	if !(stepSize > 0) || !finite(stepSize) {
		return &FieldError{typ, "stepSize", stepSize, "it must be a positive number"}
	}
	if !(temperature > 0) || !finite(temperature) {
		return &FieldError{typ, "temperature", temperature,
			"it must be a positive number; use an optimiser for temperature 0"}
	}
	return nil
}

// phase is a point of phase space. Its parts are apart, since a trajectory keeps some of them and gives away others.
type phase struct {
	*place
	*motion
	*pull
}

// place is a position with its density and gradient.
type place struct {
	X, Grad []float64
	LogP    float64 // at X, not divided by T; NaN after a point that is not finite
}

// motion is a momentum and its velocity.
type motion struct {
	P, V    []float64 // p and M⁻¹p
	kinetic float64   // p·v after a leapfrog step
}

// pull is the gradient as it changes velocities. It is not used with a diagonal M.
type pull struct {
	A     []float64 // M⁻¹∇logp
	known bool
}

// newPhase has room for d dimensions.
func newPhase(d int) phase {
	b := make([]float64, 5*d)
	at := func(i int) []float64 { return b[i*d : (i+1)*d : (i+1)*d] }
	return phase{&place{X: at(0), Grad: at(1)}, &motion{P: at(2), V: at(3)}, &pull{A: at(4)}}
}

// Copy sets z to w, number by number.
func (z *phase) Copy(w *phase) {
	z.arrive(*w)
	copy(z.A, w.A)
	z.known = w.known
}

// arrive sets place and motion of z to those of w, number by number.
func (z *phase) arrive(w phase) {
	copy(z.X, w.X)
	copy(z.Grad, w.Grad)
	copy(z.P, w.P)
	copy(z.V, w.V)
	z.LogP, z.kinetic = w.LogP, w.kinetic
}

// Energy is H = -logp/T + p·V/2; +Inf where logp is not finite.
func (z *phase) Energy(temperature float64) float64 {
	z.kinetic = dot(z.P, z.V)
	return z.moved(temperature)
}

// moved is the energy after a leapfrog step, which leaves p·v.
func (z *phase) moved(temperature float64) float64 {
	h := 0.5*z.kinetic - z.LogP/temperature
	if math.IsNaN(h) {
		return math.Inf(1)
	}
	return h
}
