package sgmcmc

import (
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/internal/fuse"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/torch"
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
// bias of θ is of second order in ε. A Gaussian target has no bias at all: with exact gradients θ has
// variance τ/λ and m has τσ² at every stable step, ε²λ < 4σ². Friction never makes it unstable. At T = 0 it is
// gradient ascent with momentum.
//
// Gradient noise of variance V is not corrected for: it heats the momenta by about εV/(2α).
type BAOA struct {
	LR          infer.Schedule // step size ε; nil: a run finds it
	Alpha       infer.Schedule // friction α; nil means 1
	Sigma       float64        // σ, standard deviation of the momenta at τ = 1; 0 means 1
	Temperature infer.Schedule // T; nil means 1, the Bayes posterior
	// Momenta are the initial momenta, of the shape of the params or of shape [d]; all chains share the latter. Nil
	// draws them from N(0, τσ²), their stationary law; at T = 0 that is 0.
	Momenta torch.Tensor
}

// BAOAState is the state of [BAOA].
type BAOAState struct {
	method.State
	Momenta torch.Tensor // m, of the shape of θ
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
		LR: c.LR, Temperature: c.Temperature, Program: c.program,
		Momenta: func(s *BAOAState) (*torch.Tensor, torch.Tensor, float64) { return &s.Momenta, c.Momenta, c.Sigma },
		Inflation: func(_ *BAOAState, m *method.Move, lambda float64) float64 {
			keep, b, sd := c.rates(m)
			if sd == 0 {
				return 1 // no friction, and no noise
			}
			n := sd * sd / m.Tau
			return lambda * method.StationaryVariance(1-b*(1+keep)*m.LR*lambda, b*(1+keep), -keep*m.LR*lambda, keep,
				b*b*n, b*n, n)
		},
	})
}

// rates are e^(−γε), ½εσ⁻² and the standard deviation of the noise.
func (c BAOA) rates(m *method.Move) (keep, drift, scale float64) {
	rho := 1 / (c.Sigma * c.Sigma)
	gamma := m.Rate("Alpha", c.Alpha, false) * rho
	return math.Exp(-gamma * m.LR), m.LR * rho / 2, math.Sqrt(-m.Tau*math.Expm1(-2*gamma*m.LR)) * c.Sigma
}

func (c BAOA) program(_ *BAOAState, p *fuse.Program, m *method.Move) {
	keep, drift, scale := c.rates(m)
	momenta := fuse.Part(0)
	p.Add(momenta, fuse.Grad.Times(m.LR))
	p.Add(fuse.Theta, momenta.Times(drift))
	p.Combine(momenta, momenta.Times(keep), fuse.Noise.Times(scale))
	p.Add(fuse.Theta, momenta.Times(drift))
}
