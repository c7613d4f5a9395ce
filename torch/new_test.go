package torch_test

import (
	"testing"

	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What New and FromSlice give has the methods of the formula, in row-major order.
func TestNew(t *testing.T) {
	x := torch.New([]float64{1, 2, 3, 4, 5, 6}).Reshape(3, 2)
	assert.Equal(t, []int{3, 2}, x.Shape())
	assert.Equal(t, []float64{3, 4}, x.At(1).Values())
	y, err := torch.FromSlice([]int{1, 2, 3, 4}, 2, 2)
	require.NoError(t, err)
	assert.Equal(t, []float64{4, 6}, y.Sum(0).Values())
	assert.Equal(t, []float64{9, 9, 9, 9}, torch.New([]float64{3, 3, 3, 3}, 2, 2).Square().Values())
}

// A shape that does not hold the data is an error of FromSlice, and a panic of New that Do returns, with the line.
func TestNewOfAWrongShape(t *testing.T) {
	_, err := torch.FromSlice([]float64{1, 2, 3}, 2, 2)
	assert.EqualError(t, err, "torch: shape [2 2] holds 4 elements, the slice has 3")
	err = torch.Do(func(*torch.Scope) error { torch.New([]float64{1, 2, 3}, 2, 2); return nil })
	assert.ErrorContains(t, err, "torch: shape [2 2] holds 4 elements, the slice has 3")
	assert.ErrorContains(t, err, "new_test.go:")
	assert.Panics(t, func() { torch.New([]float64{1, 2, 3}, 2, 2) })
}

// Scopes own, keep and free Tensors. A number has no memory, and a field that was not set is not the number 0.
func TestTensorsInScopes(t *testing.T) {
	var kept, lost torch.Tensor
	require.NoError(t, torch.Do(func(s *torch.Scope) error {
		kept, lost = torch.New([]float64{1, 2}), torch.New([]float64{3})
		s.Keep(kept, torch.Of(5), torch.Tensor{})
		return nil
	}))
	assert.True(t, torch.Freed(lost))
	assert.Equal(t, []float64{1, 2}, kept.Values())
	torch.Free(kept, torch.Of(5), torch.Tensor{})
	assert.True(t, torch.Freed(kept))
	assert.False(t, torch.Freed(torch.Of(5)))
	assert.NotEqual(t, torch.Tensor{}, torch.Of(0))
	require.NoError(t, torch.Do(func(s *torch.Scope) error {
		x := torch.Of(2.5) // each T is a tensor of its own, which the scope frees
		before := s.Owned()
		x.T()
		x.T()
		assert.Equal(t, before+2, s.Owned())
		return nil
	}))
}
