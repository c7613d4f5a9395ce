package laplace

import (
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/kelvin-ppl/kelvin/infer/internal/approx"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// outputRoot checks what draws of outputs are made from, and returns a root of the covariances, [n, C, C].
func outputRoot(function string, mean, cov torch.Tensor, samples int, streams *torch.Streams) torch.Tensor {
	if samples < 1 || streams == nil || len(streams.Chains) != 1 {
		approx.Fail("laplace.%s: it needs a number of samples of at least 1, which is %d, and a random stream, "+
			"for example of torch.NewStreams(seed, 1): %w", function, samples, infer.ErrConfig)
	}
	checkOutputs(function, mean, cov)
	// The symmetric eigendecomposition serves singular covariances too: those of a softmax with
	// shared weights, for example.
	values, vectors := cov.T().MustLinalgEigh("L", false)
	checkNegative(function, "eigenvalue", torch.Of(values))
	return torch.Of(vectors.MustMul(values.MustClampMin(ts.FloatScalar(0), false).MustSqrt(false).MustUnsqueeze(1, false),
		false))
}

// drawOutputs are draws from N(mean, root rootᵀ), [samples, n, C].
func drawOutputs(mean, root torch.Tensor, samples int, streams *torch.Streams) torch.Tensor {
	shape := append([]int{samples}, mean.Shape()...)
	eps := torch.Must(streams.Normal(shape, mean.T().DType(), torch.Must(torch.DeviceOf(mean))))
	eps = torch.Of(eps.Reshape(shape...).T().MustPermute([]int64{1, 2, 0}, false))
	return torch.Of(root.T().MustBmm(eps.T(), false).MustPermute([]int64{2, 0, 1}, false).MustAdd(mean.T(), false))
}

// drawNumbers is how many numbers Softmax draws at a time: 8 MB of float64, and some times that on the way.
const drawNumbers = 1 << 20

// Softmax is the predictive distribution of a classifier with Gaussian logits, by averaging draws: for C classes the
// softmax, class probabilities of shape [n, C]; for binary logits, C = 1, the logistic function σ, the probabilities of
// class 1 of shape [n], as [Probit] gives them. Its error falls as 1/√samples. Draws are made in blocks, and take no
// more memory for a larger number of samples.
func Softmax(mean, cov torch.Tensor, samples int, streams *torch.Streams) (p torch.Tensor, err error) {
	err = torch.Do(func(scope *torch.Scope) error {
		root := outputRoot("Softmax", mean, cov, samples, streams)
		shape := mean.Shape()
		p = torch.Of(mean.T().MustDetach(false).MustZerosLike(false))
		rows := max(1, drawNumbers/max(1, shape[0]*shape[1]))
		for left := samples; left > 0; left -= rows {
			approx.Try(torch.Do(func(*torch.Scope) error {
				z := drawOutputs(mean, root, min(rows, left), streams)
				p.T().MustAdd_(probabilities(z).T().MustSumDimIntlist([]int64{0}, false, z.T().DType(), false))
				return nil
			}))
		}
		p = scaled(1/float64(samples), p)
		if shape[1] == 1 {
			p = p.Squeeze(1)
		}
		scope.Keep(p)
		return nil
	})
	return p, err
}

// probabilities are those of logits, [..., C]: with C = 1 of class 1.
func probabilities(z torch.Tensor) torch.Tensor {
	if shape := z.T().MustSize(); shape[len(shape)-1] == 1 {
		return z.Sigmoid()
	}
	return torch.Of(z.T().MustSoftmax(-1, z.T().DType(), false))
}

// Probit is the probit approximation of the predictive of a classifier with Gaussian logits of mean m and variance v:
//
//	binary, C = 1    σ(m/√(1 + πv/8)), shape [n]                   (Spiegelhalter and Lauritzen 1990; MacKay 1992)
//	C classes        softmax of m_c/√(1 + πv_cc/8), shape [n, C]   (Gibbs 1997)
//
// The second ignores covariances between logits.
func Probit(mean, cov torch.Tensor) (p torch.Tensor, err error) {
	err = torch.Do(func(scope *torch.Scope) error {
		checkOutputs("Probit", mean, cov)
		v := cov.T().MustDiagonal(0, 1, 2, false)
		checkNegative("Probit", "variance", torch.Of(v))
		scale := scaled(math.Pi/8, torch.Of(v.MustClampMin(ts.FloatScalar(0), false))).T().MustAddScalar(ts.FloatScalar(1),
			false).MustSqrt(false)
		p = probabilities(mean.Div(scale))
		if mean.T().MustSize()[1] == 1 {
			p = p.Squeeze(1)
		}
		scope.Keep(p)
		return nil
	})
	return p, err
}

// checkOutputs checks means [n, C] and covariances [n, C, C]: their shapes, and that they are finite.
func checkOutputs(function string, mean, cov torch.Tensor) {
	if mean == (torch.Tensor{}) || cov == (torch.Tensor{}) {
		approx.Fail("laplace.%s: the mean or the covariance is nil: Posterior.Linearized gives both", function)
	}
	m, err := torch.Shape(mean)
	if err != nil {
		approx.Fail("laplace.%s: the mean: %w", function, err)
	}
	c, err := torch.Shape(cov)
	if err != nil {
		approx.Fail("laplace.%s: the covariance: %w", function, err)
	}
	if len(m) != 2 || !slices.Equal(c, []int{m[0], m[1], m[1]}) {
		approx.Fail("laplace.%s: a mean of shape %v and a covariance of shape %v: expected [n, C] and [n, C, C]",
			function, m, c)
	}
	for what, x := range map[string]torch.Tensor{"mean": mean, "covariance": cov} {
		if approx.Item(torch.Of(x.T().MustIsfinite(false).MustAll(false))) == 0 {
			approx.Fail("laplace.%s: the %s has elements that are %w", function, what, infer.ErrNonFinite)
		}
	}
}

// checkNegative refuses variances or eigenvalues, [n, C], that are below 0 by more than rounding may make them: a
// covariance J Σ Jᵀ is a sum with terms of either sign.
func checkNegative(function, what string, v torch.Tensor) {
	least, largest := approx.Item(torch.Of(v.T().MustMin(false))), approx.Item(torch.Of(v.Abs().T().MustMax(false)))
	if least < 0 && least < -math.Sqrt(method.Epsilon(v))*largest {
		approx.Fail("laplace.%s: a covariance has the %s %g: it must have none below 0: %w", function, what, least,
			curvature.ErrIndefinite)
	}
}
