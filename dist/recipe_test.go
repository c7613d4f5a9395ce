package dist

import (
	"math"

	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// rayleighDist is the Rayleigh distribution; see [Rayleigh].
type rayleighDist struct {
	base
	scale torch.Tensor
}

var rayleighFamily = &family{"Rayleigh", support.Positive,
	func(b base) Distribution { return rayleighDist{b, b.at(0)} }, []parameter{{"scale", positive}}}

// Rayleigh is the distribution of the length of a vector of two normal numbers of standard deviation scale > 0:
//
//	log p(x) = log x − 2 log scale − x²/(2 scale²)
func Rayleigh(scale any) Distribution { return rayleighFamily.with(scale) }

// LogProb is the log density.
func (d rayleighDist) LogProb(value torch.Tensor) torch.Tensor {
	x := floated(value)
	return d.full(x.Log().Sub(d.scale.Log().Mul(2)).Sub(x.Div(d.scale).Square().Mul(0.5)))
}

// Sample draws quantiles of uniform numbers, reparameterised.
func (d rayleighDist) Sample(src *Source, sample ...int) torch.Tensor {
	return d.ICDF(d.uniform(src, sample, d.scale))
}

// Mean is scale √(π/2).
func (d rayleighDist) Mean() torch.Tensor { return d.spread(d.scale.Mul(math.Sqrt(math.Pi / 2))) }

// Variance is (2 − π/2) scale².
func (d rayleighDist) Variance() torch.Tensor { return d.spread(d.scale.Square().Mul(2 - math.Pi/2)) }

// CDF is 1 − exp(−x²/(2 scale²)), and 0 below 0.
func (d rayleighDist) CDF(value torch.Tensor) torch.Tensor {
	return d.full(floated(value).Max(0).Div(d.scale).Square().Mul(-0.5).Expm1().Neg())
}

// ICDF is scale √(−2 log(1 − p)).
func (d rayleighDist) ICDF(p torch.Tensor) torch.Tensor {
	return d.full(p.Neg().Log1p().Mul(-2).Sqrt().Mul(d.scale))
}
