package main

import (
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
	"gonum.org/v1/gonum/integrate/quad"
)

const dim = 2

// mode is where each coordinate has its modes, at ± this: d/dx (x² − x⁴/10) = 0.
var mode = math.Sqrt(5)

// logPosterior is log p = Σ x² − x⁴/10, not normalised: a product of two double wells, so that there are four modes.
// The wells are 2.5 deep, and have a variance of about 1/4. There are no data.
func logPosterior(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
	square := p.Get("x").Square()
	return square.Sub(square.Square().Mul(0.1)).Sum(), nil
}

// logDensity is the same for one coordinate.
func logDensity(x float64) float64 { return x*x - 0.1*x*x*x*x }

// moments are those of one coordinate x under the target. The coordinates are independent, and x is symmetric, so that
// |x| has the law of x within a mode.
type moments struct {
	Normalizer float64 `json:"normalizer"` // ∫ exp(x² − x⁴/10) dx
	Abs        float64 `json:"mean_abs_x"` // E|x|: the mean within a mode
	Square     float64 `json:"mean_x2"`    // E[x²]
	SquareSD   float64 `json:"sd_x2"`      // standard deviation of x²
	Within     float64 `json:"sd_within"`  // standard deviation within a mode
	Curvature  float64 `json:"curvature"`  // E[−(log p)″]
}

// exact integrates with 200 points of Gauss and Legendre over (0, 8). Beyond lies less than exp(−340).
func exact() moments {
	integral := func(f func(x float64) float64) float64 {
		return 2 * quad.Fixed(func(x float64) float64 {
			return f(x) * math.Exp(logDensity(x))
		}, 0, 8, 200, quad.Legendre{}, 0)
	}
	m := moments{Normalizer: integral(func(float64) float64 { return 1 })}
	mean := func(f func(x float64) float64) float64 { return integral(f) / m.Normalizer }
	m.Abs = mean(func(x float64) float64 { return x })
	m.Square = mean(func(x float64) float64 { return x * x })
	m.SquareSD = math.Sqrt(mean(func(x float64) float64 { return x * x * x * x }) - m.Square*m.Square)
	m.Within = math.Sqrt(m.Square - m.Abs*m.Abs)
	m.Curvature = mean(func(x float64) float64 { return 1.2*x*x - 2 })
	return m
}
