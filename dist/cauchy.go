package dist

import (
	"math"

	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// cauchyDist is the Cauchy distribution; see [Cauchy].
type cauchyDist struct {
	base
	loc, scale torch.Tensor
}

var cauchyFamily = &family{"Cauchy", support.Real,
	func(b base) Distribution { return cauchyDist{b, b.at(0), b.at(1)} },
	[]parameter{{"loc", finite}, {"scale", positive}}}

// Cauchy is the Cauchy distribution with median loc and half width scale > 0:
//
//	log p(x) = −log(1 + ((x − loc)/scale)²) − log scale − log π
//
// It has neither mean nor variance.
func Cauchy(loc, scale any) Distribution { return cauchyFamily.with(loc, scale) }

// LogProb is the log density.
func (d cauchyDist) LogProb(value torch.Tensor) torch.Tensor {
	z := floated(value).Sub(d.loc).Div(d.scale)
	return d.full(log1pSquare(z).Neg().Sub(d.scale.Log().Add(math.Log(math.Pi))))
}

// Sample draws quantiles of uniform numbers, reparameterised.
func (d cauchyDist) Sample(src *Source, sample ...int) torch.Tensor {
	return d.ICDF(d.uniform(src, sample, d.loc, d.scale))
}

// Mean is NaN.
func (d cauchyDist) Mean() torch.Tensor { return d.constantLike(math.NaN(), d.loc, d.scale) }

// Variance is NaN.
func (d cauchyDist) Variance() torch.Tensor { return d.constantLike(math.NaN(), d.loc, d.scale) }

// CDF is the angle of the point (−z, 1) over π, with z = (x − loc)/scale: it is exact in the lower tail.
func (d cauchyDist) CDF(value torch.Tensor) torch.Tensor {
	z := floated(value).Sub(d.loc).Div(d.scale)
	return d.full(torch.Of(z.T().MustOnesLike(false).MustAtan2(z.Neg().T(), false)).Mul(1 / math.Pi))
}

// ICDF is loc − scale·cot(πp) for p < 1/2, else loc + scale·cot(π(1 − p)).
func (d cauchyDist) ICDF(p torch.Tensor) torch.Tensor {
	return inPieces(d, func(d cauchyDist, p ...torch.Tensor) torch.Tensor { return d.icdf(p[0]) }, p)
}

func (d cauchyDist) icdf(p torch.Tensor) torch.Tensor {
	lower := dense(p).Lt(0.5)
	q := torch.Choose(lower, p, torch.Of(1).Sub(p))
	z := torch.Of(q.Mul(math.Pi).T().MustTan(false)).Reciprocal()
	return d.full(torch.Choose(lower, z.Neg(), z).Mul(d.scale).Add(d.loc))
}
