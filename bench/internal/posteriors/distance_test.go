package posteriors

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/draws"
)

// Samples of equal size are apart by the mean distance of their order statistics; a shift by s is a distance of s, and
// samples of different sizes of one law are compared by their distribution functions: {0, 1} and {0, 0, 1, 1} agree.
func TestDistance(t *testing.T) {
	require.InDelta(t, 0, wasserstein([]float64{1, 0}, []float64{0, 1, 1, 0}), 1e-15)
	require.InDelta(t, 3/0.5, wasserstein([]float64{3, 4}, []float64{0, 1}), 1e-15) // the standard deviation is ½
	require.InDelta(t, 1, wasserstein([]float64{0, 2}, []float64{1, 0}), 1e-15)     // ½ over a standard deviation of ½

	d, err := draws.New([]draws.Site{{Name: "x", Shape: []int{2}, Size: 2}}, nil, 2)
	require.NoError(t, err)
	require.NoError(t, d.AppendChain(0, []float64{0, 5}, nil))
	require.NoError(t, d.AppendChain(1, []float64{2, 6}, nil))
	far, err := Reference{"x[1]": {{0, 1}}, "x[2]": {{6, 5}}}.Distance(d)
	require.NoError(t, err)
	require.InDelta(t, 0.5, far, 1e-15) // the mean of 1 and 0
	_, err = Reference{"y": {{0}}}.Distance(d)
	require.ErrorContains(t, err, "0 parameters of 1")
}
