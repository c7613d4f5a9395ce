package ppl_test

import (
	"testing"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/require"
)

// So many log densities are compiled, and are those of operations (Predictive.LogLikelihood), which add in another
// order. A model that reads values is not compiled.
func TestCompiledLogLikelihood(t *testing.T) {
	const n, draw = 5000, 900
	y := make([]float64, n)
	for i := range y {
		y[i] = float64(i%7) - 3
	}
	batch := infer.Batch{"y": torch.New(y)}
	for name, reads := range map[string]bool{"compiled": false, "reads a value": true} {
		model := func(c *ppl.Ctx) {
			m := c.Sample("m", dist.Normal(0, 1).Expand(2))
			s := c.Sample("s", dist.HalfNormal(1))
			if reads {
				torch.Must(torch.Item(c.Data("y").Sum()))
			}
			c.Observe("few", dist.Normal(m, 1), torch.New([]float64{0.5, 1}))
			c.Observe("y", dist.StudentT(4, m.At(1), s), c.Data("y"))
		}
		p, err := ppl.Compile(model, batch)
		require.NoError(t, err, name)
		posterior, err := draws.New([]draws.Site{{Name: "m", Shape: []int{2}, Size: 2},
			{Name: "s", Shape: []int{}, Offset: 2, Size: 1}}, nil, 2)
		require.NoError(t, err)
		for i := range draw {
			x := float64(i) / draw
			require.NoError(t, posterior.AppendChain(i%2, []float64{x, 1 - 3*x, 0.1 + x}, nil))
		}
		posterior.SetSpace(draws.Named)
		got, err := p.LogLikelihood(posterior)
		require.NoError(t, err, name)
		want, err := ppl.Predictive{Model: model, Batch: batch}.LogLikelihood(posterior)
		require.NoError(t, err, name)
		for site, size := range map[string]int{"few": 2, "y": n} {
			flat, err := torch.ToSlice[float64](want[site])
			require.NoError(t, err)
			values, err := got.Values(site)
			require.NoError(t, err)
			for k := range draw {
				require.InDeltaSlice(t, flat[k*size:(k+1)*size], values[k/(draw/2)][k%(draw/2)], 1e-12, name)
			}
			torch.Free(want[site])
		}
	}
}
