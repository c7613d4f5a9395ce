package optim

import (
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/internal/fuse"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/sugarme/gotch/ts"
)

// SGD is stochastic gradient ascent with momentum (Polyak 1964; Sutskever et al. 2013), in PyTorch's conventions:
//
//	u  = g(θ) − λθ
//	b' = μb + (1 − τ)u        (b' = u at the first update)
//	θ' = θ + ℓb'              (Nesterov: θ + ℓ(u + μb'))
//
// Without momentum it is θ' = θ + ℓu.
type SGD struct {
	LR          infer.Schedule // learning rate ℓ; required
	Momentum    float64        // μ in [0, 1); default 0
	Dampening   float64        // τ; default 0
	Nesterov    bool           // needs Momentum > 0 and Dampening 0
	WeightDecay float64        // λ; default 0
}

// SGDState is the state of [SGD].
type SGDState struct {
	method.State
	Buffer *ts.Tensor // b, of the shape of θ; zero before the first update
}

// Build checks the configuration and binds it to a target.
func (c SGD) Build(target infer.Target) (infer.Transform, error) {
	check, algorithm := c.algorithm()
	return method.Build(check, target, algorithm)
}

// BuildGradient checks the configuration and binds it to a gradient.
func (c SGD) BuildGradient(gradient infer.Gradient) (infer.Transform, error) {
	check, algorithm := c.algorithm()
	return method.BuildGradient(check, gradient, algorithm)
}

func (c SGD) algorithm() (*method.Checks, method.Algorithm[SGDState]) {
	check := &method.Checks{Name: "optim.SGD"}
	check.LR(c.LR, "below 2/λ, with λ the largest curvature of the mean log posterior")
	check.Fraction("Momentum", &c.Momentum, 0)
	check.Value("WeightDecay", &c.WeightDecay, 0, false)
	check.Require(c.Dampening >= 0 && c.Dampening <= 1, "Dampening", c.Dampening, "it must be from 0 to 1")
	check.Require(!c.Nesterov || c.Momentum != 0 && c.Dampening == 0, "Nesterov", true,
		"it needs Momentum above 0 and Dampening 0")
	return check, method.Algorithm[SGDState]{
		LR: c.LR, Step: c.step, Fused: c.fused,
		Parts: func(s *SGDState) []method.Part { return []method.Part{{Name: "buffer", Tensor: &s.Buffer}} },
		Start: func(s *SGDState, _ *method.Move) { s.Buffer = combine(term(0, s.Params.Flat)) },
	}
}

// Defaults are those of the options of a run: one draw, the end of 2000 updates.
func (c SGD) Defaults() infer.Options { return infer.Options{Warmup: 2000, Draws: 1} }

func (c SGD) step(s, next *SGDState, m *method.Move) {
	theta := term(1, s.Params.Flat)
	u := decayed(m.Grad, s.Params.Flat, c.WeightDecay)
	if m.Index == 0 || c.Momentum == 0 {
		next.Buffer = combine(term(1, u))
	} else {
		next.Buffer = combine(term(c.Momentum, s.Buffer), term(1-c.Dampening, u))
	}
	if c.Nesterov {
		next.Params.Flat = combine(theta, term(m.LR, u), term(m.LR*c.Momentum, next.Buffer))
	} else {
		next.Params.Flat = combine(theta, term(m.LR, next.Buffer))
	}
}

func (c SGD) fused(_ *SGDState, p *fuse.Program, m *method.Move) {
	buffer := fuse.Part(0)
	fusedDecay(p, c.WeightDecay)
	if m.Index == 0 || c.Momentum == 0 {
		p.Combine(buffer, of(1, fuse.Grad))
	} else {
		p.Combine(buffer, of(c.Momentum, buffer), of(1-c.Dampening, fuse.Grad))
	}
	if c.Nesterov {
		p.Combine(fuse.Theta, of(1, fuse.Theta), of(m.LR, fuse.Grad), of(m.LR*c.Momentum, buffer))
	} else {
		p.Combine(fuse.Theta, of(1, fuse.Theta), of(m.LR, buffer))
	}
}

var (
	combine = method.Combine
	term    = method.Term
)

// decayed is g − λθ.
func decayed(g, theta *ts.Tensor, lambda float64) *ts.Tensor {
	if lambda == 0 {
		return g
	}
	return combine(term(1, g), term(-lambda, theta))
}

// fusedDecay is decayed in the place of the gradient.
func fusedDecay(p *fuse.Program, lambda float64) {
	if lambda != 0 {
		p.Combine(fuse.Grad, of(1, fuse.Grad), of(-lambda, fuse.Theta))
	}
}

// of is c·x, a summand of [fuse.Program.Combine].
func of(c float64, x fuse.Register) fuse.Term { return fuse.Term{C: c, X: x} }
