package dist

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/dist/internal/operand"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/internal/sparse"
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
	b.event = []int{steps}
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

// RandomWalk is the intrinsic random walk of n steps, of order 1 or 2 and scale > 0, a number or a tensor of the batch
// shape, on vectors with sum 0: the differences of that order are normal (Rue and Held 2005, Gaussian Markov Random
// Fields, section 3.3),
//
//	log p(x) = −Σ (xₜ₊₁ − xₜ)²/(2 scale²) + … of order 1,  −Σ (xₜ₊₂ − 2 xₜ₊₁ + xₜ)²/(2 scale²) + … of order 2
//
// with log n, or log n²(n² − 1)/12, as the logarithm of the determinant in (log det − r log 2π)/2 − r log scale, r the
// number of differences. That of order 2 is flat along a straight line: it needs data, and cannot be drawn from. A walk
// that starts at 0 and need not have sum 0 is [GaussianRandomWalk].
func RandomWalk(order, n int, scale any) (made Distribution) {
	defer orMisfit(&made)
	switch {
	case order != 1 && order != 2:
		panic(&Error{"RandomWalk", "order", fmt.Sprint(order), "it must be 1 or 2"})
	case n <= order:
		panic(&Error{"RandomWalk", "n", fmt.Sprint(n), fmt.Sprintf("it must be at least %d", order+1)})
	}
	return fieldOf([3]int{order, n}, func() *field { return walk(order, n) }).with(scale)
}

// walk is a random walk of order 1, the ICAR of a path, or 2.
func walk(order, n int) *field {
	if order == 1 {
		path := &Graph{Neighbours: make([][]int, n)}
		for i := range n - 1 {
			path.Neighbours[i] = append(path.Neighbours[i], i+1)
			path.Neighbours[i+1] = append(path.Neighbours[i+1], i)
		}
		f := *path.known("RandomWalk").icar
		f.name, f.of = "RandomWalk", nil
		return f.made()
	}
	var at [][2]int
	for i := range n - 2 {
		at = append(at, [2]int{i, i + 1}, [2]int{i, i + 2}, [2]int{i + 1, i + 2})
	}
	rank := float64(n - 2)
	f := newField("RandomWalk", n, sparse.NewPattern(n, at), support.ZeroSum, rank, parameter{"scale", positive})
	values := make([]float64, len(f.pattern.Row))
	d := [3]float64{1, -2, 1}
	for t := range n - 2 {
		for a := range d {
			for b := range a + 1 {
				values[f.pattern.At(t+a, t+b)] += d[a] * d[b]
			}
		}
	}
	f.squares = func(x torch.Tensor, p []torch.Tensor) torch.Tensor {
		part := func(from int64) torch.Tensor { return torch.Of(x.T().MustNarrow(-1, from, int64(n-2), false)) }
		return operand.SumLast(part(0).Add(part(2)).Sub(part(1).Mul(2)).Div(wide(p[0])).Square(), 1)
	}
	size := float64(n)
	f.logDet = func(p []torch.Tensor) torch.Tensor {
		return p[0].Log().Mul(-2 * rank).Add(math.Log(size * size * (size*size - 1) / 12))
	}
	f.precision = func(p []torch.Tensor) torch.Tensor { return torch.New(values).Mul(wide(p[0].Pow(-2))) }
	f.draw = func(*Source, []int, []torch.Tensor) torch.Tensor {
		panic(&Error{"RandomWalk", "order", "2", "it is flat along a straight line, and cannot be drawn from"})
	}
	f.variance = func(p []torch.Tensor) torch.Tensor { // infinite but where the line is 0
		infinite := make([]float64, n)
		for i := range infinite {
			if infinite[i] = math.Inf(1); 2*i == n-1 {
				infinite[i] = math.NaN()
			}
		}
		return torch.New(infinite).Mul(wide(p[0]))
	}
	return f
}
