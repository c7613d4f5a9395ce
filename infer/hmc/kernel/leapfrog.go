package kernel

import "math"

// leapfrog makes one step of the Störmer-Verlet integrator (velocity Verlet; Neal 2011, 2.3) on H = -logp/T + p·M⁻¹p/2:
//
//	p ← p + (ε/2T) g(x)
//	x ← x + ε M⁻¹p
//	p ← p + (ε/2T) g(x)
//
// It is reversible and symplectic, and its energy error over a fixed time is O(ε²). A negative ε goes backwards. It
// calls the gradient once and expects V, Grad and LogP of the point it starts from. At a point that is not finite LogP
// is NaN, and the momentum means nothing; an error is the gradient's.
func leapfrog(z *phase, stepSize, temperature float64, m massMatrix, g gradient) error {
	return leap(*z, *z, stepSize, temperature, m, g)
}

// leap is the step from one phase to another, which may be the same. They have one pull.
//
// The velocity is moved along with the momentum, v ← v + (ε/2T) M⁻¹g, so that a step takes one product with M⁻¹.
func leap(to, from phase, stepSize, temperature float64, m massMatrix, g gradient) error {
	h := 0.5 * stepSize / temperature
	if diagonal, ok := m.(*diagonalMass); ok {
		return diagonal.leap(to, from, stepSize, h, g)
	}
	d := len(to.X)
	x, p, v, grad, a := to.X, to.P[:d], to.V[:d], to.Grad[:d], to.A[:d]
	if !from.known {
		m.Velocity(a, from.Grad)
	}
	x0, p0, v0, grad0 := from.X[:d], from.P[:d], from.V[:d], from.Grad[:d]
	for i, e := range x0 {
		w := v0[i] + h*a[i]
		p[i] = p0[i] + h*grad0[i]
		v[i] = w
		x[i] = e + stepSize*w
	}
	var err error
	if to.LogP, err = point(g, x, grad); err != nil || math.IsNaN(to.LogP) {
		return err
	}
	m.Velocity(a, grad)
	to.known = true
	kinetic := 0.0
	for i, e := range grad {
		q, w := p[i]+h*e, v[i]+h*a[i]
		p[i], v[i] = q, w
		kinetic += q * w
	}
	to.kinetic = kinetic
	return nil
}

// leap is the step with M⁻¹ = diag(variance), in two loops. h is ε/2T.
func (m *diagonalMass) leap(to, from phase, stepSize, h float64, g gradient) error {
	variance := m.variance
	d := len(variance)
	x, p, grad := to.X[:d], to.P[:d], to.Grad[:d]
	x0, p0, grad0 := from.X[:d], from.P[:d], from.Grad[:d]
	for i, e := range variance {
		q := p0[i] + h*grad0[i]
		p[i] = q
		x[i] = x0[i] + stepSize*(e*q)
	}
	var err error
	if to.LogP, err = g(x, grad); err != nil {
		to.LogP = math.NaN()
		if recoverable(err) {
			return nil
		}
		return err
	}
	// Two sums, since each waits for its last addition.
	v, odd, even := to.V[:d], 0.0, 0.0
	i := 0
	for ; i < d-1; i += 2 {
		q, r := p[i]+h*grad[i], p[i+1]+h*grad[i+1]
		w, u := variance[i]*q, variance[i+1]*r
		p[i], p[i+1] = q, r
		v[i], v[i+1] = w, u
		even += q * w
		odd += r * u
	}
	if i < d {
		q := p[i] + h*grad[i]
		p[i], v[i] = q, variance[i]*q
		even += q * v[i]
	}
	// A gradient that is not finite makes the kinetic energy so, which has no other number in it that is not.
	to.kinetic = even + odd
	if !finite(to.LogP + to.kinetic) {
		to.LogP = math.NaN()
	}
	return nil
}
