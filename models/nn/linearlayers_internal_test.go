package nn

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
)

// The linear layers are left to the function: the network computes none itself, and calls each of the others once.
func TestLinearLayersAreComputedOnce(t *testing.T) {
	net, err := Sequential{
		Linear{Out: 3},
		Tanh{},
		&Linear{Out: 2, NoBias: true},
		Named("last", Named("inner", Linear{Out: 1})),
	}.Build(
		2,
	)
	require.NoError(t, err)
	own := map[string]int{}
	for i, l := range net.layers {
		net.layers[i].Forward = func(c Call, x torch.Tensor) torch.Tensor {
			own[l.name]++
			return l.Forward(c, x)
		}
	}
	var asked []string
	require.NoError(t, torch.Do(func(*torch.Scope) error {
		p := torch.Must(infer.Zeros(net.Layout()))
		x := torch.New(make([]float64, 8), 4, 2)
		net.ForwardLinear(p, x, func(weight string, x torch.Tensor) torch.Tensor {
			asked = append(asked, weight)
			return x.MatMul(p.Get(weight).Transpose())
		})
		return nil
	}))
	assert.Equal(t, []string{"0.weight", "2.weight", "last.weight"}, asked)
	assert.Equal(t, map[string]int{"1": 1}, own)
}
