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

// Gumbel is the Gumbel distribution of maxima, with mode loc and scale > 0; with z = (x − loc)/scale
//
//	log p(x) = −z − exp(−z) − log scale
func Gumbel(loc, scale any) (made Distribution) {
	defer orMisfit(&made)
	l, s := param("Gumbel", "loc", loc), param("Gumbel", "scale", scale)
	d := gumbelDist{base: newBase("Gumbel", l, s), loc: l, scale: s}
	d.checkNumber("loc", l, finite)
	d.checkNumber("scale", s, positive)
	return d
}

// Support is the real line.
func (d gumbelDist) Support() support.Support { return support.Real }

// LogProb is the log density.
func (d gumbelDist) LogProb(value torch.Tensor) torch.Tensor {
	z := floated(value).Sub(d.loc).Div(d.scale).Neg()
	return d.full(z.Sub(z.Exp()).Sub(d.scale.Log()))
}

// Sample draws quantiles of uniform numbers, reparameterised.
func (d gumbelDist) Sample(src *Source, sample ...int64) torch.Tensor {
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

// Expand broadcasts the batch shape.
func (d gumbelDist) Expand(batch ...int64) Distribution {
	d.base = d.expand(batch)
	return d
}

// Validate checks loc and scale.
func (d gumbelDist) Validate() error {
	return first(d.validate("loc", d.loc, finite), d.validate("scale", d.scale, positive))
}

// Params are the parameters by name.
func (d gumbelDist) Params() map[string]any {
	return map[string]any{"loc": d.loc, "scale": d.scale}
}
