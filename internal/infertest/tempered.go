package infertest

import (
	"math"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Tempered is a model with constrained sites whose law at temperature T has a closed form: the density of the
// constrained values to the power 1/T, with its Jacobian as it is. Its elements are independent on unconstrained space.
type Tempered struct {
	Name  string
	Model ppl.Model
	Batch infer.Batch
	// Log is the log density at temperature T of each element on unconstrained space, up to a constant.
	Log []func(u, temperature float64) float64
	// Laplace are the mode of each element at temperature T, and −1 over the second derivative of Log there.
	Laplace func(temperature float64) (mode, variance []float64)
}

// TemperedModels are, with A = (a − 1)/T + 1,
//
//	Gamma(a, b)          mode log(A T/b), variance 1/A
//	half-normal, σ       mode log(σ√T), variance 1/2
//	Dirichlet            the sticks are independent: mode log(A/B) and variance 1/A + 1/B, with B of the other elements
//
// The Gamma is the posterior of a rate of 40 data in a plate: the temperature does not depend on their number, and they
// may come in minibatches.
func TemperedModels() []Tempered {
	const n = 40
	y, sum := make([]float64, n), 0.0
	for i := range y {
		y[i] = -math.Log((float64(i)+0.5)/n) / 2
		sum += y[i]
	}
	return []Tempered{
		{"Gamma posterior", func(c *ppl.Ctx) {
			rate := c.Sample("rate", dist.Gamma(3, 2))
			c.Plate("data", n, func(c *ppl.Ctx) { c.Observe("y", dist.Exponential(rate), c.Data("y")) })
		}, infer.Batch{"y": torch.Of(Vector(y))}, []func(u, temperature float64) float64{
			func(u, temperature float64) float64 { return ((3+n-1)*u-(2+sum)*math.Exp(u))/temperature + u },
		}, func(temperature float64) (mode, variance []float64) {
			a := (3+n-1)/temperature + 1
			return []float64{math.Log(a * temperature / (2 + sum))}, []float64{1 / a}
		}},
		{"half-normal", func(c *ppl.Ctx) { c.Sample("x", dist.HalfNormal(1.5)) }, nil,
			[]func(u, temperature float64) float64{
				func(u, temperature float64) float64 { return -math.Exp(2*u)/(2*1.5*1.5)/temperature + u },
			}, func(temperature float64) (mode, variance []float64) {
				return []float64{math.Log(1.5 * math.Sqrt(temperature))}, []float64{0.5}
			}},
		// The sticks of a Dirichlet distribution are independent Betas: the first with a₁ and a₂ + a₃, the second with
		// a₂ and a₃. To the power 1/T each a becomes (a − 1)/T + 1. At 0 the first stick is 1/3 long.
		{"simplex", func(c *ppl.Ctx) { c.Sample("x", dist.Dirichlet(Vector([]float64{2, 3, 4}))) }, nil,
			[]func(u, temperature float64) float64{
				func(u, temperature float64) float64 {
					return (1/temperature+1)*logSigmoid(u-math.Log(2)) + (5/temperature+2)*logSigmoid(math.Log(2)-u)
				},
				func(u, temperature float64) float64 {
					return (2/temperature+1)*logSigmoid(u) + (3/temperature+1)*logSigmoid(-u)
				},
			}, func(temperature float64) (mode, variance []float64) {
				a, b := 1/temperature+1, 5/temperature+2
				c, d := 2/temperature+1, 3/temperature+1
				return []float64{math.Log(a/b) + math.Log(2), math.Log(c / d)}, []float64{1/a + 1/b, 1/c + 1/d}
			}},
	}
}

func logSigmoid(u float64) float64 { return -math.Log1p(math.Exp(-u)) }
