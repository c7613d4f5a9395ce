package dist

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/dist/internal/operand"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// gaussianRandomWalkDist is a random walk with normal steps; see [GaussianRandomWalk].
type gaussianRandomWalkDist struct {
	base
	steps int
	scale torch.Tensor
}

var gaussianRandomWalkFamily = &family{"GaussianRandomWalk", itsOwn,
	func(b base) Distribution { return gaussianRandomWalkDist{b, b.event[0], b.at(0)} },
	[]parameter{{"scale", positive}}}

// GaussianRandomWalk is the distribution of vectors x₁ … x_n, n = steps, with x₀ = 0 and independent steps
// xₜ − xₜ₋₁ ~ Normal(0, scale), scale > 0 a number or a tensor of the batch shape:
//
//	log p(x) = Σₜ [−((xₜ − xₜ₋₁)/scale)²/2 − log scale − log √(2π)]
func GaussianRandomWalk(steps int, scale any) (made Distribution) {
	defer orMisfit(&made)
	if steps < 1 {
		panic(&Error{"GaussianRandomWalk", "steps", fmt.Sprint(steps), "it must be at least 1"})
	}
	b := gaussianRandomWalkFamily.base("GaussianRandomWalk", scale)
	b.event = []int{int(steps)}
	return b.shared.of(b)
}

// Support is all real vectors.
func (d gaussianRandomWalkDist) Support() support.Support { return support.Real.Independent(1) }

// column is scale with a dimension for the steps.
func (d gaussianRandomWalkDist) column() torch.Tensor {
	if operand.IsNumber(d.scale) {
		return d.scale
	}
	return d.scale.Unsqueeze(-1)
}

// LogProb is the log density.
func (d gaussianRandomWalkDist) LogProb(value torch.Tensor) torch.Tensor {
	x := expandTo(value, broadcast(d.family, value.Shape(), d.event))
	before := torch.Of(x.T().MustConstantPadNd([]int64{1, -1}, false))
	z := x.Sub(before).Div(d.column())
	squares := operand.SumLast(z.Square(), 1)
	norm := d.scale.Log().Add(halfLog2Pi).Mul(float64(d.steps))
	return d.full(squares.Mul(-0.5).Sub(norm))
}

// Sample draws sums of scale·z, reparameterised.
func (d gaussianRandomWalkDist) Sample(src *Source, sample ...int) torch.Tensor {
	dtype, device := like(d.scale)
	z := torch.Must(src.Normal(join(sample, d.batch, d.event), dtype, device))
	return torch.Of(z.T().MustCumsum(-1, dtype, false)).Mul(d.column())
}

// Mean is 0.
func (d gaussianRandomWalkDist) Mean() torch.Tensor { return d.constantLike(0, d.scale) }

// Variance is t·scale².
func (d gaussianRandomWalkDist) Variance() torch.Tensor {
	t := make([]float64, d.steps)
	for i := range t {
		t[i] = float64(i + 1)
	}
	dtype, device := like(d.scale)
	return d.spread(torch.Must(torch.FromSliceOn(device, dtype, t, d.steps)).Mul(d.column().Square()))
}

// Params are the parameters by name.
func (d gaussianRandomWalkDist) Params() map[string]any {
	return map[string]any{"steps": d.steps, "scale": d.scale}
}
