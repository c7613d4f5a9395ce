package dist

import (
	"math"

	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// halfCauchyDist is the distribution of the absolute value of a Cauchy number; see [HalfCauchy].
type halfCauchyDist struct {
	base
	scale torch.Tensor
}

var halfCauchyFamily = &family{"HalfCauchy", support.Nonnegative,
	func(b base) Distribution { return halfCauchyDist{b, b.at(0)} },
	[]parameter{{"scale", positive}}}

// HalfCauchy is the distribution of |z|, where z is Cauchy with median 0 and half width scale > 0; for x ≥ 0
//
//	log p(x) = −log(1 + (x/scale)²) − log scale + log(2/π)
//
// Its mean is infinite; it has no variance.
func HalfCauchy(scale any) Distribution { return halfCauchyFamily.with(scale) }

// LogProb is the log density.
func (d halfCauchyDist) LogProb(value torch.Tensor) torch.Tensor {
	return d.inside(value, dense(value).Lt(0), torch.Of(1), func(x torch.Tensor) torch.Tensor {
		return log1pSquare(x.Div(d.scale)).Neg().Sub(d.scale.Log().Sub(math.Log(2 / math.Pi)))
	})
}

// Sample draws quantiles of uniform numbers, reparameterised.
func (d halfCauchyDist) Sample(src *Source, sample ...int) torch.Tensor {
	return d.ICDF(d.uniform(src, sample, d.scale))
}

// Mean is infinite.
func (d halfCauchyDist) Mean() torch.Tensor { return d.constantLike(math.Inf(1), d.scale) }

// Variance is NaN.
func (d halfCauchyDist) Variance() torch.Tensor { return d.constantLike(math.NaN(), d.scale) }

// CDF is 2/π arctan(x/scale).
func (d halfCauchyDist) CDF(value torch.Tensor) torch.Tensor {
	return d.positivePart(value, 0, func(x torch.Tensor) torch.Tensor {
		return torch.Of(x.Div(d.scale).T().MustAtan(false)).Mul(2 / math.Pi)
	})
}

// ICDF is scale·tan(πp/2) for p < 1/2, else scale·cot(π(1 − p)/2).
func (d halfCauchyDist) ICDF(p torch.Tensor) torch.Tensor {
	return inPieces(d, func(d halfCauchyDist, p ...torch.Tensor) torch.Tensor { return d.icdf(p[0]) }, p)
}

func (d halfCauchyDist) icdf(p torch.Tensor) torch.Tensor {
	lower := dense(p).Lt(0.5)
	z := torch.Of(torch.Choose(lower, p, torch.Of(1).Sub(p)).Mul(math.Pi / 2).T().MustTan(false))
	// One over 0 in the branch not taken would have no gradient.
	return d.full(torch.Choose(lower, z, fill(z, lower, 1).Reciprocal()).Mul(d.scale))
}
