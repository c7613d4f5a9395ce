package dist

import (
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// exponentialDist is the exponential distribution; see [Exponential].
type exponentialDist struct {
	base
	rate torch.Tensor
}

var exponentialFamily = &family{"Exponential", support.Nonnegative,
	func(b base) Distribution { return exponentialDist{b, b.at(0)} },
	[]parameter{{"rate", positive}}}

// Exponential is the exponential distribution with the given rate > 0, the reciprocal of the mean; for x ≥ 0
//
//	log p(x) = log rate − rate·x
func Exponential(rate any) Distribution { return exponentialFamily.with(rate) }

// LogProb is the log density.
func (d exponentialDist) LogProb(value torch.Tensor) torch.Tensor {
	return d.inside(value, dense(value).Lt(0), torch.Of(1), func(x torch.Tensor) torch.Tensor {
		return d.rate.Log().Sub(x.Mul(d.rate))
	})
}

// Sample draws −log(u)/rate, reparameterised.
func (d exponentialDist) Sample(src *Source, sample ...int) torch.Tensor {
	return d.uniform(src, sample, d.rate).Log().Neg().Div(d.rate)
}

// Mean is 1/rate.
func (d exponentialDist) Mean() torch.Tensor { return d.spread(d.rate.Reciprocal()) }

// Variance is 1/rate².
func (d exponentialDist) Variance() torch.Tensor { return d.spread(d.rate.Reciprocal().Square()) }

// CDF is 1 − exp(−rate·x).
func (d exponentialDist) CDF(value torch.Tensor) torch.Tensor {
	return d.positivePart(value, 0, func(x torch.Tensor) torch.Tensor { return x.Mul(d.rate).Neg().Expm1().Neg() })
}

// ICDF is −log(1 − p)/rate.
func (d exponentialDist) ICDF(p torch.Tensor) torch.Tensor {
	return d.full(p.Neg().Log1p().Neg().Div(d.rate))
}
