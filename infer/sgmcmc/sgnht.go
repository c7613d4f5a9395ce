package sgmcmc

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/internal/fuse"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
	"gonum.org/v1/gonum/stat"
)

// SGNHT is the stochastic gradient Nosé-Hoover thermostat (Ding et al. 2014): SGHMC whose friction ξ is a variable. It
// grows while the momenta are hotter than τ = T/N and falls while they are colder, and so finds the friction that
// balances the noise of the gradient, which needs no estimate. In explicit Euler-Maruyama form (Duffield et al. 2025,
// section 4), with everything on the right of the old point:
//
//	θ' = θ + ε σ⁻² m
//	m' = m + ε g(θ) − ε σ⁻² ξ m + √(τε(2α − τεβ)) z,  τ = T/N
//	ξ' = ξ + ε (σ⁻² |m|²/d − τ)
//
// The joint target is exp((logPosterior − |m|²/(2σ²) − d(ξ − α)²/(2σ²))/τ), so that ξ is N(α, τσ²/d). (The σ² under ξ
// is missing in print; without it the target is not stationary unless σ = 1.) With PerParameter each parameter has a
// thermostat of its own, ξᵢ' = ξᵢ + ε(σ⁻² mᵢ² − τ), of law N(α, τσ²): for gradients that are noisier in some directions
// than in others. Gradient noise of variance V that β does not correct for raises the mean of ξ by about εV/(2τ).
//
// Whatever the step size, a chain in equilibrium has kinetic temperature |m|²/(dσ²) equal to τ on average,
// or else ξ would drift; the error of the step is in θ. The form with σ⁻¹ in place of σ⁻² that is found in
// print targets another law.
//
// There is no T = 0: ξ could only grow then, and would stop the chain anywhere.
type SGNHT struct {
	LR    infer.Schedule // step size ε; nil: a run finds it
	Alpha infer.Schedule // α, which sets the noise; nil means 1, and 0 is allowed
	Beta  float64        // β, estimated variance of the gradient noise; default 0
	Sigma float64        // σ, standard deviation of the momenta at τ = 1; 0 means 1
	// Xi is the initial thermostat ξ₀ of all chains and parameters; nil means Alpha(0).
	Xi           *float64
	PerParameter bool           // a thermostat for each parameter instead of one for each chain
	Temperature  infer.Schedule // T, always above 0; nil means 1, the Bayes posterior
	// Momenta are the initial momenta, of the shape of the params or of shape [d]; all chains share the latter. Nil
	// draws them from N(0, τσ²), their stationary law.
	Momenta torch.Tensor
}

// SGNHTState is the state of [SGNHT].
type SGNHTState struct {
	method.State
	Momenta torch.Tensor // m, of the shape of θ
	Xi      torch.Tensor // ξ, of shape [1] or [K, 1]; with PerParameter of the shape of θ
}

// Defaults are those of the options of a run.
func (c SGNHT) Defaults() infer.Options { return defaults }

// Build checks the configuration and binds it to a target.
func (c SGNHT) Build(target infer.Target) (infer.Transform, error) {
	check := &method.Checks{Name: "sgmcmc.SGNHT"}
	check.LR(c.LR, "below α/λ, with λ the largest curvature of the mean log posterior")
	check.Schedule("Alpha", &c.Alpha, 1, false)
	check.Schedule("Temperature", &c.Temperature, 1, false)
	check.Require(c.Temperature(0) != 0, "Temperature", 0, coldAdvice)
	check.Value("Sigma", &c.Sigma, 1, true)
	check.Value("Beta", &c.Beta, 0, false)
	xi := c.Alpha(0)
	if c.Xi != nil {
		xi = *c.Xi
	}
	check.Require(!math.IsNaN(xi) && !math.IsInf(xi, 0), "Xi", xi, "it must be finite")
	return method.Build(check, target, method.Algorithm[SGNHTState]{
		LR: c.LR, Temperature: c.Temperature, Program: c.program, ReportsStats: true,
		Momenta: func(s *SGNHTState) (*torch.Tensor, torch.Tensor, float64) { return &s.Momenta, c.Momenta, c.Sigma },
		Parts:   func(s *SGNHTState) []method.Part { return []method.Part{{Name: "xi", Tensor: &s.Xi}} },
		Start: func(s *SGNHTState, _ *method.Move) {
			like := s.Params.Flat
			if !c.PerParameter {
				like = torch.Of(like.T().MustNarrow(-1, 0, 1, false))
			}
			s.Xi = torch.Of(must(like.T().FullLike(ts.FloatScalar(xi), false)))
		},
		Inflation: func(s *SGNHTState, m *method.Move, lambda float64) float64 {
			friction, eps, rho := stat.Mean(meanOf(s.Xi), nil), m.LR, 1/(c.Sigma*c.Sigma)
			return lambda * method.StationaryVariance(1, eps*rho, -eps*lambda, 1-eps*rho*friction, 0, 0, 2*eps*c.Alpha(m.Index))
		},
	})
}

// coldAdvice says why T = 0 is refused.
const coldAdvice = "it must be greater than 0: at T = 0 the thermostat ξ' = ξ + ε|m|²/(dσ²) can only grow, and " +
	"stops the chain away from a mode; SGLD, SGHMC and package optim have a T = 0"

func (c SGNHT) program(_ *SGNHTState, p *fuse.Program, m *method.Move) {
	m.Require(m.Temperature != 0, fmt.Sprintf("Temperature at update %d", m.Index), 0, coldAdvice)
	eps, rho, momenta, xi := m.LR, 1/(c.Sigma*c.Sigma), fuse.Part(0), fuse.Part(1)
	z := noise{Step: eps, Friction: m.Rate("Alpha", c.Alpha, false), Beta: c.Beta}.term(p, m)
	p.Tell("xi", xi)
	p.Add(fuse.Theta, momenta.Times(eps*rho))
	p.Multiply(fuse.A, 1, momenta, xi) // friction
	if c.PerParameter {
		p.Add(xi, fuse.Product(eps*rho, momenta, momenta))
		p.Shift(xi, xi, -eps*m.Tau)
	} else {
		p.Multiply(fuse.B, 1, momenta, momenta)
		p.Drift(xi, eps*rho, p.Mean(fuse.B), -eps*m.Tau)
	}
	p.Add(momenta, fuse.Grad.Times(eps), fuse.A.Times(-eps*rho), z)
}
