package progress

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/internal/oldrun"
	"github.com/kelvin-ppl/kelvin/torch"
)

// With momenta given and no force, friction or noise the kinetic temperature is that of the momenta.
func TestKineticTemperatureOfTheProgress(t *testing.T) {
	layout, err := infer.NewLayout(infer.Shapes{"a": {1}, "b": {2}})
	require.NoError(t, err)
	p, err := infer.Zeros(layout)
	require.NoError(t, err)
	momenta, err := torch.FromSlice([]float64{1, 2, 3})
	require.NoError(t, err)
	flat := func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
		return torch.Of(p.Flat.MustSum(p.Flat.DType(), false).MustMulScalar(ts.FloatScalar(0), false)), nil
	}
	for _, c := range []struct {
		method infer.Method
		want   float64
		ok     bool
	}{
		{sgmcmc.SGHMC{LR: infer.Constant(0.1), Alpha: infer.Constant(0), Sigma: 2, Temperature: infer.Constant(0.5), Momenta: momenta}, 14.0 / 3 / 4 / 0.5, true},
		{sgmcmc.SGHMC{LR: infer.Constant(0.1), Temperature: infer.Constant(0)}, 0, false},
		{sgmcmc.SGLD{LR: infer.Constant(0.1)}, 0, false},
	} {
		transform, err := c.method.Build(infer.Sum(flat, 1))
		require.NoError(t, err)
		seen := 0
		_, err = oldrun.Run(context.Background(), transform, p, infer.Full(nil), oldrun.Config{Steps: 3, NoDraws: true,
			Observer: infer.ObserverFunc(func(p infer.Progress) {
				seen++
				got, ok := kineticTemperature(p)
				assert.Equal(t, c.ok, ok)
				assert.InDelta(t, c.want, got, 1e-12)
			})})
		require.NoError(t, err)
		assert.Equal(t, 3, seen)
	}
}
