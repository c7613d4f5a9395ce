package optim

import (
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/internal/fuse"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Adam is adaptive moment estimation (Kingma and Ba 2015), with weight decay as part of the gradient:
//
//	u  = g(θ) − λθ
//	m' = β₁m + (1 − β₁)u
//	v' = β₂v + (1 − β₂)u²
//	θ' = θ + ℓ m'/(1 − β₁ᵗ) / (√(v'/(1 − β₂ᵗ)) + ε)
type Adam struct {
	LR           infer.Schedule // learning rate ℓ, about the move of an element in an update; nil means 0.01
	Beta1, Beta2 float64        // decay of the moments, in (0, 1); 0 means 0.9 and 0.999
	Eps          float64        // ε; 0 means 1e-8
	WeightDecay  float64        // λ; default 0
}

// AdamW is Adam with decoupled weight decay (Loshchilov and Hutter 2019): u = g(θ), and θ is multiplied by 1 − ℓλ
// before it moves.
type AdamW struct {
	LR           infer.Schedule // learning rate ℓ, about the move of an element in an update; nil means 0.01
	Beta1, Beta2 float64        // decay of the moments, in (0, 1); 0 means 0.9 and 0.999
	Eps          float64        // ε; 0 means 1e-8
	WeightDecay  *float64       // λ; nil means 0.01
}

// AdamState is the state of [Adam] and of [AdamW].
type AdamState struct {
	method.State
	First  torch.Tensor // m, of the shape of θ
	Second torch.Tensor // v, of the shape of θ
}

// Build checks the configuration and binds it to a target.
func (c Adam) Build(target infer.Target) (infer.Transform, error) {
	check, algorithm := c.algorithm("optim.Adam", false)
	return method.Build(check, target, algorithm)
}

// BuildGradient checks the configuration and binds it to a gradient.
func (c Adam) BuildGradient(gradient infer.Gradient) (infer.Transform, error) {
	check, algorithm := c.algorithm("optim.Adam", false)
	return method.BuildGradient(check, gradient, algorithm)
}

// Build checks the configuration and binds it to a target.
func (c AdamW) Build(target infer.Target) (infer.Transform, error) {
	check, algorithm := c.adam().algorithm("optim.AdamW", true)
	return method.Build(check, target, algorithm)
}

// BuildGradient checks the configuration and binds it to a gradient.
func (c AdamW) BuildGradient(gradient infer.Gradient) (infer.Transform, error) {
	check, algorithm := c.adam().algorithm("optim.AdamW", true)
	return method.BuildGradient(check, gradient, algorithm)
}

func (c AdamW) adam() Adam {
	decay := 0.01
	if c.WeightDecay != nil {
		decay = *c.WeightDecay
	}
	return Adam{c.LR, c.Beta1, c.Beta2, c.Eps, decay}
}

// Defaults are those of the options of a run: one draw, the end of 2000 updates.
func (c Adam) Defaults() infer.Options { return infer.Options{Warmup: 2000, Draws: 1} }

// Defaults are those of the options of a run: one draw, the end of 2000 updates.
func (c AdamW) Defaults() infer.Options { return infer.Options{Warmup: 2000, Draws: 1} }

func (c Adam) algorithm(name string, decoupled bool) (*method.Checks, method.Algorithm[AdamState]) {
	check := &method.Checks{Name: name}
	check.Schedule("LR", &c.LR, 0.01, true)
	check.Fraction("Beta1", &c.Beta1, 0.9)
	check.Fraction("Beta2", &c.Beta2, 0.999)
	check.Value("Eps", &c.Eps, 1e-8, true)
	check.Value("WeightDecay", &c.WeightDecay, 0, false)
	return check, method.Algorithm[AdamState]{
		LR:      c.LR,
		Program: func(_ *AdamState, p *fuse.Program, m *method.Move) { c.program(p, m, decoupled) },
		Parts: func(s *AdamState) []method.Part {
			return []method.Part{{Name: "first", Tensor: &s.First}, {Name: "second", Tensor: &s.Second}}
		},
		Start: func(s *AdamState, _ *method.Move) {
			flat := s.Params.Flat.T()
			s.First, s.Second = torch.Of(flat.MustZerosLike(false)), torch.Of(flat.MustZerosLike(false))
		},
	}
}

func (c Adam) program(p *fuse.Program, m *method.Move, decoupled bool) {
	first, second, keep := fuse.Part(0), fuse.Part(1), 1.0
	if decoupled {
		keep = 1 - m.LR*c.WeightDecay
	} else {
		decay(p, c.WeightDecay)
	}
	p.Combine(first, first.Times(c.Beta1), fuse.Grad.Times(1-c.Beta1))
	p.Combine(second, second.Times(c.Beta2), fuse.Product(1-c.Beta2, fuse.Grad, fuse.Grad))
	t := float64(m.Index + 1)
	p.Root(fuse.A, 1/math.Sqrt(1-math.Pow(c.Beta2, t)), second, c.Eps)
	p.Divide(fuse.B, 1, first, fuse.A)
	p.Combine(fuse.Theta, fuse.Theta.Times(keep), fuse.B.Times(m.LR/(1-math.Pow(c.Beta1, t))))
}
