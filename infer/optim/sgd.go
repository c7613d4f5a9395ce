package optim

import (
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/internal/fuse"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/torch"
)

var (
	_              = []infer.GradientMethod{SGD{}, Adam{}, AdamW{}}
	_ infer.Method = LBFGS{}
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
	Buffer torch.Tensor // b, of the shape of θ; zero before the first update
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
		LR: c.LR, Program: c.program,
		Parts: func(s *SGDState) []method.Part { return []method.Part{{Name: "buffer", Tensor: &s.Buffer}} },
		Start: func(s *SGDState, _ *method.Move) { s.Buffer = torch.Of(s.Params.Flat.T().MustZerosLike(false)) },
	}
}

// Defaults are those of the options of a run: one draw, the end of 2000 updates.
func (c SGD) Defaults() infer.Options { return infer.Options{Warmup: 2000, Draws: 1} }

func (c SGD) program(_ *SGDState, p *fuse.Program, m *method.Move) {
	buffer := fuse.Part(0)
	decay(p, c.WeightDecay)
	if m.Index == 0 || c.Momentum == 0 {
		p.Combine(buffer, fuse.Grad.Times(1))
	} else {
		p.Combine(buffer, buffer.Times(c.Momentum), fuse.Grad.Times(1-c.Dampening))
	}
	if c.Nesterov {
		p.Add(fuse.Theta, fuse.Grad.Times(m.LR), buffer.Times(m.LR*c.Momentum))
	} else {
		p.Add(fuse.Theta, buffer.Times(m.LR))
	}
}

// decay makes u = g − λθ of the gradient.
func decay(p *fuse.Program, lambda float64) {
	if lambda != 0 {
		p.Add(fuse.Grad, fuse.Theta.Times(-lambda))
	}
}
