package plot

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Integers that come once each make bins of one height, all but the last, whatever their range is; halves have 30 bins.
func TestBins(t *testing.T) {
	for _, n := range []int{1, 2, 29, 30, 31, 47, 1000} {
		x := make([]float64, n)
		for i := range x {
			x[i] = float64(i - 5)
		}
		low, width, counts := bins(x)
		require.Equal(t, -5.5, low)
		require.LessOrEqual(t, len(counts), 30)
		left := float64(n)
		for _, c := range counts {
			require.Equal(t, min(width, left), c, "%d integers", n)
			left -= c
		}
		require.Zero(t, left)
	}
	low, width, counts := bins([]float64{0, 0.5, 3})
	require.Equal(t, []float64{0, 0.1}, []float64{low, width})
	require.Equal(t, []float64{1, 1, 1}, []float64{counts[0], counts[5], counts[29]})
	low, width, counts = bins([]float64{0.25, 0.25})
	require.Equal(t, -0.25, low)
	require.Equal(t, 1./30, width)
	require.Equal(t, 2., counts[15])
}
