package kernel

import "math"

// Phase is a point of phase space: a position with its density and gradient, a momentum and its velocity.
type Phase struct {
	X, P, Grad []float64 // position x, momentum p, gradient of logp at x
	V          []float64 // velocity M⁻¹p
	LogP       float64   // at x, not divided by T; NaN after a point that is not finite
}

// NewPhase has room for d dimensions.
func NewPhase(d int) Phase {
	b := make([]float64, 4*d)
	return Phase{X: b[:d:d], P: b[d : 2*d : 2*d], Grad: b[2*d : 3*d : 3*d], V: b[3*d:]}
}

// Copy sets z to w, number by number.
func (z *Phase) Copy(w *Phase) {
	copy(z.X, w.X)
	copy(z.P, w.P)
	copy(z.Grad, w.Grad)
	copy(z.V, w.V)
	z.LogP = w.LogP
}

// Energy is H = -logp/T + p·V/2; +Inf where logp is not finite.
func (z *Phase) Energy(temperature float64) float64 {
	h := 0.5*dot(z.P, z.V) - z.LogP/temperature
	if math.IsNaN(h) {
		return math.Inf(1)
	}
	return h
}

// Leapfrog makes one step of the Störmer-Verlet integrator (velocity Verlet; Neal 2011, 2.3) on H = -logp/T + p·M⁻¹p/2:
//
//	p ← p + (ε/2T) g(x)
//	x ← x + ε M⁻¹p
//	p ← p + (ε/2T) g(x)
//
// It is reversible and symplectic, and its energy error over a fixed time is O(ε²). A negative ε goes backwards. It
// calls the gradient once and expects Grad and LogP of the point it starts from. At a point that is not finite LogP is
// NaN and the momentum is not finished; an error is the gradient's.
func Leapfrog(z *Phase, stepSize, temperature float64, m Metric, g Gradient) error {
	h := 0.5 * stepSize / temperature
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
	return nil
}
