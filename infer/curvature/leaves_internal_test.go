package curvature

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
)

// The gradient of a single row of a model that reads its sites has a tensor for each of them, and no more: what it
// does not read has zeros. That of one that reads the flat vector alone is a row.
func TestSingleRowsHaveTheGradientsOfSites(t *testing.T) {
	layout, err := infer.NewLayout(infer.Shapes{"a": {2}, "b": {}, "c": {3}})
	require.NoError(t, err)
	p, err := infer.NewParams(layout, []float64{1, 2, 3, 4, 5, 6})
	require.NoError(t, err)
	x, err := torch.FromSlice([]float64{2}, 1)
	require.NoError(t, err)
	for _, c := range []struct {
		f    func(p infer.Params, b infer.Batch) torch.Tensor
		want [][]float64
	}{
		{func(p infer.Params, b infer.Batch) torch.Tensor { return b.Get("x").Mul(p.Get("a").Sum()) },
			[][]float64{{2, 2}, {0}, {0, 0, 0}}},
		{func(p infer.Params, b infer.Batch) torch.Tensor {
			return b.Get("x").Mul(p.Get("a").Sum().Add(p.Flat.Sum()))
		}, [][]float64{{4, 4}, {2}, {2, 2, 2}}},
		{func(p infer.Params, b infer.Batch) torch.Tensor { return b.Get("x").Mul(p.Flat.Sum()) },
			[][]float64{{2, 2, 2, 2, 2, 2}}},
	} {
		b := infer.Batch{"x": x}
		_, err := solve("test", 0, p, b, Options{}, func(q *problem) []torch.Tensor {
			l, y := q.eachRow("test", b, 1, true, c.f)
			assert.Len(t, l, 4)
			for range 2 { // the graph is kept
				g := l.gradient(torch.Of(y.T().MustSum(q.dtype, false)), torch.Tensor{}, true)
				require.Len(t, g, len(c.want))
				for i, want := range c.want {
					got, err := torch.ToSlice[float64](g[i])
					require.NoError(t, err)
					assert.Equal(t, want, got)
				}
				row, err := torch.Shape(joined(g))
				require.NoError(t, err)
				assert.Equal(t, []int{1, 6}, row)
			}
			return nil
		})
		require.NoError(t, err)
	}
}
