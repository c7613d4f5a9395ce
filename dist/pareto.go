package dist

import (
	"math"

	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// paretoDist is the Pareto distribution; see [Pareto].
type paretoDist struct {
	base
	scale, alpha torch.Tensor
}

var paretoFamily = &family{"Pareto", itsOwn, func(b base) Distribution { return paretoDist{b, b.at(0), b.at(1)} },
	[]parameter{{"scale", positive}, {"alpha", positive}}}

// Pareto is the Pareto distribution of numbers from scale > 0, with exponent alpha > 0; for x ≥ scale
//
//	log p(x) = log alpha − log scale − (alpha + 1) log(x/scale)
func Pareto(scale, alpha any) Distribution { return paretoFamily.with(scale, alpha) }

// Support is x ≥ scale.
func (d paretoDist) Support() support.Support { return support.Interval(d.scale, math.Inf(1)) }

// LogProb is the log density.
func (d paretoDist) LogProb(value torch.Tensor) torch.Tensor {
	return d.inside(value, below(value, d.scale), d.scale, func(x torch.Tensor) torch.Tensor {
		// Without a sum of alpha and 1, so that the gradient in scale, alpha/scale, is exact for any alpha.
		return d.alpha.Log().Sub(x.Div(d.scale).Log().Mul(d.alpha)).Sub(x.Log())
	})
}

// Sample draws scale·u^(−1/alpha), reparameterised.
func (d paretoDist) Sample(src *Source, sample ...int) torch.Tensor {
	return d.uniform(src, sample, d.scale, d.alpha).Log().Neg().Div(d.alpha).Exp().Mul(d.scale)
}

// Mean is scale·alpha/(alpha − 1); infinite for alpha ≤ 1.
func (d paretoDist) Mean() torch.Tensor {
	return d.spread(d.moment(d.scale.Mul(d.alpha.Div(d.alpha.Sub(1))), d.alpha, 1, math.Inf(1)))
}

// Variance is scale² alpha/((alpha − 1)² (alpha − 2)); infinite for alpha ≤ 2, NaN for alpha ≤ 1.
func (d paretoDist) Variance() torch.Tensor {
	v := d.scale.Div(d.alpha.Sub(1)).Square().Mul(d.alpha.Div(d.alpha.Sub(2)))
	return d.spread(d.moment(d.moment(v, d.alpha, 2, math.Inf(1)), d.alpha, 1, math.NaN()))
}

// CDF is 1 − (scale/x)^alpha.
func (d paretoDist) CDF(value torch.Tensor) torch.Tensor {
	outside := below(value, d.scale)
	x := torch.Choose(outside, d.scale, floated(value))
	return d.full(fill(x.Div(d.scale).Log().Mul(d.alpha).Neg().Expm1().Neg(), outside, 0))
}

// ICDF is scale·(1 − p)^(−1/alpha).
func (d paretoDist) ICDF(p torch.Tensor) torch.Tensor {
	return d.full(p.Neg().Log1p().Div(d.alpha).Neg().Exp().Mul(d.scale))
}
