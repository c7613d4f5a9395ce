package dist

import (
	"math"

	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/dist/internal/operand"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// betaDist is the beta distribution; see [Beta].
type betaDist struct {
	base
	concentration1, concentration0 torch.Tensor
}

var betaFamily = &family{"Beta", support.UnitInterval,
	func(b base) Distribution { return betaDist{b, b.at(0), b.at(1)} },
	[]parameter{{"concentration1", positive}, {"concentration0", positive}}}

// Beta is the beta distribution with a = concentration1 > 0 and b = concentration0 > 0; for 0 ≤ x ≤ 1
//
//	log p(x) = (a − 1) log x + (b − 1) log(1 − x) − log B(a, b)
//
// Where both are at least 10 it is computed from log(x (a+b)/a) and log((1−x) (a+b)/b), where nothing large cancels.
func Beta(concentration1, concentration0 any) Distribution {
	return betaFamily.with(concentration1, concentration0)
}

// LogProb is the log density.
func (d betaDist) LogProb(value torch.Tensor) torch.Tensor {
	outside := torch.Of(dense(value).Lt(0).T().MustLogicalOr(dense(value).Gt(1).T(), false))
	return d.inside(
		value,
		outside,
		torch.Of(0.5),
		func(x torch.Tensor) torch.Tensor { return betaKernel(d.concentration1, d.concentration0, x) },
	)
}

// betaKernel is the log density at 0 ≤ x ≤ 1.
func betaKernel(a, b torch.Tensor, x torch.Tensor) torch.Tensor {
	smaller := a.AtMost(b)
	if operand.IsNumber(smaller) {
		if operand.Number(smaller) < stirlingFrom {
			return betaNear(a, b, x)
		}
		return betaFar(a, b, x)
	}
	small := smaller.Lt(stirlingFrom)
	// Below the bound where the branch is taken: at a bound derivatives are 0 or 1, as libtorch's version has it.
	far := betaFar(a.AtLeast(stirlingFrom/2), b.AtLeast(stirlingFrom/2), x)
	return torch.Choose(small, betaNear(a, b, x), far)
}

func betaNear(a, b torch.Tensor, x torch.Tensor) torch.Tensor {
	return xlogy(a.Sub(1), x).Add(xlog1py(b.Sub(1), x.Neg())).Sub(logBeta(a, b))
}

// betaFar is (a−1) L + (b−1) M + 3/2 log(a+b) − ½ log ab − log √2π − δ(a) − δ(b) + δ(a+b), where δ is the remainder of
// Stirling's formula, L = log(x (a+b)/a) and M = log((1−x) (a+b)/b).
func betaFar(a, b torch.Tensor, x torch.Tensor) torch.Tensor {
	// At an end it is minus infinity, without gradients.
	end := x.Mul(torch.Of(x.T().MustRsubScalar(ts.FloatScalar(1), false))).Eq(0)
	x = fill(x, end, 0.5)
	s, y := a.Add(b), torch.Of(1).Sub(x)
	over := x.Mul(b).Sub(y.Mul(a)) // x (a+b) − a
	l := logRatio(over.Div(a), func() torch.Tensor { return x.Log().Sub(a.Div(s).Log()) })
	m := logRatio(over.Neg().Div(b), func() torch.Tensor { return x.Neg().Log1p().Sub(b.Div(s).Log()) })
	c := s.Log().Mul(1.5).Sub(a.Log().Add(b.Log()).Mul(0.5)).Sub(halfLog2Pi).
		Sub(stirling(a)).Sub(stirling(b)).Add(stirling(s))
	return fill(a.Sub(1).Mul(l).Add(b.Sub(1).Mul(m)).Add(c), end, math.Inf(-1))
}

// Sample draws g/(g + h) of two gamma numbers, from their logarithms, reparameterised.
func (d betaDist) Sample(src *Source, sample ...int) torch.Tensor {
	g := d.logGamma(src, sample, d.concentration1, d.concentration1, d.concentration0)
	h := d.logGamma(src, sample, d.concentration0, d.concentration1, d.concentration0)
	return g.Sub(h).Sigmoid()
}

// Mean is a/(a + b).
func (d betaDist) Mean() torch.Tensor {
	return d.spread(d.concentration1.Div(d.concentration1.Add(d.concentration0)))
}

// Variance is ab/((a + b)² (a + b + 1)).
func (d betaDist) Variance() torch.Tensor {
	s := d.concentration1.Add(d.concentration0)
	return d.spread(d.concentration1.Div(s).Mul(d.concentration0.Div(s)).Div(s.Add(1)))
}
