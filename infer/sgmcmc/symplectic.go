package sgmcmc

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/internal/fuse"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/torch"
)

// SymplecticSGHMC is stochastic gradient Hamiltonian Monte Carlo by symplectic Euler steps (Wenzel et al. 2020,
// algorithm 1): the parameters move with the new momenta, where [SGHMC] moves them with the old ones.
//
//	m' = (1 − hγ) m + h g(θ) + √(τh(2γM − τhβ)) z,  τ = T/N
//	θ' = θ + h M⁻¹ m'
//
// h = C·LR is the time step, γ the friction, M the diagonal mass. The joint target is exp((logPosterior − m·M⁻¹m/2)/τ).
// For a Gaussian target of precision λ the bias of θ is of second order in h, that of m of first; the recursion is
// stable for hγ < 2 and h²λ/M < 4 − 2hγ.
//
// The same in the terms of stochastic gradient descent, when Momentum is given: LR is then its learning rate ℓ,
// Momentum its μ, and the step and friction are h = C√ℓ and γ = (1 − μ)/√ℓ for M = 1. Momenta are in units of √ℓ₀, with
// ℓ₀ the first learning rate, so that m is the buffer of SGD:
//
//	m' = (1 − c(1 − μ)) m + c g(θ) + √(τ(2c(1 − μ)M/ℓ₀ − τc²β)) z,  c = C√(ℓ/ℓ₀)
//	θ' = θ + c ℓ₀ M⁻¹ m'
//
// At T = 0 and with C = M = 1 and a constant learning rate it is, bit for bit, optim.SGD with LR and Momentum, which
// also starts from m = 0. A factor C is thus a learning rate of C²ℓ with momentum 1 − C(1 − μ).
//
// T is Wenzel's temperature. His h and γ are on the scale of the sum over n data: √(ℓ/n) and (1 − μ)√(n/ℓ).
type SymplecticSGHMC struct {
	LR       infer.Schedule // step size h; with Momentum, the learning rate ℓ; nil: a run finds it
	Gamma    infer.Schedule // friction γ; nil means 1. Not together with Momentum
	Momentum infer.Schedule // μ of SGD, in [0, 1); nil leaves LR and Gamma to be h and γ
	Cycle    infer.Schedule // C, a factor of the time step, for example infer.Cosine(1, L); nil means 1
	Beta     float64        // β, estimated variance of the gradient noise; default 0
	// EstimateBeta finds β for each element from the gradients of minibatches; nil for Beta. If the gradient noise
	// already exceeds the target noise, nothing is z; the statistic "clipped" is the share of such elements.
	EstimateBeta *Estimate
	Temperature  infer.Schedule // T; nil means 1, the Bayes posterior
	// Mass is M of each site, a number above 0 for all its elements; 1 for sites that are not named. A site with a
	// larger mass moves more slowly.
	Mass map[string]float64
	// EstimateMass finds the masses from the gradients of minibatches (Wenzel's algorithm 4; K = 32): sites with larger
	// gradients move more slowly, and the lightest site of each chain has mass 1. Momenta are transported, m' = √(M'/M)
	// m, and start with mass 1. Nil for Mass.
	EstimateMass *Estimate
	// Momenta are the initial momenta, of the shape of the params or of shape [d]; all chains share the latter. Nil
	// draws them from their stationary law, N(0, τM), or N(0, τM/ℓ₀) with Momentum; at T = 0 that is 0.
	Momenta torch.Tensor
}

// SymplecticSGHMCState is the state of [SymplecticSGHMC].
type SymplecticSGHMCState struct {
	method.State
	Momenta  torch.Tensor // m, of the shape of θ
	Variance torch.Tensor // V, the estimated variance of the gradient, of the shape of θ; nil without EstimateBeta
	Mass     torch.Tensor // M of each element, of the shape of θ or, for all chains alike, [d]; nil when all are 1
}

// Defaults are those of the options of a run.
func (c SymplecticSGHMC) Defaults() infer.Options { return defaults }

