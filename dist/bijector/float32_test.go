package bijector_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"

	"github.com/kelvin-ppl/kelvin/dist/bijector"
	"github.com/kelvin-ppl/kelvin/torch"
)

// What is float32 stays so, whatever the type of a bijector's parameters, and is as exact as that.
func TestFloat32(t *testing.T) {
	inScope(t, func() {
		low, high := vec([]float64{-1, 0, 1}), vec([]float64{0, 5, 1.5})
		for _, b := range []bijector.Bijector{
			bijector.Identity(), bijector.Exp(), bijector.Softplus(), bijector.Sigmoid(),
			bijector.Affine(low, vec([]float64{1, 2, 3})), bijector.Affine(1, 2),
			bijector.Interval(low, high), bijector.Interval(low, 9), bijector.Interval(-9, high), bijector.GreaterThan(low),
			bijector.LessThan(high),
			bijector.Inverse(bijector.Interval(-9, vec([]float64{1, 2, 3}))),
			bijector.Chain(bijector.Softplus(), bijector.Affine(low, 2)), bijector.Ordered(),
			bijector.PositiveOrdered(), bijector.StickBreaking(), bijector.UnitVector(), bijector.LowerCholesky(),
			bijector.CorrCholesky(), bijector.PositiveDefinite(),
		} {
			x := torch.Must(torch.FromSliceOn(torch.CPU, gotch.Float, []float64{0.3, -0.4, 0.8}))
			wide := x.T().MustTotype(double, false)
			y := b.Forward(x).T()
			require.Equal(t, gotch.Float, y.DType(), b.Name())
			near(t, floats(b.Forward(torch.Of(wide)).T()), floats(y), 1e-6, b.Name())
			l := b.LogAbsDetJacobian(x, torch.Of(y)).T()
			require.Equal(t, gotch.Float, l.DType(), b.Name())
			near(t, floats(b.LogAbsDetJacobian(torch.Of(wide), b.Forward(torch.Of(wide))).T()), floats(l), 1e-5, b.Name())
			require.Equal(t, gotch.Float, b.Inverse(torch.Of(y)).T().DType(), b.Name())
		}
	})
}
