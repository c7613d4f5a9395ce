package dist

import (
	"math"

	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// gumbelDist is the Gumbel distribution; see [Gumbel].
type gumbelDist struct {
	base
	loc, scale torch.Tensor
}

var gumbelFamily = &family{"Gumbel", support.Real,
	func(b base) Distribution { return gumbelDist{b, b.at(0), b.at(1)} },
	[]parameter{{"loc", finite}, {"scale", positive}}}

// Gumbel is the Gumbel distribution of maxima, with mode loc and scale > 0; with z = (x − loc)/scale
//
//	log p(x) = −z − exp(−z) − log scale
func Gumbel(loc, scale any) Distribution { return gumbelFamily.with(loc, scale) }

// LogProb is the log density.
func (d gumbelDist) LogProb(value torch.Tensor) torch.Tensor {
	z := floated(value).Sub(d.loc).Div(d.scale).Neg()
	return d.full(z.Sub(z.Exp()).Sub(d.scale.Log()))
}

// Sample draws quantiles of uniform numbers, reparameterised.
func (d gumbelDist) Sample(src *Source, sample ...int) torch.Tensor {
	return d.ICDF(d.uniform(src, sample, d.loc, d.scale))
}

// eulerGamma is the Euler-Mascheroni constant.
const eulerGamma = 0.57721566490153286060651209008240243

// Mean is loc + γ scale, with Euler's constant γ.
func (d gumbelDist) Mean() torch.Tensor { return d.spread(d.scale.Mul(eulerGamma).Add(d.loc)) }

// Variance is π² scale²/6.
func (d gumbelDist) Variance() torch.Tensor {
	return d.spread(d.scale.Square().Mul(math.Pi * math.Pi / 6))
}

// CDF is exp(−exp(−z)).
func (d gumbelDist) CDF(value torch.Tensor) torch.Tensor {
	return d.full(floated(value).Sub(d.loc).Div(d.scale).Neg().Exp().Neg().Exp())
}

// ICDF is loc − scale log(−log p).
func (d gumbelDist) ICDF(p torch.Tensor) torch.Tensor {
	return d.full(p.Log().Neg().Log().Neg().Mul(d.scale).Add(d.loc))
}
