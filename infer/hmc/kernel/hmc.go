package kernel

import (
	"fmt"
	"math"
)

// HMC is Hamiltonian Monte Carlo with trajectories of a given length (Duane et al. 1987; Neal 2011). One transition:
//
//	p ~ N(0, M)                          or, with Persistence α, p ← αp + √(1-α²) z, z ~ N(0, M) (Horowitz 1991)
//	(x', p') = L leapfrog steps of size ε
//	accept x' with probability min(1, exp(H(x, p) - H(x', p')))
//
// When the move is refused a kept momentum changes its sign, without which the target would not be invariant.
//
// A trajectory is broken off only at a point that is not finite: where it is broken off, so is the reversed one. An
// energy that is high on the way is not a reason, since the way back starts from another energy.
type HMC struct {
	// Steps is L, the number of leapfrog steps; default 16. It is not used when Length is given. See Jitter: a fixed L
	// can come back to where it began. One step is MALA, the Metropolis-adjusted Langevin algorithm (Roberts and
	// Tweedie 1996), which proposes x' = x + (ε²/2T) M⁻¹ g(x) + ε M^-½ z, z ~ N(0, I). Its step size is adapted to an
	// acceptance of 0.574, the best in high dimensions (Roberts and Rosenthal 1998).
	Steps int
	// Length is the integration time Lε: L is then Length/ε rounded up, at most MaxSteps, before jitter.
	Length   float64
	MaxSteps int // default 1000; with Length only
	// Jitter j draws L for each transition, uniformly over (1 ± j) times its value, rounded, at least 1; from 0, a fixed
	// length, to 1. It breaks the resonance of fixed lengths with periodic orbits, so it is 1 by default where neither
	// Steps nor Length is set, and 0 where one is (Neal 2011, section 5.4.2).
	Jitter float64
	// Persistence α keeps a part of the momentum; from 0 (the default, drawn afresh) to less than 1.
	Persistence float64
	// Lower and Upper bound the target to a box; nil is no bound, else d numbers, infinite ones allowed. As in Baldock
	// and Marzari (2019) only the end point is tested, and refused outside: on the way the density is evaluated
	// outside.
	Lower, Upper []float64
	// Bounce lets trajectories bounce from the walls of the box in the place of that (Neal 2011, section 5.5.1.5). In
	// many dimensions some wall is always near, and every trajectory that is not short ends outside. It needs a Unit or
	// a Diagonal metric.
	Bounce    bool
	MaxDeltaH float64 // energy error above which a transition counts as divergent; default 1000
}

type hmc struct {
	HMC
	d        int
	z        phase
	momentum []float64
	target   float64
}

// build checks the configuration and makes the scratch memory.
func (c HMC) build(d int) (transition, error) {
	check := checks{typ: "kernel.HMC"}
	check.require(d >= 1, "dimension", d, "it must be at least 1")
	if c.Steps == 0 && c.Length == 0 && c.Jitter == 0 {
		c.Jitter = 1
	}
	check.atLeast("Steps", &c.Steps, 16, 1)
	check.atLeast("MaxSteps", &c.MaxSteps, 1000, 1)
	check.positive("MaxDeltaH", &c.MaxDeltaH, 1000)
	check.require(c.Length >= 0 && finite(c.Length), "Length", c.Length,
		"it must be a positive number, or 0 for a number of steps")
	check.require(c.Jitter >= 0 && c.Jitter <= 1, "Jitter", c.Jitter, "it must be from 0 to 1")
	check.require(c.Persistence >= 0 && c.Persistence < 1, "Persistence", c.Persistence,
		"it must be at least 0 and less than 1")
	for _, b := range []struct {
		name  string
		bound []float64
	}{{"Lower", c.Lower}, {"Upper", c.Upper}} {
		check.require(b.bound == nil || len(b.bound) == d, b.name, fmt.Sprintf("of length %d", len(b.bound)),
			fmt.Sprintf("it must be nil or have %d numbers", d))
	}
	if check.err != nil {
		return nil, check.err
	}
	for i := range d {
		if c.Lower != nil && math.IsNaN(c.Lower[i]) || c.Upper != nil && math.IsNaN(c.Upper[i]) ||
			c.Lower != nil && c.Upper != nil && c.Lower[i] >= c.Upper[i] {
			return nil, &FieldError{check.typ, fmt.Sprintf("Lower[%d], Upper[%d]", i, i), fmt.Sprint(c.Lower, c.Upper),
				"the box must not be empty"}
		}
	}
	if check.require(!c.Bounce || c.Lower != nil || c.Upper != nil, "Bounce", true,
		"there are no walls: set Lower, Upper or both"); check.err != nil {
		return nil, check.err
	}
	target := 0.8
	if c.Steps == 1 && c.Length == 0 {
		target = 0.574
	}
	return &hmc{HMC: c, d: d, z: newPhase(d), momentum: make([]float64, d), target: target}, nil
}

