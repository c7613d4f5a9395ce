package sgmcmc

import (
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/internal/fuse"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/torch"
)

// SGHMC is stochastic gradient Hamiltonian Monte Carlo (Chen, Fox and Guestrin 2014), in the explicit Euler-Maruyama
// form of Duffield et al. (2025, section 4): parameters and momenta both move from the old point.
//
//	θ' = θ + ε σ⁻² m
//	m' = m + ε g(θ) − ε σ⁻² α m + √(τε(2α − τεβ)) z,  τ = T/N
//
// The joint target is exp((logPosterior − |m|²/(2σ²))/τ). For a Gaussian target of precision λ the variance is about
// (τ/λ)(1 + ελ/α), and the recursion is stable only for ελ < α at moderate steps. At T = 0 it is gradient ascent with
// momentum. In terms of stochastic gradient descent with learning rate ℓ and momentum μ: ℓ = ε²/σ², μ = 1 − εα/σ².
type SGHMC struct {
	LR    infer.Schedule // step size ε; nil: a run finds it
	Alpha infer.Schedule // friction α; nil means 1. (The 0.01 of some libraries is unstable at most step sizes.)
	Beta  float64        // β, estimated variance of the gradient noise; default 0
	// EstimateBeta finds β for each element from the gradients of minibatches; nil for Beta. If the gradient noise
	// already exceeds the target noise, nothing is injected; the statistic "clipped" is the share of such elements.
	EstimateBeta *Estimate
	Sigma        float64        // σ, standard deviation of the momenta at τ = 1; 0 means 1
	Temperature  infer.Schedule // T; nil means 1, the Bayes posterior
	// Momenta are the initial momenta, of the shape of the params or of shape [d]; all chains share the latter. Nil
	// draws them from N(0, τσ²), their stationary law; at T = 0 that is 0.
	Momenta torch.Tensor
}

// SGHMCState is the state of [SGHMC].
type SGHMCState struct {
	method.State
	Momenta  torch.Tensor // m, of the shape of θ
	Variance torch.Tensor // V, the estimated variance of the gradient, of the shape of θ; nil without EstimateBeta
}

// Build checks the configuration and binds it to a target.
func (c SGHMC) Build(target infer.Target) (infer.Transform, error) {
	check := &method.Checks{Name: "sgmcmc.SGHMC"}
	check.LR(c.LR, "below α/λ, with λ the largest curvature of the mean log posterior")
	check.Schedule("Alpha", &c.Alpha, 1, false)
	check.Schedule("Temperature", &c.Temperature, 1, false)
	check.Value("Sigma", &c.Sigma, 1, true)
	checkBeta(check, c.Beta, &c.EstimateBeta)
	return method.Build(check, target, method.Algorithm[SGHMCState]{
		LR: c.LR, Temperature: c.Temperature, Program: c.program,
		Momenta: func(s *SGHMCState) (*torch.Tensor, torch.Tensor, float64) { return &s.Momenta, c.Momenta, c.Sigma },
		Parts:   func(s *SGHMCState) []method.Part { return []method.Part{c.EstimateBeta.VariancePart(&s.Variance)} },
		Inflation: func(_ *SGHMCState, m *method.Move, lambda float64) float64 {
			alpha, rho := c.Alpha(m.Index), 1/(c.Sigma*c.Sigma)
			return lambda * method.StationaryVariance(1, m.LR*rho, -m.LR*lambda, 1-m.LR*rho*alpha, 0, 0, 2*m.LR*alpha)
		},
	})
}

// Defaults are those of the options of a run.
func (c SGHMC) Defaults() infer.Options { return defaults }

func (c SGHMC) program(_ *SGHMCState, p *fuse.Program, m *method.Move) {
	eps, rho, alpha, momenta := m.LR, 1/(c.Sigma*c.Sigma), m.Rate("Alpha", c.Alpha, false), fuse.Part(0)
	p.Add(fuse.Theta, momenta.Times(eps*rho))
	z := noise{Step: eps, Friction: alpha, Beta: c.Beta, Estimate: c.EstimateBeta, Variance: fuse.Part(1)}.term(p, m)
	p.Combine(momenta, momenta.Times(1-eps*rho*alpha), fuse.Grad.Times(eps), z)
}
