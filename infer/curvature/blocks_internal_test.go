package curvature

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Blocks are as few as can be, follow each other, hold all data, and differ by at most one row.
func TestBlocksAreEqual(t *testing.T) {
	for n := int64(1); n < 40; n++ {
		for most := int64(1); most <= n+2; most++ {
			x, err := torch.FromSlice(make([]float64, n), n)
			require.NoError(t, err)
			q := &problem{n: n, b: infer.Batch{"x": x}}
			var at, count, least, largest int64 = 0, 0, n, 0
			require.NoError(t, q.blocks(most, func(from, rows int64, b infer.Batch) error {
				assert.Equal(t, at, from)
				size, err := b.Size()
				require.NoError(t, err)
				assert.Equal(t, rows, size)
				at, count, least, largest = from+rows, count+1, min(least, rows), max(largest, rows)
				return nil
			}))
			assert.Equal(t, n, at)
			assert.Equal(t, (n+most-1)/most, count)
			assert.LessOrEqual(t, largest, most)
			assert.LessOrEqual(t, largest-least, int64(1), "%d data in blocks of at most %d", n, most)
		}
	}
}
