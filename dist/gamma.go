package dist

import (
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// gammaDist is the gamma distribution; see [Gamma].
type gammaDist struct {
	base
	concentration, rate torch.Tensor
}

var gammaFamily = &family{"Gamma", support.Positive,
	func(b base) Distribution { return gammaDist{b, b.at(0), b.at(1)} },
	[]parameter{{"concentration", positive}, {"rate", positive}}}

// Gamma is the gamma distribution with shape concentration > 0 and rate > 0; for x > 0, with a the concentration,
//
//	log p(x) = a log rate + (a − 1) log x − rate·x − log Γ(a)
//
// For a ≥ 10 it is computed from log(rate·x/a), where nothing large cancels.
func Gamma(concentration, rate any) Distribution { return gammaFamily.with(concentration, rate) }

// LogProb is the log density.
func (d gammaDist) LogProb(value torch.Tensor) torch.Tensor {
	return d.inside(value, dense(value).Lt(0), torch.Of(1), func(x torch.Tensor) torch.Tensor {
		return gammaAt(d.concentration, d.rate, x)
	})
}

// Sample draws gamma numbers, reparameterised.
func (d gammaDist) Sample(src *Source, sample ...int) torch.Tensor {
	return d.logGamma(src, sample, d.concentration, d.concentration, d.rate).Exp().Div(d.rate)
}

// Mean is concentration/rate.
func (d gammaDist) Mean() torch.Tensor { return d.spread(d.concentration.Div(d.rate)) }

// Variance is concentration/rate².
func (d gammaDist) Variance() torch.Tensor { return d.spread(d.concentration.Div(d.rate.Square())) }

// CDF is the regularised incomplete gamma function P(concentration, rate·x).
func (d gammaDist) CDF(value torch.Tensor) torch.Tensor {
	return inPieces(d, func(d gammaDist, x ...torch.Tensor) torch.Tensor {
		return d.positivePart(x[0], 0, func(x torch.Tensor) torch.Tensor {
			return incompleteGamma(d.concentration, x.Mul(d.rate))
		})
	}, value)
}
