package sgmcmc

import (
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/internal/fuse"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/sugarme/gotch/ts"
)

// BAOA is stochastic gradient Hamiltonian Monte Carlo by splitting (Leimkuhler and Matthews 2013): a kick (B),
// half a drift (A), the friction and noise solved exactly (O), and the other half of the drift (A), with one
// gradient for each update.
//
//	m½ = m + ε g(θ)
//	θ½ = θ + ½ε σ⁻² m½
//	m' = e^(−γε) m½ + √(τ(1 − e^(−2γε))) σ z,  γ = ασ⁻²,  τ = T/N
//	θ' = θ½ + ½ε σ⁻² m'
//
// The joint target is exp((logPosterior − |m|²/(2σ²))/τ). Half a kick apart it is the symmetric BAOAB, so that the
// bias of θ is of second order in ε. For a Gaussian target there is none at all: with exact gradients θ has
// variance τ/λ and m has τσ² at every stable step, ε²λ < 4σ². Friction never makes it unstable. At T = 0 it is
// gradient ascent with momentum.
//
// Gradient noise of variance V is not corrected for: it heats the momenta by about εV/(2α).
type BAOA struct {
	LR          infer.Schedule // step size ε; required
	Alpha       infer.Schedule // friction α; nil means 1
	Sigma       float64        // σ, standard deviation of the momenta at τ = 1; 0 means 1
	Temperature infer.Schedule // T; nil means 1, the Bayes posterior
	// Momenta are the initial momenta, of the shape of the params or of shape [d]; all chains share the latter. Nil
	// draws them from N(0, τσ²), their stationary law; at T = 0 that is 0.
	Momenta *ts.Tensor
}

// BAOAState is the state of [BAOA].
type BAOAState struct {
	method.State
	Momenta *ts.Tensor // m, of the shape of θ
}

// Defaults are those of the options of a run.
func (c BAOA) Defaults() infer.Options { return defaults }

// Build checks the configuration and binds it to a target.
func (c BAOA) Build(target infer.Target) (infer.Transform, error) {
	check := &method.Checks{Name: "sgmcmc.BAOA"}
	check.LR(c.LR, "below 2σ/√λ, with λ the largest curvature of the mean log posterior")
	check.Schedule("Alpha", &c.Alpha, 1, false)
	check.Schedule("Temperature", &c.Temperature, 1, false)
	check.Value("Sigma", &c.Sigma, 1, true)
	return method.Build(check, target, method.Algorithm[BAOAState]{
		LR: c.LR, Temperature: c.Temperature, Step: c.step, Fused: c.fused,
		Parts: func(s *BAOAState) []method.Part { return []method.Part{{Name: "momenta", Tensor: &s.Momenta}} },
		Start: func(s *BAOAState, m *method.Move) { s.Momenta = m.Momenta(c.Momenta, c.Sigma*math.Sqrt(m.Tau), nil) },
		Inflation: func(s *BAOAState, u infer.Info, lambda float64) float64 {
			rho := 1 / (c.Sigma * c.Sigma)
			keep, b := math.Exp(-c.Alpha(max(s.Step-1, 0))*rho*u.LR), u.LR*rho/2
			if keep == 1 {
				return 1 // no friction, and no noise
			}
			n := -math.Expm1(2*math.Log(keep)) * c.Sigma * c.Sigma
			return lambda * method.StationaryVariance(1-b*(1+keep)*u.LR*lambda, b*(1+keep), -keep*u.LR*lambda, keep,
				b*b*n, b*n, n)
		},
		Kinetic: func(s *BAOAState) (m, inverse *ts.Tensor, scale float64) {
			return s.Momenta, nil, 1 / (c.Sigma * c.Sigma)
		},
	})
}

func (c BAOA) step(s, next *BAOAState, m *method.Move) {
	alpha, eps, rho := m.Rate("Alpha", c.Alpha, false), m.LR, 1/(c.Sigma*c.Sigma)
	gamma := alpha * rho
	half := combine(term(1, s.Momenta), term(eps, m.Grad))
	scale := math.Sqrt(-m.Tau*math.Expm1(-2*gamma*eps)) * c.Sigma
	next.Momenta = combine(m.Noise(scale, s.Momenta, term(math.Exp(-gamma*eps), half))...)
	drift := eps * rho / 2
	next.Params.Flat = combine(term(1, s.Params.Flat), term(drift, half), term(drift, next.Momenta))
}

func (c BAOA) fused(p *fuse.Program, m *method.Move) {
	momenta, eps, rho := fuse.Part(0), m.LR, 1/(c.Sigma*c.Sigma)
	gamma, drift := m.Rate("Alpha", c.Alpha, false)*rho, eps*rho/2
	scale := math.Sqrt(-m.Tau*math.Expm1(-2*gamma*eps)) * c.Sigma
	p.Combine(momenta, of(1, momenta), of(eps, fuse.Grad))
	p.Combine(fuse.Theta, of(1, fuse.Theta), of(drift, momenta))
	p.Combine(momenta, of(math.Exp(-gamma*eps), momenta), of(scale, fuse.Noise))
	p.Combine(fuse.Theta, of(1, fuse.Theta), of(drift, momenta))
}
