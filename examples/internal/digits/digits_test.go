package digits

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The counts of the digits are those that the source documents; the first image is a nought.
func TestRead(t *testing.T) {
	d, err := Read()
	require.NoError(t, err)
	require.Equal(t, Images, d.Len())
	require.Len(t, d.Pixels, Images*Pixels)
	counts := make([]int, Classes)
	for _, label := range d.Labels {
		counts[label]++
	}
	assert.Equal(t, []int{178, 182, 177, 183, 181, 182, 181, 179, 174, 180}, counts)
	lowest, highest := 1.0, 0.0
	for _, v := range d.Pixels {
		lowest, highest = min(lowest, v), max(highest, v)
	}
	assert.Equal(t, [2]float64{0, 1}, [2]float64{lowest, highest})
	assert.Equal(t, 0, d.Labels[0])
	for i, v := range []float64{0, 0, 5, 13, 9, 1, 0, 0, 0, 0, 13, 15, 10, 15, 5, 0} {
		assert.Equal(t, v/16, d.Pixels[i])
	}
}

// Every image is on one side, with its label, and the sides are the same every time.
func TestSplit(t *testing.T) {
	all, err := Read()
	require.NoError(t, err)
	type image struct {
		pixels [Pixels]float64
		label  int
	}
	count := func(d Data, step int, into map[image]int) {
		require.Len(t, d.Pixels, d.Len()*Pixels)
		for i, label := range d.Labels {
			into[image{[Pixels]float64(d.Pixels[i*Pixels:]), label}] += step
		}
	}
	first, rest, err := Split(500)
	require.NoError(t, err)
	require.Equal(t, 500, first.Len())
	seen := map[image]int{}
	count(all, 1, seen)
	count(first, -1, seen)
	count(rest, -1, seen)
	for _, n := range seen {
		require.Zero(t, n)
	}
	again, _, err := Split(500)
	require.NoError(t, err)
	require.Equal(t, first, again)
	longer, _, err := Split(600)
	require.NoError(t, err)
	require.Equal(t, first.Labels, longer.Labels[:500])
	// All digits are there: 50 each on average, with a standard deviation of about 5.7.
	counts := make([]int, Classes)
	for _, label := range first.Labels {
		counts[label]++
	}
	for _, n := range counts {
		assert.InDelta(t, 50, n, 4*5.7)
	}
}

func TestSplitErrors(t *testing.T) {
	for _, n := range []int{0, -1, Images} {
		_, _, err := Split(n)
		require.ErrorContains(t, err, "want 1 to 1796")
	}
}
