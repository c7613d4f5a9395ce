package dist

import (
	"math"

	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// inverseGaussianDist is the inverse Gaussian distribution; see [InverseGaussian].
type inverseGaussianDist struct {
	base
	mean, shape torch.Tensor
}

var inverseGaussianFamily = &family{"InverseGaussian", support.Positive,
	func(b base) Distribution { return inverseGaussianDist{b, b.at(0), b.at(1)} },
	[]parameter{{"mean", positive}, {"shape", positive}}}

// InverseGaussian is the inverse Gaussian (Wald) distribution with the given mean μ > 0 and shape λ > 0: the time at
// which a Brownian motion with drift 1/μ and variance 1/λ for each unit of time first reaches 1. For x > 0
//
//	log p(x) = ½ log(λ/(2π x³)) − λ (x − μ)²/(2 μ² x)
func InverseGaussian(mean, shape any) Distribution { return inverseGaussianFamily.with(mean, shape) }

// LogProb is the log density.
func (d inverseGaussianDist) LogProb(value torch.Tensor) torch.Tensor {
	return d.inside(value, dense(value).Le(0), torch.Of(1), func(x torch.Tensor) torch.Tensor {
		logX := x.Log()
		half := d.shape.Log().Sub(logX).Mul(0.5)
		// The root of λ/x times x/μ − 1: its square does not overflow where the density is not 0.
		root := x.Div(d.mean).Sub(1).Mul(half.Exp())
		return half.Sub(logX).Sub(halfLog2Pi).Sub(root.Square().Mul(0.5))
	})
}

// Sample draws by the two roots of a chi-squared number (Michael, Schucany and Haas 1976). No gradients flow to the
// parameters: which of the roots is taken depends on them.
func (d inverseGaussianDist) Sample(src *Source, sample ...int) torch.Tensor {
	z := d.normal(src, sample, d.mean, d.shape)
	return constant(inPieces(d, func(d inverseGaussianDist, of ...torch.Tensor) torch.Tensor {
		w := of[0].Square().Mul(d.mean.Div(d.shape)).Mul(0.5)
		// The smaller root over the mean, 1 + w − √(2w + w²), without the difference.
		small := w.Add(w.Mul(w.Add(2)).Sqrt()).Add(1).Reciprocal()
		return torch.Choose(of[1].Mul(small.Add(1)).Le(1), small, small.Reciprocal()).Mul(d.mean)
	}, z, d.uniform(src, sample, d.mean, d.shape)))
}

// Mean is μ.
func (d inverseGaussianDist) Mean() torch.Tensor { return d.spread(d.mean) }

// Variance is μ³/λ.
func (d inverseGaussianDist) Variance() torch.Tensor {
	return d.spread(d.mean.Square().Mul(d.mean.Div(d.shape)))
}

// CDF is Φ(√(λ/x) (x/μ − 1)) + exp(2λ/μ) Φ(−√(λ/x) (x/μ + 1)).
func (d inverseGaussianDist) CDF(value torch.Tensor) torch.Tensor {
	return inPieces(d, func(d inverseGaussianDist, x ...torch.Tensor) torch.Tensor { return d.cdf(x[0]) }, value)
}

func (d inverseGaussianDist) cdf(value torch.Tensor) torch.Tensor {
	return d.positivePart(value, 0, func(x torch.Tensor) torch.Tensor {
		zero, all := x.Eq(0), x.Eq(math.Inf(1))
		x = fill(x, either(zero, all), 1)
		root, ratio := d.shape.Div(x).Sqrt(), x.Div(d.mean)
		far := logNdtr(root.Mul(ratio.Add(1)).Neg()).Add(d.shape.Div(d.mean).Mul(2))
		return fill(fill(ndtr(root.Mul(ratio.Sub(1))).Add(far.Exp()), zero, 0), all, 1)
	})
}
