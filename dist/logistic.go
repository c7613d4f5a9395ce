package dist

import (
	"math"

	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// logisticDist is the logistic distribution; see [Logistic].
type logisticDist struct {
	base
	loc, scale torch.Tensor
}

var logisticFamily = &family{"Logistic", support.Real,
	func(b base) Distribution { return logisticDist{b, b.at(0), b.at(1)} },
	[]parameter{{"loc", finite}, {"scale", positive}}}

// Logistic is the logistic distribution with mean loc and scale > 0; with z = (x − loc)/scale
//
//	log p(x) = −|z| − 2 log(1 + exp(−|z|)) − log scale
func Logistic(loc, scale any) Distribution { return logisticFamily.with(loc, scale) }

// LogProb is the log density.
func (d logisticDist) LogProb(value torch.Tensor) torch.Tensor {
	z := floated(value).Sub(d.loc).Div(d.scale).Abs().Neg()
	return d.full(z.Sub(z.Exp().Log1p().Mul(2)).Sub(d.scale.Log()))
}

// Sample draws quantiles of uniform numbers, reparameterised.
func (d logisticDist) Sample(src *Source, sample ...int) torch.Tensor {
	return d.ICDF(d.uniform(src, sample, d.loc, d.scale))
}

// Mean is loc.
func (d logisticDist) Mean() torch.Tensor { return d.spread(d.loc) }

// Variance is π² scale²/3.
func (d logisticDist) Variance() torch.Tensor {
	return d.spread(d.scale.Square().Mul(math.Pi * math.Pi / 3))
}

// CDF is 1/(1 + exp(−z)).
func (d logisticDist) CDF(value torch.Tensor) torch.Tensor {
	return d.full(floated(value).Sub(d.loc).Div(d.scale).Sigmoid())
}

// ICDF is loc + scale log(p/(1 − p)).
func (d logisticDist) ICDF(p torch.Tensor) torch.Tensor {
	return d.full(p.Log().Sub(p.Neg().Log1p()).Mul(d.scale).Add(d.loc))
}
