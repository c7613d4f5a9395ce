package sgmcmc

import (
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/internal/fuse"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
	"gonum.org/v1/gonum/stat"
)

// ATMC is the adaptive thermostat of Heek and Kalchbrenner (2019), with Gaussian or relativistic momenta. Each element
// has a thermostat ξ that learns how much noise its gradients carry. It first takes the place of injected noise, and
// only when there is more gradient noise than the friction D makes up for does friction grow:
//
//	α  = max(D − ξ, 0)                       injected noise
//	β  = max(D, ξ)                           friction, never below D
//	p' = e⁻ᵇʰ p + (1 − e⁻ᵇʰ)/b·g(θ) + √(τmα(1 − e⁻²ᵇʰ)/b) z,  τ = T/N
//	θ' = θ + h p'/M(p')
//	ξ' = ξ + h(p'²m/M(p')² − τ(m/M(p'))³)
//	M(p) = m√(1 + p²/(m²c²)),  b = βm/M(p)
//
// for each element; without a limit c on the speed M(p) = m and b = β, so that ξ' = ξ + h(p'²/m − τ). The update of p
// is the exact solution with θ and ξ (and M) at rest, that of θ and ξ the exact one with p at rest, in the corrected
// form: as printed, the paper's has a growing factor.
//
// The joint target is exp((logPosterior − Σ mc²(√(1 + p²/(m²c²)) − 1) − ½Σ(ξ − ξ*)²)/τ), with |p|²/(2m) for the kinetic
// energy without c. Gradient noise of variance V is absorbed by ξ* = hV/(2mτ): no estimate of V is needed. The bias in
// h is of second order with Gaussian momenta, and in general of first with relativistic ones, whose M is at rest while
// p moves.
//
// At T = 0 it is gradient ascent with momentum whose friction starts at D. Nothing lowers ξ there, so that friction
// only grows, with exact gradients by no more in sum than about the energy lost on the way over D: the chain comes to
// rest at a mode.
type ATMC struct {
	LR       infer.Schedule // time step h; required
	Friction infer.Schedule // D, greater than 0; nil means 1
	Mass     float64        // m; 0 means 1
	// c, the largest change of an element of θ in unit time; 0 means no limit: Gaussian momenta
	Speed       float64
	Temperature infer.Schedule // T; nil means 1, the Bayes posterior
	Xi          float64        // ξ at the start; default 0
	// Momenta are the initial momenta, of the shape of the params or of shape [d]; all chains share the latter. Nil
	// draws them from N(0, τm), the stationary law of Gaussian momenta; at T = 0 that is 0.
	Momenta torch.Tensor
}

// ATMCAt is the configuration of the paper for a time step and a target of n data: momenta lose at least a tenth in an
// update, and an element of θ moves by about 3e-4 on average and at most by 1e-3. For the sum over data (n = 1) that is
// D = −log(0.9)/h, m = (h/3e-4)² and c = 1e-3/h. With n > 1 it is the same sampler in the units of the mean log
// posterior: the time step becomes h√n, D and c become smaller by √n. Its LR is constant; a cyclical one is
// [infer.Cycles] with the same peak.
func ATMCAt(step float64, n int) (ATMC, error) {
	check := &method.Checks{Name: "sgmcmc.ATMCAt"}
	check.Value("step", &step, 0, true)
	check.Require(n >= 1, "n", n, "it must be at least 1: the number of data")
	root := math.Sqrt(float64(n))
	return ATMC{
		LR:       infer.Constant(step * root),
		Friction: infer.Constant(-math.Log(0.9) / step / root),
		Mass:     math.Pow(step/3e-4, 2),
		Speed:    1e-3 / step / root,
	}, check.Err()
}

// ATMCState is the state of [ATMC].
type ATMCState struct {
	method.State
	Momenta torch.Tensor // p, of the shape of θ
	Xi      torch.Tensor // ξ, of the shape of θ
}

// Defaults are those of the options of a run.
func (c ATMC) Defaults() infer.Options { return defaults }

// Build checks the configuration and binds it to a target.
func (c ATMC) Build(target infer.Target) (infer.Transform, error) {
	check := &method.Checks{Name: "sgmcmc.ATMC"}
	check.LR(c.LR, "below 2√(m/λ), with λ the largest curvature of the mean log posterior")
	check.Schedule("Friction", &c.Friction, 1, true)
	check.Schedule("Temperature", &c.Temperature, 1, false)
	check.Value("Mass", &c.Mass, 1, true)
	check.Value("Speed", &c.Speed, 0, false)
	check.Require(!math.IsNaN(c.Xi) && !math.IsInf(c.Xi, 0), "Xi", c.Xi, "it must be finite")
	return method.Build(check, target, method.Algorithm[ATMCState]{
		LR: c.LR, Temperature: c.Temperature, Program: c.program, ReportsStats: true,
		Parts: func(s *ATMCState) []method.Part {
			return []method.Part{{Name: "momenta", Tensor: &s.Momenta}, {Name: "xi", Tensor: &s.Xi}}
		},
		Start: func(s *ATMCState, m *method.Move) {
			s.Momenta = m.Momenta(c.Momenta, math.Sqrt(c.Mass*m.Tau), torch.Tensor{})
			s.Xi = torch.Of(must(s.Params.Flat.T().FullLike(ts.FloatScalar(c.Xi), false)))
		},
		// p·∇K(p)/d is |p|²/(dm), or the mean of p²/M(p) for relativistic momenta, which is τ on average by
		// equipartition but has no χ² law.
		Kinetic: func(s *ATMCState) (m, inverse torch.Tensor, scale float64) {
			if c.Speed > 0 {
				speeds := s.Momenta.Div(c.Mass * c.Speed)
				inverse = speeds.Square().Add(1).Sqrt().Reciprocal()
			}
			return s.Momenta, inverse, 1 / c.Mass
		},
		Inflation: func(s *ATMCState, m *method.Move, lambda float64) float64 {
			if c.Speed > 0 {
				return 1 // the recursion is not linear: nothing is known
			}
			return thermostatted(m.LR, max(c.Friction(m.Index), stat.Mean(meanOf(s.Xi), nil)), lambda/c.Mass)
		},
	})
}

func (c ATMC) program(_ *ATMCState, p *fuse.Program, m *method.Move) {
	h, xi := m.LR, fuse.Part(1)
	a := fuse.ATMC{H: h, Friction: m.Rate("Friction", c.Friction, true), Scale: math.Sqrt(m.Tau * c.Mass),
		Velocity: h / c.Mass, Plus: -h * m.Tau}
	if c.Speed > 0 {
		a.Limit = 1 / (c.Mass * c.Speed) / (c.Mass * c.Speed)
	}
	p.Tell("xi", xi)
	p.ATMC(fuse.Part(0), xi, a)
}

// thermostatted is λ Var x/τ of ATMC with Gaussian momenta and its friction b at rest, for the step h and r = λ/m; +Inf
// where that is unstable. The thermostat gives momenta the variance mτ whatever the step, so that the two stationary
// moments E[x'²] = E[x²] and E[x'p'] = h·mτ/(2m), with p' = ap − kλx + noise, a = e⁻ᵇʰ and k = (1 − a)/b, leave
//
//	λ Var x/τ = h(1 + a)/(2k) = (bh/2) coth(bh/2)
//
// It is that of the method where thermostats move little, τ ≪ D².
func thermostatted(h, b, r float64) float64 {
	a := math.Exp(-b * h)
	k := -math.Expm1(-b*h) / b
	if h*k*r >= 2*(1+a) {
		return math.Inf(1)
	}
	return h * (1 + a) / (2 * k)
}
