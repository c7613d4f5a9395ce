package torch_test

import (
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An index that is no whole number is an error that names it. It is not cut off.
func TestFractionalIndex(t *testing.T) {
	float := func(v ...float64) torch.Tensor { return torch.New(v) }
	single := func(v ...float32) torch.Tensor { return torch.New(v) }
	x := float(10, 20, 30)
	for name, look := range map[string]func(x torch.Tensor, i any) torch.Tensor{
		"Take":        func(x torch.Tensor, i any) torch.Tensor { return x.Take(i) },
		"Take of two": func(x torch.Tensor, i any) torch.Tensor { return torch.Stack(0, x, x).Take(0, i) },
		"IndexSelect": func(x torch.Tensor, i any) torch.Tensor { return x.IndexSelect(0, i) },
		"Gather":      func(x torch.Tensor, i any) torch.Tensor { return x.Gather(0, i) },
	} {
		for _, c := range []struct {
			indices any
			want    string
		}{
			{float(0, -0.5, 2.9), "the index -0.5 at element 1 of shape [3] is not a whole number"},
			{float(0, math.NaN()), "the index NaN at element 1 of shape [2] is not a whole number"},
			{float(math.Inf(1)), "the index +Inf at element 0 of shape [1] is not a whole number"},
			{single(2, 1.5), "the index 1.5 at element 1 of shape [2] is not a whole number"},
		} {
			err := torch.Do(func(*torch.Scope) error { look(x, c.indices); return nil })
			require.ErrorContains(t, err, c.want, name)
			require.ErrorContains(t, err, "(at torch/index_test.go:", name)
			_, err = torch.Vmap(func(in []torch.Tensor) ([]torch.Tensor, error) {
				return []torch.Tensor{look(in[0], c.indices)}, nil
			}, []torch.Tensor{torch.Of(float(1, 2, 3).T().MustReshape([]int64{1, 3}, false))}, nil)
			require.ErrorContains(t, err, c.want, name)
		}
		require.NoError(t, torch.Do(func(*torch.Scope) error {
			assert.Equal(t, []float64{10, 30}, look(x, float(0, 2)).Values(), name)
			return nil
		}))
	}
	err := torch.Do(func(*torch.Scope) error { x.Take(1.5); return nil })
	require.ErrorContains(t, err, "Take([3] Double, [] Double): the index 1.5 at element 0 of shape [] is not a whole")

	// Indices that vmap maps cannot be read, and those of a gradient are not: there they are cut off.
	rows, err := torch.Vmap(func(in []torch.Tensor) ([]torch.Tensor, error) {
		return []torch.Tensor{x.Take(in[0])}, nil
	}, []torch.Tensor{float(0, 1.5)}, nil)
	require.NoError(t, err)
	assert.Equal(t, []float64{10, 20}, rows[0].Values())
	_, _, err = torch.ValueAndGrad(func(x torch.Tensor) torch.Tensor {
		return x.Take(float(1.5)).Sum()
	}, x)
	require.NoError(t, err)
}
