package dist

import (
	"math"

	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// normalDist is the normal distribution; see [Normal].
type normalDist struct {
	base
	loc, scale torch.Tensor
}

var normalFamily = &family{"Normal", support.Real,
	func(b base) Distribution { return normalDist{b, b.at(0), b.at(1)} },
	[]parameter{{"loc", finite}, {"scale", positive}}}

// Normal is the normal distribution with mean loc and standard deviation scale > 0:
//
//	log p(x) = −((x − loc)/scale)²/2 − log scale − log √(2π)
func Normal(loc, scale any) Distribution { return normalFamily.with(loc, scale) }

// LogProb is the log density.
func (d normalDist) LogProb(value torch.Tensor) torch.Tensor {
	z := floated(value).Sub(d.loc).Div(d.scale)
	return d.full(z.Square().Mul(-0.5).Sub(d.scale.Log().Add(0.5 * math.Log(2*math.Pi))))
}

// Sample draws loc + scale·z, reparameterised.
func (d normalDist) Sample(src *Source, sample ...int) torch.Tensor {
	dtype, device := like(d.loc, d.scale)
	z := torch.Must(src.Normal(join(sample, d.batch), dtype, device))
	return z.Mul(d.scale).Add(d.loc)
}

// Mean is loc.
func (d normalDist) Mean() torch.Tensor { return d.spread(d.loc) }

// Variance is scale².
func (d normalDist) Variance() torch.Tensor { return d.spread(d.scale.Square()) }

// CDF is Φ((x − loc)/scale).
func (d normalDist) CDF(value torch.Tensor) torch.Tensor {
	return d.full(ndtr(floated(value).Sub(d.loc).Div(d.scale)))
}

// ICDF is the quantile function loc + scale·Φ⁻¹(p).
func (d normalDist) ICDF(p torch.Tensor) torch.Tensor {
	return d.full(torch.Of(p.T().MustSpecialNdtri(false)).Mul(d.scale).Add(d.loc))
}
