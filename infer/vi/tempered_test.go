package vi_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/vi"
	"github.com/kelvin-ppl/kelvin/ppl"
)

// normalFit is the normal distribution N(m, s²) that minimises E_q[log q − f] for a concave log density f of one
// number: where E[f'] = 0 and E[f”] = −1/s². Expectations are a trapezoidal rule of 2001 points over ±10 standard
// deviations.
func normalFit(f func(x float64) float64) (m, s float64) {
	s = 1
	for range 300 {
		// Stein's identities: E[f'] = E[f z]/s and E[f''] = E[f (z² − 1)]/s².
		var slope, bend float64
		for i := -1000; i <= 1000; i++ {
			z := float64(i) / 100
			w := f(m+s*z) * math.Exp(-z*z/2) / math.Sqrt(2*math.Pi) / 100
			slope += w * z / s
			bend += w * (z*z - 1) / (s * s)
		}
		m -= 0.5 * slope / bend
		s = math.Sqrt(s * math.Sqrt(-1/bend))
	}
	return m, s
}

func sigmoid(u float64) float64 { return 1 / (1 + math.Exp(-u)) }

// At T in {1/4, 1, 4} q is the best normal distribution for the density to the power 1/T of the constrained value, with
// its Jacobian as it is. A tempered Jacobian would move the mean by 0.1 to 1.5 standard deviations. The Gamma is the
// posterior of a rate of 40 data: the temperature does not depend on their number, and they may come in minibatches.
// Tolerances are a tenth of a standard deviation in the mean and a tenth of the standard deviation: with 16 samples and
// a step that falls to 0.001 the fit is within a third of that.
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
		// log is the log density at temperature T of element i on unconstrained space; elements are independent.
		log []func(u, temperature float64) float64
	}{
		{"Gamma posterior", func(c *ppl.Ctx) {
			rate := c.Sample("rate", dist.Gamma(3, 2))
			c.Plate("data", n, func(c *ppl.Ctx) { c.Observe("y", dist.Exponential(rate), c.Data("y")) })
		}, infer.Batch{"y": vector(y)}, []func(u, temperature float64) float64{
			func(u, temperature float64) float64 { return ((3+n-1)*u-(2+sum)*math.Exp(u))/temperature + u },
		}},
		{"half-normal", func(c *ppl.Ctx) { c.Sample("x", dist.HalfNormal(1.5)) }, nil,
			[]func(u, temperature float64) float64{
				func(u, temperature float64) float64 { return -math.Exp(2*u)/(2*1.5*1.5)/temperature + u },
			}},
		// The sticks of a Dirichlet distribution are independent Betas: the first with a₁ and a₂ + a₃, the second with
		// a₂ and a₃. To the power 1/T each a becomes (a − 1)/T + 1. At 0 the first stick is 1/3 long.
		{"simplex", func(c *ppl.Ctx) { c.Sample("x", dist.Dirichlet(vector([]float64{2, 3, 4}))) }, nil,
			[]func(u, temperature float64) float64{
				func(u, temperature float64) float64 {
					z := sigmoid(u - math.Log(2))
					return (1/temperature+1)*math.Log(z) + (5/temperature+2)*math.Log(1-z)
				},
				func(u, temperature float64) float64 {
					return (2/temperature+1)*math.Log(sigmoid(u)) + (3/temperature+1)*math.Log(1-sigmoid(u))
				},
			}},
	} {
		program, err := ppl.Compile(k.model, k.batch)
		require.NoError(t, err)
		for _, temperature := range []float64{0.25, 1, 4} {
			method := vi.Diag{Samples: 16, Temperature: infer.Constant(temperature)}
			transform, err := method.Build(program.Target())
			require.NoError(t, err)
			s := fitted(t, transform, must(infer.Zeros(program.Layout())), k.batch, 4000, 1)
			mean, sd := must(s.Mean.Values()), values(must(s.SD()).Flat)
			for i, log := range k.log {
				m, sigma := normalFit(func(u float64) float64 { return log(u, temperature) })
				t.Logf("%s, T = %g: mean %.4f, want %.4f; sd %.4f, want %.4f", k.what, temperature, mean[i], m, sd[i],
					sigma)
				assert.InDelta(t, m, mean[i], 0.1*sigma, "%s, T = %g: mean %d", k.what, temperature, i)
				assert.InEpsilon(t, sigma, sd[i], 0.1, "%s, T = %g: sd %d", k.what, temperature, i)
			}
		}
	}
}
