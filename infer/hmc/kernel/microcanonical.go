package kernel

import (
	"math"
)

// Microcanonical moves with velocities of constant length (Robnik, De Luca, Silverstein and Seljak 2023, Microcanonical
// Hamiltonian Monte Carlo, JMLR 24). With y the point and g the gradient of logp/T where the metric is the identity,
// and u a unit vector, the dynamics is
//
//	dy = u dt,  du = (I − uuᵀ) g/(d−1) dt
//
// A step of size ε is that of minimal norm of second order (Omelyan, Mryglod and Folk 2003): it takes two gradients.
// Its energy error is the change of −logp/T + (d−1) log(cosh δ + e·u sinh δ) over the kicks, e = g/|g|, δ = h|g|/(d−1)
// for a kick of length h. The dimension must be at least 2.
//
// MAMS, the default, is adjusted (Robnik, Cohn-Gordon and Seljak 2025): it draws u from the sphere, makes as many steps
// as last a time that is uniform from 0 to 2L, and accepts the end with probability min(1, exp(−error)). It leaves
// exp(logp/T) invariant.
//
// MCLMC is Unadjusted: it makes steps for a time L, keeps u from one transition to the next, and after each step makes
//
//	u ← (u + νz)/|u + νz|,  z ~ N(0, I),  ν² = (exp(2ε/L) − 1)/d
//
// Nothing is refused, so that its law differs from the target by an error that grows with ε. The step size is adapted
// by the variance of the energy error, with 1/(1 + r) in the place of an acceptance, r = mean of error²/(d · Variance)
// over the steps of a transition: its mean is to be 1/2. The first half of the warm-up makes transitions of MAMS, with
// a mean acceptance of 1/2: far from the target, steps with so small an error would be too short to get there.
type Microcanonical struct {
	Unadjusted bool
	// Length is L, where the metric is the identity. 0 is √d, which the warm-up makes longer where that is too short for
	// the target: after 85 % of it L is multiplied by 0.375 τ, by at least 1 and at most 8, with τ the integrated
	// autocorrelation time of its draws from half of it on, the mean over coordinates. A standard normal target keeps √d.
	Length    float64
	Variance  float64 // of the energy error for each dimension that MCLMC aims at; default 5e-4
	MaxSteps  int     // of a transition; default 1000
	MaxDeltaH float64 // energy error of a transition above which it counts as divergent; default 1000
}

type microcanonical struct {
	Microcanonical
	d        int
	z        phase
	good     []float64 // MCLMC: the last point that is finite
	goodGrad []float64
	fresh    motion
	approach bool // MCLMC: the first half of the warm-up
}

func (c Microcanonical) build(d int) (transition, error) {
	check := checks{typ: "kernel.Microcanonical"}
	check.require(d != 1, "dimension", d, "it must be at least 2: a unit vector in one dimension cannot turn")
	check.require(c.Length >= 0 && finite(c.Length), "Length", c.Length, "it must be a positive number, or 0 to adapt it")
	check.positive("Variance", &c.Variance, 5e-4)
	check.atLeast("MaxSteps", &c.MaxSteps, 1000, 1)
	if check.positive("MaxDeltaH", &c.MaxDeltaH, 1000); check.err != nil {
		return nil, check.err
	}
	return &microcanonical{Microcanonical: c, d: d, z: newPhase(d), good: make([]float64, d),
		goodGrad: make([]float64, d), fresh: motion{P: make([]float64, d), V: make([]float64, d)}}, nil
}

func (t *microcanonical) Target() float64 {
	if t.Unadjusted {
		return 0.5
	}
	return 0.9
}

// length is L: that of the chain where it has one.
func (t *microcanonical) length(s *position) float64 {
	switch {
	case t.Length > 0:
		return t.Length
	case s.Length > 0:
		return s.Length
	}
	return math.Sqrt(float64(t.d))
}

func (t *microcanonical) Step(s *position, stepSize, temperature float64, m massMatrix, g gradient, rng *stream) (Info,
	error) {
	if err := checkStep("kernel.Microcanonical", stepSize, temperature); err != nil {
		return Info{}, err
	}
	start := rng.Position
	z := &t.z
	copy(z.X, s.X)
	copy(z.Grad, s.Grad)
	z.LogP = s.LogP
	m.Velocity(z.A, z.Grad)
	wander := t.Unadjusted && !t.approach
	if wander && len(s.Momentum) == t.d {
		copy(z.P, s.Momentum)
		m.Velocity(z.V, z.P)
	} else {
		m.Sample(z.P, rng)
		m.Velocity(z.V, z.P)
		t.unit(z.motion)
	}
	var info Info
	var err error
	if wander {
		info, err = t.wander(s, stepSize, temperature, m, g, rng)
	} else {
		info, err = t.propose(s, stepSize, temperature, m, g, rng)
	}
	if err != nil {
		rng.Position = start
		return Info{}, err
	}
	info.StepSize, info.LogP, info.symmetric = stepSize, s.LogP, info.Accept
	info.Energy = -s.LogP / temperature
	return info, nil
}

// steps is how many steps last a time.
func (t *microcanonical) steps(time, stepSize float64) int {
	return int(math.Max(1, math.Min(math.Ceil(time/stepSize), float64(t.MaxSteps))))
}

