package dist

import (
	"fmt"
	"slices"

	"github.com/kelvin-ppl/kelvin/dist/internal/operand"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
)

// The likelihoods of linear models, over a matrix x of n rows of d features and weights w. They are the distributions
// of their predictors, with batch shape [n]; the predictor is one operation of libtorch. Whole numbers, and float32
// beside float64, are converted to float64. Shapes that do not fit are an error of the site that uses the distribution,
// which is named, or else of what is done with it first.

// BernoulliLogitGLM is [BernoulliLogits] with log-odds x w + b: x has shape [n, d], w [d], and b is a number or a
// tensor of shape [] or [n].
func BernoulliLogitGLM(x, w, b any) (made Distribution) {
	defer orMisfit(&made)
	const family = "BernoulliLogitGLM"
	return bernoulliLogits(family, linear(family, x, w, b, 1))
}

// PoissonLogGLM is [PoissonLog] with log rates x w + b; see [BernoulliLogitGLM] for the shapes.
func PoissonLogGLM(x, w, b any) (made Distribution) {
	defer orMisfit(&made)
	const family = "PoissonLogGLM"
	return poissonLog(family, linear(family, x, w, b, 1))
}

// NormalGLM is [Normal] with mean x w + b and standard deviation scale; see [BernoulliLogitGLM] for the shapes.
func NormalGLM(x, w, b, scale any) (made Distribution) {
	defer orMisfit(&made)
	const family = "NormalGLM"
	s := param(family, "scale", scale)
	base{family: family}.checkNumber("scale", s, positive)
	eta := linear(family, x, w, b, 1)
	d, ok := Normal(eta, s).(normalDist)
	if !ok {
		panic(&Error{family, "scale", fmt.Sprintf("of shape %v", s.Shape()),
			fmt.Sprintf("it must broadcast to %v", eta.Shape())})
	}
	d.family = family
	return d
}

// CategoricalLogitGLM is [CategoricalLogits] with logits x w + b: x has shape [n, d], w [d, C], and b is a number or a
// tensor of shape [], [C] or [n, C].
func CategoricalLogitGLM(x, w, b any) (made Distribution) {
	defer orMisfit(&made)
	const family = "CategoricalLogitGLM"
	return newCategorical(family, "logits", linear(family, x, w, b, 2))
}

// linear is x w + b, w of the given rank, or a panic where the shapes do not fit.
func linear(family string, features, weights, b any, rank int) torch.Tensor {
	x, w, bias := param(family, "x", features), param(family, "w", weights), param(family, "b", b)
	xs, ws := x.Shape(), w.Shape()
	if len(xs) != 2 {
		panic(&Error{family, "x", fmt.Sprintf("of shape %v", xs), "a matrix, of shape [n, d], is required"})
	}
	if len(ws) != rank || ws[0] != xs[1] {
		allowed := fmt.Sprintf("for x of shape %v its shape must be [%d]", xs, xs[1])
		if rank == 2 {
			allowed = fmt.Sprintf("for x of shape %v its shape must be [%d, C]", xs, xs[1])
		}
		panic(&Error{family, "w", fmt.Sprintf("of shape %v", ws), allowed})
	}
	out := append([]int{xs[0]}, ws[1:]...)
	bs := bias.Shape()
	if got, ok := operand.Broadcast(bs, out); !ok || !slices.Equal(got, out) {
		panic(&Error{family, "b", fmt.Sprintf("of shape %v", bs), fmt.Sprintf("it must broadcast to %v", out)})
	}
	x, w, bias = oneType(x, w, bias)
	switch {
	case operand.IsNumber(bias) && rank == 1:
		return torch.Of(x.T().MustMv(w.T(), false)).Add(bias)
	case operand.IsNumber(bias):
		return torch.Of(x.T().MustMm(w.T(), false)).Add(bias)
	case rank == 1:
		return torch.Of(bias.T().MustAddmv(x.T(), w.T(), false))
	}
	return torch.Of(bias.T().MustAddmm(x.T(), w.T(), false))
}

// oneType gives tensors of different types float64: products of matrices need one type.
func oneType(x, w, b torch.Tensor) (_, _, _ torch.Tensor) {
	dtype := x.T().DType()
	if w.T().DType() == dtype && (operand.IsNumber(b) || b.T().DType() == dtype) {
		return x, w, b
	}
	to := func(v torch.Tensor) torch.Tensor {
		if operand.IsNumber(v) {
			return v
		}
		return torch.Of(v.T().MustTotype(gotch.Double, false))
	}
	return to(x), to(w), to(b)
}
