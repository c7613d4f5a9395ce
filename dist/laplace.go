package dist

import (
	"math"

	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// laplaceDist is the Laplace distribution; see [Laplace].
type laplaceDist struct {
	base
	loc, scale torch.Tensor
}

var laplaceFamily = &family{"Laplace", support.Real,
	func(b base) Distribution { return laplaceDist{b, b.at(0), b.at(1)} },
	[]parameter{{"loc", finite}, {"scale", positive}}}

// Laplace is the two-sided exponential distribution with mean loc and scale > 0:
//
//	log p(x) = −|x − loc|/scale − log(2 scale)
func Laplace(loc, scale any) Distribution { return laplaceFamily.with(loc, scale) }

// LogProb is the log density.
func (d laplaceDist) LogProb(value torch.Tensor) torch.Tensor {
	return d.full(floated(value).Sub(d.loc).Div(d.scale).Abs().Neg().Sub(d.scale.Log().Add(math.Ln2)))
}

// Sample draws quantiles of uniform numbers, reparameterised.
func (d laplaceDist) Sample(src *Source, sample ...int) torch.Tensor {
	return d.ICDF(d.uniform(src, sample, d.loc, d.scale))
}

// Mean is loc.
func (d laplaceDist) Mean() torch.Tensor { return d.spread(d.loc) }

// Variance is 2 scale².
func (d laplaceDist) Variance() torch.Tensor { return d.spread(d.scale.Square().Mul(2)) }

// CDF is exp(z)/2 for z = (x − loc)/scale < 0, else 1 − exp(−z)/2.
func (d laplaceDist) CDF(value torch.Tensor) torch.Tensor {
	z := floated(value).Sub(d.loc).Div(d.scale)
	negative := z.Lt(0)
	tail := torch.Choose(negative, z, z.Neg()).Exp().Mul(0.5)
	return d.full(torch.Choose(negative, tail, torch.Of(1).Sub(tail)))
}

// ICDF is loc + scale log 2p for p < 1/2, else loc − scale log 2(1 − p).
func (d laplaceDist) ICDF(p torch.Tensor) torch.Tensor {
	return inPieces(d, func(d laplaceDist, p ...torch.Tensor) torch.Tensor { return d.icdf(p[0]) }, p)
}

func (d laplaceDist) icdf(p torch.Tensor) torch.Tensor {
	lower := p.Lt(0.5)
	z := torch.Choose(lower, p, torch.Of(1).Sub(p)).Mul(2).Log()
	return d.full(torch.Choose(lower, z, z.Neg()).Mul(d.scale).Add(d.loc))
}
