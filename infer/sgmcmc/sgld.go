package sgmcmc

import (
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/internal/fuse"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/torch"
)

// SGLD is stochastic gradient Langevin dynamics (Welling and Teh 2011):
//
//	θ' = θ + ε g(θ) + √(τε(2 − τεβ)) z,  τ = T/N
//
// With β = 0 its stationary law approaches exp(logPosterior/τ) as ε goes to 0: for a Gaussian target of precision λ the
// variance is τ/(λ(1 − ελ/2)). β = V/τ² corrects exactly for gradient noise of variance V. At T = 0 it is gradient
// ascent, bit for bit optim.SGD.
type SGLD struct {
	LR          infer.Schedule // step size ε; nil: a run finds it
	Temperature infer.Schedule // T; nil means 1, the Bayes posterior
	Beta        float64        // β, estimated variance of the gradient noise; default 0
	// EstimateBeta finds β for each element from the gradients of minibatches; nil for Beta. If the gradient noise
	// already exceeds the target noise, nothing is injected; the statistic "clipped" is the share of such elements.
	EstimateBeta *Estimate
}

// SGLDState is the state of [SGLD].
type SGLDState struct {
	method.State
	Variance torch.Tensor // V, the estimated variance of the gradient, of the shape of θ; nil without EstimateBeta
}

// Defaults are those of the options of a run.
func (c SGLD) Defaults() infer.Options { return defaults }

// Build checks the configuration and binds it to a target.
func (c SGLD) Build(target infer.Target) (infer.Transform, error) {
	check := &method.Checks{Name: "sgmcmc.SGLD"}
	check.LR(c.LR, "below 2/λ, with λ the largest curvature of the mean log posterior")
	check.Schedule("Temperature", &c.Temperature, 1, false)
	checkBeta(check, c.Beta, &c.EstimateBeta)
	return method.Build(check, target, method.Algorithm[SGLDState]{
		LR: c.LR, Temperature: c.Temperature,
		Program: func(_ *SGLDState, p *fuse.Program, m *method.Move) {
			z := noise{Step: m.LR, Friction: 1, Beta: c.Beta, Estimate: c.EstimateBeta, Variance: fuse.Part(0)}.term(p, m)
			p.Add(fuse.Theta, fuse.Grad.Times(m.LR), z)
		},
		Parts: func(s *SGLDState) []method.Part { return []method.Part{c.EstimateBeta.VariancePart(&s.Variance)} },
		Inflation: func(_ *SGLDState, m *method.Move, lambda float64) float64 {
			return lambda * method.StationaryVariance(1-m.LR*lambda, 0, 0, 0, 2*m.LR, 0, 0)
		},
	})
}
