package dist

import (
	"math"

	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// inverseGammaDist is the distribution of the reciprocal of a gamma number; see [InverseGamma].
type inverseGammaDist struct {
	base
	concentration, scale torch.Tensor
}

var inverseGammaFamily = &family{"InverseGamma", support.Positive,
	func(b base) Distribution { return inverseGammaDist{b, b.at(0), b.at(1)} },
	[]parameter{{"concentration", positive}, {"scale", positive}}}

// InverseGamma is the distribution of 1/g, where g is gamma with the given concentration > 0 and with rate scale > 0;
// for x > 0, with a the concentration,
//
//	log p(x) = a log scale − (a + 1) log x − scale/x − log Γ(a)
func InverseGamma(concentration, scale any) Distribution {
	return inverseGammaFamily.with(concentration, scale)
}

// LogProb is the log density.
func (d inverseGammaDist) LogProb(value torch.Tensor) torch.Tensor {
	// Where scale/x overflows the density is 0, as at x = 0.
	outside := torch.Of(dense(value).Le(0).T().MustLogicalOr(d.scale.Div(floated(value)).T().MustIsinf(false), false))
	return d.inside(value, outside, d.scale, func(x torch.Tensor) torch.Tensor {
		return split(d.concentration, stirlingFrom, func(a torch.Tensor) torch.Tensor {
			return a.Mul(d.scale.Log()).Sub(a.Add(1).Mul(x.Log())).Sub(d.scale.Div(x)).Sub(a.Lgamma())
		}, func(a torch.Tensor) torch.Tensor {
			t := d.scale.Div(x)
			return gammaFar(a, t).Add(t.Log()).Sub(x.Log())
		})
	})
}

// Sample draws reciprocals of gamma numbers, reparameterised.
func (d inverseGammaDist) Sample(src *Source, sample ...int) torch.Tensor {
	return d.logGamma(src, sample, d.concentration, d.concentration, d.scale).Neg().Exp().Mul(d.scale)
}

// Mean is scale/(concentration − 1); infinite for a concentration ≤ 1.
func (d inverseGammaDist) Mean() torch.Tensor {
	return d.spread(d.moment(d.scale.Div(d.concentration.Sub(1)), d.concentration, 1, math.Inf(1)))
}

// Variance is mean²/(concentration − 2); infinite for a concentration ≤ 2, NaN for one ≤ 1.
func (d inverseGammaDist) Variance() torch.Tensor {
	v := d.scale.Div(d.concentration.Sub(1)).Square().Div(d.concentration.Sub(2))
	return d.spread(d.moment(d.moment(v, d.concentration, 2, math.Inf(1)), d.concentration, 1, math.NaN()))
}

// CDF is the regularised incomplete gamma function Q(concentration, scale/x).
func (d inverseGammaDist) CDF(value torch.Tensor) torch.Tensor {
	return inPieces(d, func(d inverseGammaDist, x ...torch.Tensor) torch.Tensor {
		return d.positivePart(x[0], 0, func(x torch.Tensor) torch.Tensor {
			return incompleteGammaC(d.concentration, d.scale.Div(x))
		})
	}, value)
}
