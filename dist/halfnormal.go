package dist

import (
	"math"

	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// halfNormalDist is the distribution of the absolute value of a normal number; see [HalfNormal].
type halfNormalDist struct {
	base
	scale torch.Tensor
}

var halfNormalFamily = &family{"HalfNormal", support.Nonnegative,
	func(b base) Distribution { return halfNormalDist{b, b.at(0)} },
	[]parameter{{"scale", positive}}}

// HalfNormal is the distribution of |z|, where z is normal with mean 0 and standard deviation scale > 0; for x ≥ 0
//
//	log p(x) = −(x/scale)²/2 − log scale + log √(2/π)
func HalfNormal(scale any) Distribution { return halfNormalFamily.with(scale) }

// LogProb is the log density.
func (d halfNormalDist) LogProb(value torch.Tensor) torch.Tensor {
	return d.inside(value, dense(value).Lt(0), torch.Of(1), func(x torch.Tensor) torch.Tensor {
		return x.Div(d.scale).Square().Mul(-0.5).Sub(d.scale.Log().Sub(0.5 * math.Log(2/math.Pi)))
	})
}

// Sample draws scale·|z|, reparameterised.
func (d halfNormalDist) Sample(src *Source, sample ...int) torch.Tensor {
	return d.normal(src, sample, d.scale).Abs().Mul(d.scale)
}

// Mean is scale √(2/π).
func (d halfNormalDist) Mean() torch.Tensor { return d.spread(d.scale.Mul(math.Sqrt(2 / math.Pi))) }

// Variance is scale² (1 − 2/π).
func (d halfNormalDist) Variance() torch.Tensor {
	return d.spread(d.scale.Square().Mul(1 - 2/math.Pi))
}

// CDF is erf(x/(scale √2)).
func (d halfNormalDist) CDF(value torch.Tensor) torch.Tensor {
	return d.positivePart(value, 0, func(x torch.Tensor) torch.Tensor { return x.Div(d.scale).Mul(math.Sqrt2 / 2).Erf() })
}

// ICDF is scale·Φ⁻¹((1 + p)/2).
func (d halfNormalDist) ICDF(p torch.Tensor) torch.Tensor {
	return d.full(torch.Of(p.T().MustErfinv(false)).Mul(math.Sqrt2).Mul(d.scale))
}
