package torch_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/torch"
)

// divisions are the operations that divide integers, of tensors and of scalars.
var divisions = map[string]func(x, y *ts.Tensor, a, b *ts.Scalar) error{
	"FloorDivide":       func(x, y *ts.Tensor, _, _ *ts.Scalar) error { return drop2(x.FloorDivide(y, false)) },
	"FloorDivide_":      func(x, y *ts.Tensor, _, _ *ts.Scalar) error { return x.FloorDivide_(y) },
	"FloorDivideScalar": func(x, _ *ts.Tensor, _, b *ts.Scalar) error { return drop2(x.FloorDivideScalar(b, false)) },
	"FmodTensor":        func(x, y *ts.Tensor, _, _ *ts.Scalar) error { return drop2(x.FmodTensor(y, false)) },
	"Fmod":              func(x, _ *ts.Tensor, _, b *ts.Scalar) error { return drop2(x.Fmod(b, false)) },
	"RemainderTensor":   func(x, y *ts.Tensor, _, _ *ts.Scalar) error { return drop2(x.RemainderTensor(y, false)) },
	"Remainder_":        func(x, _ *ts.Tensor, _, b *ts.Scalar) error { return x.Remainder_(b) },
	"RemainderScalarTensor": func(_, y *ts.Tensor, a, _ *ts.Scalar) error {
		return drop2(ts.RemainderScalarTensor(a, y))
	},
	"DivTensorMode":  func(x, y *ts.Tensor, _, _ *ts.Scalar) error { return drop2(x.DivTensorMode(y, "floor", false)) },
	"DivScalarMode":  func(x, _ *ts.Tensor, _, b *ts.Scalar) error { return drop2(x.DivScalarMode(b, "trunc", false)) },
	"DivScalarMode_": func(x, _ *ts.Tensor, _, b *ts.Scalar) error { return x.DivScalarMode_(b, "floor") },
}

// The smallest integer divided by -1 is an error, because the quotient is no integer of its type and the processor
// stops the process. It is found in a tensor that is no contiguous one, and in a mapped one. Others are divided as
// ever.
func TestDivisionOverflows(t *testing.T) {
	int64s := func(x ...int64) *ts.Tensor { return torch.Must(torch.FromSlice(x)) }
	int32s := func(x ...int32) *ts.Tensor { return torch.Must(torch.FromSlice(x)) }
	for name, divide := range divisions {
		inScope(t, func(*torch.Scope) {
			for _, x := range []*ts.Tensor{
				int64s(7, math.MinInt64), int64s(7, 0, math.MinInt64, 0).MustView([]int64{2, 2}, false).MustSelect(1, 0, false),
				int64s(math.MinInt64).MustExpand([]int64{2}, false, false),
			} {
				err := divide(x, int64s(-1, -1), ts.IntScalar(math.MinInt64), ts.IntScalar(-1))
				assert.ErrorContains(t, err, "the smallest integer divided by -1", name)
			}
			err := divide(int32s(math.MinInt32, 1), int32s(-1, -1), ts.IntScalar(math.MinInt32), ts.IntScalar(-1))
			assert.ErrorContains(t, err, "the smallest integer divided by -1", name)
			for _, ok := range [][2]int64{{-7, -1}, {math.MinInt64, 2}, {math.MaxInt64, -1}} {
				assert.NoError(t, divide(int64s(ok[0]), int64s(ok[1]), ts.IntScalar(ok[0]), ts.IntScalar(ok[1])), name)
			}
			// A 64-bit tensor keeps its type beside a scalar, and the smallest 32-bit integer is none of its smallest.
			assert.NoError(t, divide(int64s(math.MinInt32), int64s(-1), ts.IntScalar(math.MinInt32), ts.IntScalar(-1)), name)
		})
	}
	inScope(t, func(*torch.Scope) {
		_, err := torch.Vmap(func(in []*ts.Tensor) ([]*ts.Tensor, error) {
			y, err := in[0].FloorDivide(in[1], false)
			return []*ts.Tensor{y}, err
		}, []*ts.Tensor{int64s(1, math.MinInt64), int64s(1, -1)}, nil)
		assert.ErrorContains(t, err, "the smallest integer divided by -1")
		q, err := int64s(7, -7, math.MinInt64).FloorDivide(int64s(2, 2, 1), false)
		require.NoError(t, err)
		have, err := torch.ToSlice[int64](q)
		require.NoError(t, err)
		assert.Equal(t, []int64{3, -4, math.MinInt64}, have)
	})
}
