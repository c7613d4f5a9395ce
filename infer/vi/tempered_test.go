package vi_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/vi"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
	"github.com/kelvin-ppl/kelvin/internal/testkit"
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

// At T in {1/4, 1, 4} q is the best normal distribution for the density to the power 1/T of the constrained value, with
// its Jacobian as it is. A tempered Jacobian would move the mean by 0.1 to 1.5 standard deviations. Tolerances are a
// tenth of a standard deviation in the mean and a tenth of the standard deviation: with 16 samples and a step that
// falls to 0.001 the fit is within a third of that.
func TestTemperedConstrainedSites(t *testing.T) {
	for _, k := range infertest.TemperedModels() {
		program, err := ppl.Compile(k.Model, k.Batch)
		require.NoError(t, err)
		for _, temperature := range []float64{0.25, 1, 4} {
			if temperature == 1 && !testkit.Slow {
				continue
			}
			method := vi.Diag{Samples: 16, Temperature: infer.Constant(temperature)}
			transform, err := method.Build(program.Target())
			require.NoError(t, err)
			s := fitted(t, transform, must(infer.Zeros(program.Layout())), k.Batch, 4000, 1)
			mean, sd := must(s.Mean.Values()), values(must(s.SD()).Flat.T())
			for i, log := range k.Log {
				m, sigma := normalFit(func(u float64) float64 { return log(u, temperature) })
				t.Logf("%s, T = %g: mean %.4f, want %.4f; sd %.4f, want %.4f", k.Name, temperature, mean[i], m, sd[i],
					sigma)
				assert.InDelta(t, m, mean[i], 0.1*sigma, "%s, T = %g: mean %d", k.Name, temperature, i)
				assert.InEpsilon(t, sigma, sd[i], 0.1, "%s, T = %g: sd %d", k.Name, temperature, i)
			}
		}
	}
}