func (t *hmc) Target() float64 { return t.target }

// length draws the number of leapfrog steps. It must not depend on the point.
func (t *hmc) length(stepSize float64, rng *stream) int {
	l := t.Steps
	if t.Length > 0 {
		l = t.MaxSteps
		if n := math.Ceil(t.Length / stepSize); n < float64(l) {
			l = int(n)
		}
	}
	if t.Jitter > 0 {
		l = int(math.Round(float64(l) * (1 + t.Jitter*(2*rng.Float64()-1))))
	}
	return max(1, l)
}

func (t *hmc) Step(s *position, stepSize, temperature float64, m massMatrix, g gradient, rng *stream) (Info, error) {
	if err := checkStep("kernel.HMC", stepSize, temperature); err != nil {
		return Info{}, err
	}
	start := rng.Position
	z := &t.z
	m.Sample(z.P, rng)
	if a := t.Persistence; a > 0 && len(s.Momentum) == t.d {
		b := math.Sqrt(1 - a*a)
		for i, p := range s.Momentum {
			z.P[i] = a*p + b*z.P[i]
		}
	}
	copy(t.momentum, z.P)
	copy(z.X, s.X)
	copy(z.Grad, s.Grad)
	z.LogP, z.known = s.LogP, false
	m.Velocity(z.V, z.P)
	h0 := z.Energy(temperature)

	if t.Bounce {
		g = t.bouncing(g)
	}
	info := Info{StepSize: stepSize, Energy: h0}
	for range t.length(stepSize, rng) {
		info.Leapfrogs++
		if err := leapfrog(z, stepSize, temperature, m, g); err != nil {
			rng.Position = start
			return Info{}, err
		}
		if math.IsNaN(z.LogP) {
			break
		}
	}
	h := z.Energy(temperature)
	info.Divergent = h-h0 > t.MaxDeltaH
	if t.inside(z.X) {
		info.Accept = math.Min(1, math.Exp(h0-h))
	}
	if info.Accepted = rng.Float64() < info.Accept; info.Accepted {
		info.Energy = h
		copy(s.X, z.X)
		copy(s.Grad, z.Grad)
		s.LogP = z.LogP
	}
	info.LogP, info.symmetric = s.LogP, info.Accept
	if t.Persistence > 0 {
		if len(s.Momentum) != t.d {
			s.Momentum = make([]float64, t.d)
		}
		if info.Accepted {
			copy(s.Momentum, z.P)
		} else {
			for i, p := range t.momentum {
				s.Momentum[i] = -p
			}
		}
	}
	return info, nil
}

// bouncing is the gradient at the point that the walls make of the one at which a leapfrog step asks for it. The step
// takes the momentum up again only after that.
func (t *hmc) bouncing(g gradient) gradient {
	return func(x, grad []float64) (float64, error) {
		lower, upper := math.Inf(-1), math.Inf(1)
		for i, e := range x {
			if t.Lower != nil {
				lower = t.Lower[i]
			}
			if t.Upper != nil {
				upper = t.Upper[i]
			}
			var back bool
			if x[i], back = Bounce(e, lower, upper); back {
				t.z.P[i] = -t.z.P[i]
			}
		}
		return g(x, grad)
	}
}

func (t *hmc) inside(x []float64) bool {
	for i, e := range x {
		if t.Lower != nil && e < t.Lower[i] || t.Upper != nil && e > t.Upper[i] {
			return false
		}
	}
	return true
}
