package laplace_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/laplace"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// At T in {1/4, 1, 4} the Gaussian is that of the density to the power 1/T of the constrained value, with its Jacobian
// as it is: the mode that a run looks for, and the variance T/P there, in closed form. Data come in batches of 7.
func TestTemperedConstrainedSites(t *testing.T) {
	for _, k := range infertest.TemperedModels() {
		program, err := ppl.Compile(k.Model, k.Batch)
		require.NoError(t, err)
		for _, temperature := range []float64{0.25, 1, 4} {
			method := laplace.DenseHessian{Temperature: infer.Constant(temperature)}
			transform := buildOn(t, method, program.Target())
			_, climbed := transform.(infer.ModeFinder).FindMode()
			mode, variance := k.Laplace(temperature)
			at := params(program.Layout(), mode, 0)
			gradient := must(infer.NewGradient(climbed))
			e := must(gradient.ValueAndGrad(at, k.Batch, 0))
			within(t, make([]float64, len(mode)), values(e.Grad.T()), 1e-12, k.Name+": the gradient at the mode")

			s := begin(t, transform, at)
			if k.Batch == nil {
				s, _ = update(t, transform, s, nil)
			} else {
				s = pass(t, transform, at, k.Batch, 7)
			}
			want := make([]float64, len(mode)*len(mode))
			for i, v := range variance {
				want[i*len(mode)+i] = temperature / v
			}
			within(t, want, precision(s), 1e-10*temperature/variance[0], k.Name)
			streams := torch.NewStreams(1, 1)
			_, err := transform.(infer.Sampler).Sample(s, 2, &streams)
			require.NoError(t, err)
		}
	}
}
