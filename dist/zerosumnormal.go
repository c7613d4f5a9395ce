package dist

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/dist/internal/operand"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// zeroSumNormalDist is a normal distribution of vectors with sum 0; see [ZeroSumNormal].
type zeroSumNormalDist struct {
	base
	scale torch.Tensor
}

var zeroSumNormalFamily = &family{"ZeroSumNormal", support.ZeroSum,
	func(b base) Distribution { return zeroSumNormalDist{b, b.at(0)} },
	[]parameter{{"scale", positive}}}

// ZeroSumNormal is the distribution of n independent Normal(0, scale) numbers less their mean: of effects whose sum is
// 0, so that an intercept beside them has one meaning. n is at least 2; scale > 0 is a number or a tensor of the batch
// shape. The covariance is scale²·(I − 1·1ᵀ/n), and each correlation −1/(n − 1). As a density on the n − 1 dimensions
// of the vectors with sum 0
//
//	log p(x) = −Σᵢ (xᵢ/scale)²/2 − (n − 1)·(log scale + log √(2π))
//
// A value whose sum is not 0 is outside; LogProb does not read the sum.
func ZeroSumNormal(n int, scale any) (made Distribution) {
	defer orMisfit(&made)
	if n < 2 {
		panic(&Error{"ZeroSumNormal", "n", fmt.Sprint(n), "it must be at least 2"})
	}
	b := zeroSumNormalFamily.base("ZeroSumNormal", scale)
	b.event = []int{n}
	return b.shared.of(b)
}

// LogProb is the log density.
func (d zeroSumNormalDist) LogProb(value torch.Tensor) torch.Tensor {
	x := expandTo(value, broadcast(d.family, value.Shape(), d.event))
	squares := operand.SumLast(x.Div(wide(d.scale)).Square(), 1)
	return d.full(squares.Mul(-0.5).Sub(d.scale.Log().Add(halfLog2Pi).Mul(float64(d.event[0] - 1))))
}

// Sample draws scale·(z − mean of z), reparameterised.
func (d zeroSumNormalDist) Sample(src *Source, sample ...int) torch.Tensor {
	dtype, device := like(d.scale)
	z := torch.Must(src.Normal(join(sample, d.batch, d.event), dtype, device))
	return z.Sub(operand.SumLast(z, 1).Unsqueeze(-1).Div(float64(d.event[0]))).Mul(wide(d.scale))
}

// Mean is 0.
func (d zeroSumNormalDist) Mean() torch.Tensor { return d.constantLike(0, d.scale) }

// Variance is scale²·(1 − 1/n).
func (d zeroSumNormalDist) Variance() torch.Tensor {
	n := float64(d.event[0])
	return d.spread(alike(wide(d.scale.Square().Mul((n-1)/n)), d.scale))
}

// Params are the parameters by name.
func (d zeroSumNormalDist) Params() map[string]any {
	return map[string]any{"n": d.event[0], "scale": d.scale}
}