// Build checks the configuration and binds it to a target.
func (c SymplecticSGHMC) Build(target infer.Target) (infer.Transform, error) {
	check := &method.Checks{Name: "sgmcmc.SymplecticSGHMC"}
	check.LR(c.LR, "below 2/√λ, with λ the largest curvature of the mean log posterior")
	check.Schedule("Temperature", &c.Temperature, 1, false)
	check.Schedule("Cycle", &c.Cycle, 1, false)
	unit := 1.0 // momenta have law N(0, τM/unit): ℓ₀ with Momentum
	if c.Momentum != nil {
		check.Require(c.Gamma == nil, "Gamma", valueOr(c.Gamma, 0),
			"it must be nil when Momentum is given, which says the friction")
		unit = valueOr(c.LR, 0)
		mu := c.Momentum(0)
		check.Fraction("Momentum", &mu, 0)
	}
	check.Schedule("Gamma", &c.Gamma, 1, false)
	checkBeta(check, c.Beta, &c.EstimateBeta)
	check.Require(c.EstimateMass == nil || len(c.Mass) == 0, "Mass", c.Mass,
		"it must be nil when EstimateMass is given, which finds it")
	c.EstimateMass = c.EstimateMass.Check(check, "EstimateMass", 1)
	lightest := method.CheckMasses(check, &c.Mass)
	return method.Build(check, target, method.Algorithm[SymplecticSGHMCState]{
		LR: c.LR, Temperature: c.Temperature,
		Program: func(s *SymplecticSGHMCState, p *fuse.Program, m *method.Move) { c.program(s, p, m, unit) },
		Parts: func(s *SymplecticSGHMCState) []method.Part {
			return []method.Part{{Name: "momenta", Tensor: &s.Momenta},
				c.EstimateMass.MassPart(&s.Mass, &s.Momenta), c.EstimateBeta.VariancePart(&s.Variance)}
		},
		Check: func(m *method.Move) { c.pace(m, unit, lightest) },
		Start: func(s *SymplecticSGHMCState, m *method.Move) {
			s.Mass = m.Masses(c.Mass)
			s.Momenta = m.Momenta(c.Momenta, math.Sqrt(m.Tau/unit), method.RootMasses(s.Mass))
		},
		Inflation: func(s *SymplecticSGHMCState, m *method.Move, lambda float64) float64 {
			if s.Mass != (torch.Tensor{}) {
				return 1 // not known
			}
			h, gamma, keep := c.pace(m, unit, 1)
			b, n := h*unit, 2*h*gamma/unit // θ moves by b m'; the noise of m' has variance n
			return lambda * method.StationaryVariance(1-b*h*lambda, b*keep, -h*lambda, keep, b*b*n, b*n, n)
		},
		Kinetic: func(s *SymplecticSGHMCState) (m, inverse torch.Tensor, scale float64) {
			return s.Momenta, method.Inverse(s.Mass), unit
		},
	})
}

func (c SymplecticSGHMC) program(s *SymplecticSGHMCState, p *fuse.Program, m *method.Move, unit float64) {
	h, gamma, keep := c.pace(m, unit, c.lightest(s))
	n := noise{Step: h, Friction: gamma / unit, Beta: c.Beta, Estimate: c.EstimateBeta, Variance: fuse.Part(2)}
	momenta, velocity := fuse.Part(0), fuse.Part(0)
	if s.Mass != (torch.Tensor{}) {
		n.Mass, velocity = fuse.Part(1), fuse.A
	}
	z := n.term(p, m)
	p.Combine(momenta, momenta.Times(keep), fuse.Grad.Times(h), z)
	if s.Mass != (torch.Tensor{}) {
		p.Divide(velocity, 1, momenta, n.Mass)
	}
	p.Add(fuse.Theta, velocity.Times(h*unit))
}

// lightest is the least mass, where a check needs it: with β.
func (c SymplecticSGHMC) lightest(s *SymplecticSGHMCState) float64 {
	if c.Beta == 0 || s.Mass == (torch.Tensor{}) {
		return 1
	}
	return torch.Of(s.Mass.T().MustMin(false)).Item()
}

// pace checks and evaluates the schedules, for noise of the lightest element: the time step h, γ, 1 − hγ. It tells the
// step in the terms of the configuration, and its time.
func (c SymplecticSGHMC) pace(m *method.Move, unit, lightest float64) (h, gamma, keep float64) {
	if cycle := m.Rate("Cycle", c.Cycle, false); c.Momentum != nil {
		mu := c.Momentum(m.Index)
		m.Require(mu >= 0 && mu < 1, fmt.Sprintf("Momentum at update %d", m.Index), mu,
			"it must be at least 0 and less than 1")
		// These are exactly 1, 1 − μ and μ while the step is that of SGD.
		h, gamma = cycle*math.Sqrt(m.LR/unit), 1-mu
		keep, m.Info.LR = mu+(1-h)*gamma, cycle*cycle*m.LR
	} else {
		h, gamma = cycle*m.LR, m.Rate("Gamma", c.Gamma, false)
		keep, m.Info.LR = 1-h*gamma, h
	}
	m.Info.TimeStep = h * math.Sqrt(unit)
	noise{Step: h, Friction: gamma * lightest / unit, Beta: c.Beta}.scale(m) // or an error
	return h, gamma, keep
}
