package lower_test

import (
	"testing"

	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// At a bound the derivative is 0 or 1, and shared between equal tensors, as libtorch's version has it. Compiled code
// has what eager evaluation with the same libtorch has, at the bound, beside it and at ties: the same numbers, since
// they are sums of whole ones.
func TestDerivativesAtBounds(t *testing.T) {
	s := sourceOf(8, func(x torch.Tensor) torch.Tensor {
		from, to := torch.Of(x.T().MustNarrow(0, 0, 4, false)), torch.Of(x.T().MustNarrow(0, 4, 4, false))
		return from.Max(0.5).Mul(3).Add(to.Min(0.5).Mul(5)).Add(from.Clamp(-1, 2).Mul(7)).
			Add(from.Max(to).Mul(11)).Add(from.Min(to).Mul(13)).Sum()
	})
	tiers := everywhere(t, s, compile(t, s))
	for _, x := range [][]float64{
		{0.5, -1, 2, 0.25, 0.5, -1, 2, 0.5},
		{0.5000000000000001, -1.0000000000000002, 2.0000000000000004, 0.5, 0.49999999999999994, 0.5, 1, 0.5},
		{0, -3, 3, 0.75, 1, -3, 0.5, 0.75},
	} {
		_, want, _ := eager(t, s, x, 0)
		for tier, f := range tiers {
			got := make([]float64, len(x))
			_, err := f(x, 0, got, nil)
			require.NoError(t, err)
			assert.Equal(t, want, got, "%s at %v", tier, x)
		}
	}
}
