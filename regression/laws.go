package regression

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// asymmetricLaplace has the quantile τ at loc. With ρ(z) = z (τ - [z < 0])
//
//	log p(y) = log(τ (1 - τ)/scale) - ρ((y - loc)/scale)
//
// (Yu and Moyeed 2001, Statistics & Probability Letters 54, 437–447).
type asymmetricLaplace struct {
	loc, scale torch.Tensor
	tau        float64
	batch      []int
}

// Name is the family's name.
func (asymmetricLaplace) Name() string { return "AsymmetricLaplace" }

// BatchShape is that of loc and scale.
func (d asymmetricLaplace) BatchShape() []int { return d.batch }

// EventShape is that of a number.
func (asymmetricLaplace) EventShape() []int { return nil }

// Support is the real numbers.
func (asymmetricLaplace) Support() support.Support { return support.Real }

// Validate leaves errors to the support of the parameters.
func (asymmetricLaplace) Validate() error { return nil }

// Expand broadcasts the batch shape.
func (d asymmetricLaplace) Expand(batch ...int) dist.Distribution {
	d.batch = batch
	return d
}

// LogProb is the log density.
func (d asymmetricLaplace) LogProb(y torch.Tensor) torch.Tensor {
	z := y.Sub(d.loc).Div(d.scale)
	loss := z.Mul(d.tau).AtLeast(z.Mul(d.tau - 1))
	return torch.Of(math.Log(d.tau * (1 - d.tau))).Sub(d.scale.Log()).Sub(loss)
}

// Sample is a difference of two exponential numbers: E₁/τ - E₂/(1 - τ), scaled.
func (d asymmetricLaplace) Sample(src *dist.Source, sample ...int) torch.Tensor {
	e := dist.Exponential(1).Expand(d.batch...)
	z := e.Sample(src, sample...).Div(d.tau).Sub(e.Sample(src, sample...).Div(1 - d.tau))
	return z.Mul(d.scale).Add(d.loc)
}

// Mean is loc + scale (1 - 2τ)/(τ (1 - τ)).
func (d asymmetricLaplace) Mean() torch.Tensor {
	return d.scale.Mul((1 - 2*d.tau) / (d.tau * (1 - d.tau))).Add(d.loc).Expand(d.batch...)
}

// Variance is scale² (1/τ² + 1/(1 - τ)²).
func (d asymmetricLaplace) Variance() torch.Tensor {
	return d.scale.Square().Mul(1/(d.tau*d.tau) + 1/((1-d.tau)*(1-d.tau))).Expand(d.batch...)
}

// Quantile is quantile regression: μ is the quantile Tau of the outcome, by an asymmetric Laplace law of scale sigma.
// The posterior of μ is that of a working model; its intervals are no confidence intervals of the quantile.
type Quantile struct{ Tau float64 } // from 0 to 1, without the ends; 0 means 0.5, the median

func (f Quantile) spec() *spec {
	tau := f.Tau
	if tau == 0 {
		tau = 0.5
	}
	s := &spec{name: "quantile", links: []string{"identity"}, params: []string{"sigma"}, scaled: true,
		allowed: number,
		dist: func(a args) dist.Distribution {
			return asymmetricLaplace{a.mu, a.of["sigma"], tau, a.mu.Mul(a.of["sigma"]).Shape()}
		}}
	if !(tau > 0 && tau < 1) {
		s.wrong = fmt.Sprintf("Tau is %g: it must be between 0 and 1", f.Tau)
	}
	return s
}
