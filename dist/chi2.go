package dist

import (
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// chi2Dist is the chi-squared distribution; see [Chi2].
type chi2Dist struct {
	base
	df torch.Tensor
}

var chi2Family = &family{"Chi2", support.Positive, func(b base) Distribution { return chi2Dist{b, b.at(0)} },
	[]parameter{{"df", positive}}}

// Chi2 is the chi-squared distribution with df > 0 degrees of freedom, a gamma distribution with concentration df/2 and
// rate 1/2; for x > 0
//
//	log p(x) = (df/2 − 1) log x − x/2 − (df/2) log 2 − log Γ(df/2)
func Chi2(df any) Distribution { return chi2Family.with(df) }

// LogProb is the log density.
func (d chi2Dist) LogProb(value torch.Tensor) torch.Tensor {
	return d.inside(value, dense(value).Lt(0), torch.Of(1), func(x torch.Tensor) torch.Tensor {
		return gammaAt(d.df.Mul(0.5), torch.Of(0.5), x)
	})
}

// Sample draws twice gamma numbers, reparameterised.
func (d chi2Dist) Sample(src *Source, sample ...int) torch.Tensor {
	return d.logGamma(src, sample, d.df.Mul(0.5), d.df).Exp().Mul(2)
}

// Mean is df.
func (d chi2Dist) Mean() torch.Tensor { return d.spread(d.df) }

// Variance is 2 df.
func (d chi2Dist) Variance() torch.Tensor { return d.spread(d.df.Mul(2)) }

// CDF is the regularised incomplete gamma function P(df/2, x/2).
func (d chi2Dist) CDF(value torch.Tensor) torch.Tensor {
	return inPieces(d, func(d chi2Dist, x ...torch.Tensor) torch.Tensor {
		return d.positivePart(x[0], 0, func(x torch.Tensor) torch.Tensor {
			return incompleteGamma(d.df.Mul(0.5), x.Mul(0.5))
		})
	}, value)
}
