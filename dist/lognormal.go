package dist

import (
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// logNormalDist is the distribution of a number whose logarithm is normal; see [LogNormal].
type logNormalDist struct {
	base
	loc, scale torch.Tensor
}

var logNormalFamily = &family{"LogNormal", support.Positive,
	func(b base) Distribution { return logNormalDist{b, b.at(0), b.at(1)} },
	[]parameter{{"loc", finite}, {"scale", positive}}}

// LogNormal is the distribution of exp(z), where z is normal with mean loc and standard deviation scale > 0; for x > 0
//
//	log p(x) = −((log x − loc)/scale)²/2 − log x − log scale − log √(2π)
func LogNormal(loc, scale any) Distribution { return logNormalFamily.with(loc, scale) }

// LogProb is the log density.
func (d logNormalDist) LogProb(value torch.Tensor) torch.Tensor {
	return d.inside(value, dense(value).Le(0), torch.Of(1), func(x torch.Tensor) torch.Tensor {
		l := x.Log()
		z := l.Sub(d.loc).Div(d.scale)
		return z.Square().Mul(-0.5).Sub(l).Sub(d.scale.Log().Add(halfLog2Pi))
	})
}

// Sample draws exp(loc + scale·z), reparameterised.
func (d logNormalDist) Sample(src *Source, sample ...int) torch.Tensor {
	return d.normal(src, sample, d.loc, d.scale).Mul(d.scale).Add(d.loc).Exp()
}

// Mean is exp(loc + scale²/2).
func (d logNormalDist) Mean() torch.Tensor {
	return d.spread(d.scale.Square().Mul(0.5).Add(d.loc).Exp())
}

// Variance is (exp(scale²) − 1) exp(2 loc + scale²).
func (d logNormalDist) Variance() torch.Tensor {
	v := d.scale.Square()
	return d.spread(v.Expm1().Mul(v.Add(d.loc.Mul(2)).Exp()))
}

// CDF is Φ((log x − loc)/scale).
func (d logNormalDist) CDF(value torch.Tensor) torch.Tensor {
	return d.positivePart(value, 0, func(x torch.Tensor) torch.Tensor { return ndtr(x.Log().Sub(d.loc).Div(d.scale)) })
}

// ICDF is exp(loc + scale·Φ⁻¹(p)).
func (d logNormalDist) ICDF(p torch.Tensor) torch.Tensor {
	return d.full(torch.Of(p.T().MustSpecialNdtri(false)).Mul(d.scale).Add(d.loc).Exp())
}
