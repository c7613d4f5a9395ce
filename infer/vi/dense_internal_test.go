package vi

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/torch"
)

// below is where the elements below the diagonal are, row by row.
func below(d int) []int {
	var out []int
	for i := range d {
		for j := range i {
			out = append(out, i*d+j)
		}
	}
	return out
}

// The places of the elements below the diagonal are found once for a size, and outlive the scope in which they were
// found.
func TestPlacesAreRemembered(t *testing.T) {
	var l lower
	find := func(d int) (found torch.Tensor) {
		require.NoError(t, torch.Do(func(*torch.Scope) error { found = l.places(d, gotch.CPU); return nil }))
		at, err := torch.ToSlice[int](found)
		require.NoError(t, err)
		assert.Equal(t, below(d), at)
		return found
	}
	four := find(4)
	assert.Equal(t, four, find(4))
	assert.NotEqual(t, four, find(7))
	find(4) // again anew

	var group sync.WaitGroup
	for d := range 8 {
		group.Add(1)
		go func() {
			defer group.Done()
			assert.NoError(t, torch.Do(func(*torch.Scope) error {
				at, err := torch.ToSlice[int](l.places(d%2+2, gotch.CPU))
				assert.Equal(t, below(d%2+2), at)
				return err
			}))
		}()
	}
	group.Wait()
}

// All updates and states of a transform have one memory, whatever scope of the caller's they are in.
func TestUpdatesRememberPlaces(t *testing.T) {
	// 20 variational parameters: so many samples that the objective is not in loops
	method := Dense{Optimizer: optim.Adam{LR: infer.Constant(0.1)}, Samples: mostLoops/20 + 1}
	built, err := method.Build(infer.Sum(func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
		return torch.Of(p.Flat.Dot(p.Flat).T().MustMulScalar(ts.FloatScalar(-0.5), false)), nil
	}, 1))
	require.NoError(t, err)
	layout, err := infer.NewLayout(infer.Shapes{"x": {5}})
	require.NoError(t, err)
	start, err := infer.Zeros(layout)
	require.NoError(t, err)
	s, err := built.Init(start)
	require.NoError(t, err)
	known := func() torch.Tensor { return s.(State).family.(dense).lower.known }
	var first torch.Tensor
	require.NoError(t, torch.Do(func(*torch.Scope) error {
		_, _, err := built.Update(s, nil)
		first = known()
		return err
	}))
	require.NotNil(t, first)
	next, _, err := built.Update(s, nil)
	require.NoError(t, err)
	assert.Equal(t, first, known())
	_, err = next.(State).Covariance()
	require.NoError(t, err)
	assert.Equal(t, first, known())
}
