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

// Normal is the normal distribution with mean loc and standard deviation scale > 0:
//
//	log p(x) = −((x − loc)/scale)²/2 − log scale − log √(2π)
func Normal(loc, scale any) (made Distribution) {
	defer orMisfit(&made)
	l, s := param("Normal", "loc", loc), param("Normal", "scale", scale)
	d := normalDist{base: newBase("Normal", l, s), loc: l, scale: s}
	d.checkNumber("loc", l, finite)
	d.checkNumber("scale", s, positive)
	return d
}

// Support is the real line.
func (d normalDist) Support() support.Support { return support.Real }

// LogProb is the log density.
func (d normalDist) LogProb(value torch.Tensor) torch.Tensor {
	z := floated(value).Sub(d.loc).Div(d.scale)
	return d.full(z.Square().Mul(-0.5).Sub(d.scale.Log().Add(0.5 * math.Log(2*math.Pi))))
}

// Sample draws loc + scale·z, reparameterised.
func (d normalDist) Sample(src *Source, sample ...int64) torch.Tensor {
	dtype, device := like(d.loc, d.scale)
	z := torch.Of(torch.Must(src.Normal(join(sample, d.batch), dtype, device)))
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

// Expand broadcasts the batch shape.
func (d normalDist) Expand(batch ...int64) Distribution {
	d.base = d.expand(batch)
	return d
}

// Validate checks loc and scale.
func (d normalDist) Validate() error {
	return first(d.validate("loc", d.loc, finite), d.validate("scale", d.scale, positive))
}

// Params are the parameters by name.
func (d normalDist) Params() map[string]any {
	return map[string]any{"loc": d.loc, "scale": d.scale}
}
