package kernel

import (
	"math"
)

// position is where a chain is: a point with its density and gradient, and the momentum if the kernel keeps one.
type position struct {
	X        []float64
	Grad     []float64 // ∇logp(X), not divided by T
	LogP     float64   // logp(X), not divided by T
	Momentum []float64 `json:",omitempty"` // only of HMC with partial refreshment; nil is drawn afresh
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
	Gradients int64   // evaluated for the chain since the last transition that was recorded
	// StartLogP and StartNorm are log density and norm of its gradient where it began; of a Stepper only.
	StartLogP, StartNorm float64

	symmetric float64 // acceptance that does not know the direction of the energy error
}

// Kernel is the configuration of a transition: [NUTS] or [HMC].
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

// phase is a point of phase space: a position with its density and gradient, a momentum and its velocity.
type phase struct {
	X, P, Grad []float64 // position x, momentum p, gradient of logp at x
	V          []float64 // velocity M⁻¹p
	LogP       float64   // at x, not divided by T; NaN after a point that is not finite
	kinetic    float64   // p·v after a leapfrog step
}

// newPhase has room for d dimensions.
func newPhase(d int) phase {
	b := make([]float64, 4*d)
	return phase{X: b[:d:d], P: b[d : 2*d : 2*d], Grad: b[2*d : 3*d : 3*d], V: b[3*d:]}
}

// Copy sets z to w, number by number.
func (z *phase) Copy(w *phase) {
	copy(z.X, w.X)
	copy(z.P, w.P)
	copy(z.Grad, w.Grad)
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

// leapfrog makes one step of the Störmer-Verlet integrator (velocity Verlet; Neal 2011, 2.3) on H = -logp/T + p·M⁻¹p/2:
//
//	p ← p + (ε/2T) g(x)
//	x ← x + ε M⁻¹p
//	p ← p + (ε/2T) g(x)
//
// It is reversible and symplectic, and its energy error over a fixed time is O(ε²). A negative ε goes backwards. It
// calls the gradient once and expects Grad and LogP of the point it starts from. At a point that is not finite LogP is
// NaN, and the momentum means nothing; an error is the gradient's.
func leapfrog(z *phase, stepSize, temperature float64, m massMatrix, g gradient) error {
	h := 0.5 * stepSize / temperature
	if diagonal, ok := m.(*diagonalMass); ok {
		return diagonal.leapfrog(z, stepSize, h, g)
	}
	x, p, v, grad := z.X, z.P[:len(z.X)], z.V[:len(z.X)], z.Grad[:len(z.X)]
	for i, e := range grad {
		p[i] += h * e
	}
	m.Velocity(v, p)
	for i, e := range v {
		x[i] += stepSize * e
	}
	var err error
	if z.LogP, err = point(g, x, grad); err != nil || math.IsNaN(z.LogP) {
		return err
	}
	for i, e := range grad {
		p[i] += h * e
	}
	m.Velocity(v, p)
	z.kinetic = dot(p, v)
	return nil
}

// leapfrog is the step with M⁻¹ = diag(variance), in two loops. h is ε/2T.
func (m *diagonalMass) leapfrog(z *phase, stepSize, h float64, g gradient) error {
	variance := m.variance
	d := len(variance)
	x, p, v, grad := z.X[:d], z.P[:d], z.V[:d], z.Grad[:d]
	for i, e := range variance {
		q := p[i] + h*grad[i]
		p[i] = q
		x[i] += stepSize * (e * q)
	}
	var err error
	if z.LogP, err = g(x, grad); err != nil {
		z.LogP = math.NaN()
		if recoverable(err) {
			return nil
		}
		return err
	}
	zero, kinetic := 0*z.LogP, 0.0 // see allFinite
	for i, e := range variance {
		f := grad[i]
		zero += 0 * f
		q := p[i] + h*f
		p[i] = q
		q2 := e * q
		v[i] = q2
		kinetic += q * q2
	}
	if zero != 0 {
		z.LogP = math.NaN()
	}
	z.kinetic = kinetic
	return nil
}
