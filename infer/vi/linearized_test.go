package vi_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/kelvin-ppl/kelvin/infer/vi"
	"github.com/kelvin-ppl/kelvin/torch"
)

// The outputs A θ of a linear model have mean Aμ and covariance A Σ Aᵀ + σ² I, with Σ the state's own, whatever the
// family.
func TestLinearized(t *testing.T) {
	const d, outputs, n, noise = 4, 2, 3, 0.3
	target := correlated(d)
	a := spread(n * outputs * d)
	forward := func(p infer.Params, b infer.Batch) torch.Tensor { return b.Get("a").MatMul(p.Flat) }
	b := infer.Batch{"a": torch.Of(vector(a, n, outputs, d))}
	for what, method := range methods(climb, 4, 0.5, nil) {
		t.Run(what, func(t *testing.T) {
			transform := build(t, method, target.logPosterior())
			s := begin(t, transform, params(target.layout(), spread(d), 0), 3)
			phi := spread(len(values(s.Variational().Flat.T())))
			place(t, s, phi)
			mean, cov, err := s.Linearized(forward, b, curvature.LinearizedOptions{NoiseSD: noise})
			require.NoError(t, err)
			require.Equal(t, []int{n, outputs}, mean.T().MustSize())
			require.Equal(t, []int{n, outputs, outputs}, cov.T().MustSize())
			sigma := mat.NewDense(d, d, values(must(s.Covariance()).T()))
			mu := mat.NewVecDense(d, values(s.Mean.Flat.T()))
			for i := range n {
				rows := mat.NewDense(outputs, d, a[i*outputs*d:(i+1)*outputs*d])
				var at mat.VecDense
				at.MulVec(rows, mu)
				var half, want mat.Dense
				half.Mul(rows, sigma)
				want.Mul(&half, rows.T())
				for k := range outputs {
					want.Set(k, k, want.At(k, k)+noise*noise)
				}
				within(t, at.RawVector().Data, values(mean.T())[i*outputs:(i+1)*outputs], 1e-13, "mean")
				within(t, want.RawMatrix().Data, values(cov.T())[i*outputs*outputs:(i+1)*outputs*outputs], 1e-13, "covariance")
			}
		})
	}
	_, _, err := vi.State{}.Linearized(forward, b, curvature.LinearizedOptions{})
	require.ErrorIs(t, err, infer.ErrConfig)
}