// propose is a transition of MAMS.
func (t *microcanonical) propose(s *position, stepSize, temperature float64, m massMatrix, g gradient,
	rng *stream) (Info, error) {
	z, info, kinetic := &t.z, Info{}, 0.0
	for range t.steps(2*t.length(s)*rng.Float64(), stepSize) {
		change, err := t.step(stepSize, temperature, m, g, &info.Leapfrogs)
		if err != nil {
			return Info{}, err
		}
		if kinetic += change; math.IsNaN(z.LogP) {
			break
		}
	}
	delta := kinetic - (z.LogP-s.LogP)/temperature
	if math.IsNaN(delta) {
		delta = math.Inf(1)
	}
	info.Divergent = delta > t.MaxDeltaH
	info.Accept = math.Min(1, math.Exp(-delta))
	if info.Accepted = rng.Float64() < info.Accept; info.Accepted {
		copy(s.X, z.X)
		copy(s.Grad, z.Grad)
		s.LogP = z.LogP
	}
	s.Momentum = nil
	return info, nil
}

// wander is a transition of MCLMC. A step to a point that is not finite is undone, and u drawn anew.
func (t *microcanonical) wander(s *position, stepSize, temperature float64, m massMatrix, g gradient,
	rng *stream) (Info, error) {
	z, info, d := &t.z, Info{Accepted: true}, float64(t.d)
	nu := math.Sqrt(math.Expm1(2*stepSize/t.length(s)) / d)
	n := t.steps(t.length(s), stepSize)
	ratio, total := 0.0, 0.0
	for range n {
		copy(t.good, z.X)
		copy(t.goodGrad, z.Grad)
		logp := z.LogP
		change, err := t.step(stepSize, temperature, m, g, &info.Leapfrogs)
		if err != nil {
			return Info{}, err
		}
		failed := change - (z.LogP-logp)/temperature
		lost := math.IsNaN(failed) || math.IsInf(failed, 0)
		if lost {
			copy(z.X, t.good)
			copy(z.Grad, t.goodGrad)
			z.LogP = logp
			m.Velocity(z.A, z.Grad)
			failed = math.Inf(1)
			info.Divergent = true
		} else {
			total += failed
		}
		ratio += failed * failed / (d * t.Variance)
		m.Sample(t.fresh.P, rng)
		m.Velocity(t.fresh.V, t.fresh.P)
		for i, e := range t.fresh.P {
			if lost {
				z.P[i], z.V[i] = 0, 0
			}
			z.P[i] += nu * e
			z.V[i] += nu * t.fresh.V[i]
		}
		t.unit(z.motion)
	}
	info.Divergent = info.Divergent || math.Abs(total) > t.MaxDeltaH
	info.Accept = 1 / (1 + ratio/float64(n))
	copy(s.X, z.X)
	copy(s.Grad, z.Grad)
	s.LogP = z.LogP
	s.Momentum = append(s.Momentum[:0], z.P...)
	return info, nil
}

// unit gives a momentum the length 1 in the metric.
func (t *microcanonical) unit(z *motion) {
	norm := 1 / math.Sqrt(dot(z.P, z.V))
	for i := range z.P {
		z.P[i] *= norm
		z.V[i] *= norm
	}
}

// kickPart is the part of the first and last kick of a step of minimal norm.
const kickPart = 0.1931833275037836

// step moves z by a step, and returns the change of the kinetic part of its energy. At a point that is not finite
// z.LogP is NaN.
func (t *microcanonical) step(stepSize, temperature float64, m massMatrix, g gradient,
	gradients *int) (float64, error) {
	z := &t.z
	change := t.kick(kickPart*stepSize, temperature)
	for _, part := range [2]float64{1 - 2*kickPart, kickPart} {
		for i, v := range z.V {
			z.X[i] += 0.5 * stepSize * v
		}
		*gradients++
		var err error
		if z.LogP, err = point(g, z.X, z.Grad); err != nil || math.IsNaN(z.LogP) {
			return 0, err
		}
		m.Velocity(z.A, z.Grad)
		change += t.kick(part*stepSize, temperature)
	}
	return change, nil
}

// kick turns u towards the gradient for a time h, and returns the change of the kinetic part of the energy.
func (t *microcanonical) kick(h, temperature float64) float64 {
	z := &t.z
	norm := math.Sqrt(dot(z.Grad, z.A)) // of the gradient in the metric
	if norm == 0 {
		return 0
	}
	along := math.Max(-1, math.Min(dot(z.Grad, z.V)/norm, 1)) // e·u
	delta := h * norm / temperature / float64(t.d-1)
	// All hyperbolic functions times exp(−δ), so that none overflows.
	zeta := math.Exp(-delta)
	cosh, sinh := 0.5*(1+zeta*zeta), 0.5*(1-zeta*zeta)
	size := cosh + along*sinh
	keep, turn := zeta/size, (sinh+along*(cosh-zeta))/size/norm
	for i, p := range z.P {
		z.P[i] = keep*p + turn*z.Grad[i]
		z.V[i] = keep*z.V[i] + turn*z.A[i]
	}
	return float64(t.d-1) * (delta + math.Log(size))
}
