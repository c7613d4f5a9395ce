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
	for n := 1; n < 40; n++ {
		for most := 1; most <= n+2; most++ {
			x, err := torch.FromSlice(make([]float64, n), n)
			require.NoError(t, err)
			q := &problem{n: n, b: infer.Batch{"x": x}}
			var at, count, least, largest int = 0, 0, n, 0
			q.blocks(most, func(from, rows int, b infer.Batch) {
				assert.Equal(t, at, from)
				size, err := b.Size()
				require.NoError(t, err)
				assert.Equal(t, rows, size)
				at, count, least, largest = from+rows, count+1, min(least, rows), max(largest, rows)
			})
			assert.Equal(t, n, at)
			assert.Equal(t, (n+most-1)/most, count)
			assert.LessOrEqual(t, largest, most)
			assert.LessOrEqual(t, largest-least, 1, "%d data in blocks of at most %d", n, most)
		}
	}
}

// A batch that does not count its data, and the longest of its tensors.
func TestUnsized(t *testing.T) {
	vec := func(n int, shape ...int) torch.Tensor {
		x, err := torch.FromSlice(make([]float64, n), n)
		require.NoError(t, err)
		return x.Reshape(append([]int{}, shape...)...)
	}
	for name, c := range map[string]struct {
		b       infer.Batch
		unsized bool
		longest int
	}{
		"none":         {nil, true, 0},
		"shape []":     {infer.Batch{"s": vec(1)}, true, 0},
		"[1]":          {infer.Batch{"x": vec(1, 1)}, false, 1},
		"[] and [1]":   {infer.Batch{"s": vec(1), "x": vec(1, 1)}, true, 1},
		"[2] and [1]":  {infer.Batch{"y": vec(2, 2), "x": vec(1, 1)}, true, 2},
		"[0]":          {infer.Batch{"x": vec(0, 0)}, false, 0},
		"nil and [1]":  {infer.Batch{"x": vec(1, 1), "y": torch.Tensor{}}, false, 0},
		"[1] and [1]":  {infer.Batch{"y": vec(1, 1), "x": vec(1, 1)}, false, 1},
		"[2,1] and []": {infer.Batch{"y": vec(2, 2, 1), "s": vec(1)}, true, 2},
	} {
		unsized, longest := unsized(c.b)
		assert.Equal(t, c.unsized, unsized, name)
		if unsized || c.longest > 0 {
			assert.Equal(t, c.longest, longest, name)
		}
	}
}
