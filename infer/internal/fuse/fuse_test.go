package fuse

import (
	"testing"

	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The noise is that of torch.Streams, bit for bit, for any stream, position and number.
func TestNormalIsThatOfTheStreams(t *testing.T) {
	for _, n := range []int{1, 2, 7, 8, 1000, 20001} {
		streams := torch.Streams{Seed: 0xfedcba9876543210, Chains: []uint64{0, 5, 1 << 40}, Offset: 1<<32 - 3}
		want, err := streams.Normal([]int{n}, torch.DTypeOf[float64](), torch.CPU)
		require.NoError(t, err)
		values, err := torch.ToSlice[float64](want)
		require.NoError(t, err)
		torch.Free(want)
		for k, stream := range streams.Chains {
			got := make([]float64, n)
			normal(streams.Seed, stream, 1<<32-3, got)
			assert.Equal(t, values[k*n:][:n], got, "stream %d, %d numbers", stream, n)
		}
	}
}

func BenchmarkNormal8(b *testing.B) {
	out := make([]float64, 8)
	for i := range b.N {
		normal(1, 2, uint64(4*i), out)
	}
}
