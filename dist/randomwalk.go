package dist

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// GaussianRandomWalkDist is a random walk with normal steps; see [GaussianRandomWalk].
type GaussianRandomWalkDist struct {
	base
	steps int64
	scale val
}

// GaussianRandomWalk is the distribution of vectors x₁ … x_n, n = steps, with x₀ = 0 and independent steps
// xₜ − xₜ₋₁ ~ Normal(0, scale), scale > 0 a number or a tensor of the batch shape:
//
//	log p(x) = Σₜ [−((xₜ − xₜ₋₁)/scale)²/2 − log scale − log √(2π)]
func GaussianRandomWalk(steps int, scale any) GaussianRandomWalkDist {
	s := param("GaussianRandomWalk", "scale", scale)
	if steps < 1 {
		panic(&Error{"GaussianRandomWalk", "steps", fmt.Sprint(steps), "it must be at least 1"})
	}
	d := GaussianRandomWalkDist{base: newBase("GaussianRandomWalk", s), steps: int64(steps), scale: s}
	d.event = []int64{d.steps}
	d.checkNumber("scale", s, positive)
	return d
}

// Support is all real vectors.
func (d GaussianRandomWalkDist) Support() support.Support { return support.Real.Independent(1) }

// column is scale with a dimension for the steps.
func (d GaussianRandomWalkDist) column() val {
	if d.scale.isNum() {
		return d.scale
	}
	return ten(d.scale.t.MustUnsqueeze(-1, false))
}

// LogProb is the log density.
func (d GaussianRandomWalkDist) LogProb(value *ts.Tensor) *ts.Tensor {
	x := expandTo(value, broadcast(d.family, ten(value).shape(), d.event))
	before := x.MustConstantPadNd([]int64{1, -1}, false)
	z := ten(x.MustSub(before, false)).div(d.column())
	squares := ten(sumLast(z.square().t, 1))
	norm := d.scale.log().add(num(halfLog2Pi)).mul(num(float64(d.steps)))
	return d.full(squares.mul(num(-0.5)).sub(norm).t)
}

// Sample draws sums of scale·z, reparameterised.
func (d GaussianRandomWalkDist) Sample(src *Source, sample ...int64) *ts.Tensor {
	dtype, device := like(d.scale)
	z := torch.Must(src.Normal(join(sample, d.batch, d.event), dtype, device))
	return ten(z.MustCumsum(-1, dtype, false)).mul(d.column()).t
}

// Mean is 0.
func (d GaussianRandomWalkDist) Mean() *ts.Tensor { return d.constantLike(0, d.scale) }

// Variance is t·scale².
func (d GaussianRandomWalkDist) Variance() *ts.Tensor {
	t := make([]float64, d.steps)
	for i := range t {
		t[i] = float64(i + 1)
	}
	dtype, device := like(d.scale)
	return d.spread(ten(torch.Must(torch.FromSliceOn(device, dtype, t, d.steps))).mul(d.column().square()))
}

// Expand broadcasts the batch shape.
func (d GaussianRandomWalkDist) Expand(batch ...int64) Distribution {
	d.base = d.expand(batch)
	return d
}

// Validate checks scale.
func (d GaussianRandomWalkDist) Validate() error { return d.validate("scale", d.scale, positive) }

// Params are the parameters by name.
func (d GaussianRandomWalkDist) Params() map[string]any {
	return map[string]any{"steps": d.steps, "scale": d.scale.any()}
}
