package laplace_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/laplace"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// At T in {1/4, 1, 4} the Gaussian is that of the density to the power 1/T of the constrained value, with its Jacobian
// as it is. The mode that a run looks for, and the variance T/P there, in closed form: with A = (a − 1)/T + 1,
//
//	Gamma(a, b)          mode log(A T/b), variance 1/A
//	half-normal, σ       mode log(σ√T), variance 1/2
//	Dirichlet            the sticks are independent: mode log(A/B) and variance 1/A + 1/B, with B of the other elements
//
// The Gamma is the posterior of a rate of 40 data, in batches of 7: the temperature does not depend on their number.
func TestTemperedConstrainedSites(t *testing.T) {
	const n = 40
	y, sum := make([]float64, n), 0.0
	for i := range y {
		y[i] = -math.Log((float64(i)+0.5)/n) / 2
		sum += y[i]
	}
	for _, k := range []struct {
		what  string
		model ppl.Model
		batch infer.Batch
		want  func(temperature float64) (mode, variance []float64)
	}{
		{"Gamma posterior", func(c *ppl.Ctx) {
			rate := c.Sample("rate", dist.Gamma(3, 2))
			c.Plate("data", n, func(c *ppl.Ctx) { c.Observe("y", dist.Exponential(rate), c.Data("y")) })
		}, infer.Batch{"y": vector(y)}, func(temperature float64) (mode, variance []float64) {
			a := (3+n-1)/temperature + 1
			return []float64{math.Log(a * temperature / (2 + sum))}, []float64{1 / a}
		}},
		{"half-normal", func(c *ppl.Ctx) { c.Sample("x", dist.HalfNormal(1.5)) }, nil,
			func(temperature float64) (mode, variance []float64) {
				return []float64{math.Log(1.5 * math.Sqrt(temperature))}, []float64{0.5}
			}},
		{"simplex", func(c *ppl.Ctx) { c.Sample("x", dist.Dirichlet(vector([]float64{2, 3, 4}))) }, nil,
			func(temperature float64) (mode, variance []float64) {
				// The first stick has 2 against 3 + 4, and is a third long at 0; the second has 3 against 4.
				a, b := 1/temperature+1, 5/temperature+2
				c, d := 2/temperature+1, 3/temperature+1
				return []float64{math.Log(a/b) + math.Log(2), math.Log(c / d)}, []float64{1/a + 1/b, 1/c + 1/d}
			}},
	} {
		program, err := ppl.Compile(k.model, k.batch)
		require.NoError(t, err)
		for _, temperature := range []float64{0.25, 1, 4} {
			method := laplace.DenseHessian{Temperature: infer.Constant(temperature)}
			transform := buildOn(t, method, program.Target())
			_, climbed := transform.(infer.ModeFinder).FindMode()
			mode, variance := k.want(temperature)
			at := params(program.Layout(), mode, 0)
			gradient := must(infer.NewGradient(climbed))
			e := must(gradient.ValueAndGrad(at, k.batch, 0))
			within(t, make([]float64, len(mode)), values(e.Grad), 1e-12, k.what+": the gradient at the mode")

			s := begin(t, transform, at)
			if k.batch == nil {
				s, _ = update(t, transform, s, nil)
			} else {
				s = pass(t, transform, at, k.batch, 7)
			}
			want := make([]float64, len(mode)*len(mode))
			for i, v := range variance {
				want[i*len(mode)+i] = temperature / v
			}
			within(t, want, precision(s), 1e-10*temperature/variance[0], k.what)
			streams := torch.NewStreams(1, 1)
			_, err := transform.(infer.Sampler).Sample(s, 2, &streams)
			require.NoError(t, err)
		}
	}
}
